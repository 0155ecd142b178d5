#include "server/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <ctime>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "api/errors.h"
#include "api/requests.h"
#include "api/responses.h"
#include "base/thread_pool.h"
#include "net/router.h"
#include "server/answer.h"
#include "server/metrics.h"
#include "server/send_error.h"

namespace holmes::server {
namespace {

using Writer = std::shared_ptr<net::ResponseWriter>;
using TimePoint = std::chrono::steady_clock::time_point;

/// Takes the same time wherever the first difference is.
bool SameSecret(std::string_view given, std::string_view wanted) {
  unsigned difference = given.size() == wanted.size() ? 0U : 1U;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto expected = static_cast<unsigned char>(wanted[i % wanted.size()]);
    difference |= static_cast<unsigned>(static_cast<unsigned char>(given[i]) ^ expected);
  }
  return difference == 0;
}

/// The client's id for its request when it is one that can stand in a log line; otherwise a new
/// one.
std::string RequestIdOf(const net::HttpRequest& request) {
  const std::string* given = request.Find("x-request-id");
  const auto printable = [](char c) { return c > 0x20 && c < 0x7F; };
  if (given != nullptr && !given->empty() && given->size() <= 128 &&
      std::all_of(given->begin(), given->end(), printable)) {
    return *given;
  }
  return api::MakeId("req-");
}

bool IsJson(const net::HttpRequest& request) {
  const std::string* type = request.Find("content-type");
  if (type == nullptr) return true;
  std::string_view media = *type;
  media = media.substr(0, media.find(';'));
  while (media.ends_with(' ')) media.remove_suffix(1);
  return net::EqualsIgnoreCase(media, "application/json");
}

constexpr std::string_view kTimeoutHeader = "x-request-timeout";
constexpr double kLongestTimeoutS = 86'400;

StatusOr<double> ParseTimeout(std::string_view text) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() ||
      !(seconds > 0 && seconds <= kLongestTimeoutS)) {
    return base::InvalidArgumentError(fmt::format("the header {} is '{}'; it must be a number of "
                                                  "seconds, greater than 0 and at most {}",
                                                  kTimeoutHeader,
                                                  text.substr(0, 64),
                                                  kLongestTimeoutS))
        .WithParam(std::string(kTimeoutHeader));
  }
  return seconds;
}

/// What the answers of a loaded model are made with.
struct Serving {
  engine::Engine& engine;
  ServedModel model;
  PromptBuilder prompts;
  api::ModelLimits limits;
  std::shared_ptr<Metrics> metrics;
};

std::unique_ptr<const Serving> MakeServing(engine::Engine& engine, ServedModel model) {
  const engine::ModelInfo& info = engine.model();
  if (model.names.empty()) model.names.push_back(info.name);
  PromptBuilder prompts(
      info,
      engine.tokenizer(),
      model.render_chat ? model.render_chat : MakeChatRenderer(info.chat_template));
  auto metrics = std::make_shared<Metrics>(model.names.front());
  return std::make_unique<const Serving>(Serving{.engine = engine,
                                                 .model = std::move(model),
                                                 .prompts = std::move(prompts),
                                                 .limits = {info.vocab_size, info.context_tokens},
                                                 .metrics = std::move(metrics)});
}

class ServerImpl final : public Server {
 public:
  explicit ServerImpl(ServerOptions options)
      : options_(std::move(options)),
        created_(std::time(nullptr)),
        router_([](int status, std::string_view message) {
          return api::HttpError(status, message).body;
        }),
        workers_({.num_threads = options_.worker_threads,
                  .queue_capacity = options_.worker_queue,
                  .name = "prepare"}) {
    AddRoutes();
  }

  ~ServerImpl() override { Stop(std::chrono::steady_clock::now()); }

  Status Listen() {
    net::HttpServerOptions http = options_.http;
    http.error_body = [](int status, std::string_view message) {
      return api::HttpError(status, message).body;
    };
    HOLMES_ASSIGN_OR_RETURN(
        http_,
        net::HttpServer::Create(std::move(http), [this](net::HttpRequest request, Writer writer) {
          Receive(std::move(request), std::move(writer));
        }));
    return OkStatus();
  }

  void Start() override { http_->Start(); }
  std::uint16_t port() const override { return http_->port(); }
  void Serve(engine::Engine* engine, ServedModel model) override {
    owned_serving_ = MakeServing(*engine, std::move(model));
    serving_.store(owned_serving_.get(), std::memory_order_release);
  }
  void SetReady(bool ready) override { ready_.store(ready); }

  bool Stop(TimePoint deadline) override {
    if (!http_ || stopped_.exchange(true)) return true;
    ready_.store(false);
    const Serving* serving = serving_.load(std::memory_order_acquire);
    const bool engine_done = serving == nullptr || serving->engine.Drain(deadline);
    const bool http_done = http_->Stop(deadline);
    return engine_done && http_done;
  }

 private:
  using BodyHandler = void (ServerImpl::*)(const net::HttpRequest&,
                                           const Writer&,
                                           const net::Headers&,
                                           TimePoint);

  void AddRoutes() {
    router_.Add("GET", "/health", [](net::HttpRequest, const Writer& writer) {
      writer->Send(200, {}, "");
    });
    router_.Add("GET", "/ready", [this](net::HttpRequest, const Writer& writer) { Ready(writer); });
    router_.Add("GET", "/metrics", [this](net::HttpRequest, const Writer& writer) {
      writer->Send(200,
                   {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}},
                   serving().metrics->Text(serving().engine.Stats(), http_->Stats()));
    });
    router_.Add("GET", "/v1/models", [this](net::HttpRequest, const Writer& writer) {
      std::vector<api::ModelCard> cards;
      for (const std::string& name : serving().model.names) cards.push_back(Card(name));
      SendJson(writer, {}, api::ModelListBody(cards));
    });
    router_.Add("GET", "/v1/models/{id}", [this](net::HttpRequest request, const Writer& writer) {
      const Status known = CheckModel(request.path_param);
      if (!known.ok()) return SendError(*writer, api::ToErrorResponse(known), {});
      SendJson(writer, {}, api::ModelBody(Card(request.path_param)));
    });
    AddBodyRoute("/v1/chat/completions", &ServerImpl::ChatCompletion);
    AddBodyRoute("/v1/completions", &ServerImpl::Completion);
    AddBodyRoute("/tokenize", &ServerImpl::Tokenize);
    AddBodyRoute("/detokenize", &ServerImpl::Detokenize);
  }

  /// Hands the request to a worker: nothing that reads a body runs on an io thread.
  void AddBodyRoute(std::string path, BodyHandler handler) {
    router_.Add("POST", std::move(path), [this, handler](net::HttpRequest request, Writer writer) {
      const TimePoint received = std::chrono::steady_clock::now();
      net::Headers headers{{"x-request-id", RequestIdOf(request)}};
      if (!IsJson(request)) {
        return SendError(
            *writer,
            api::HttpError(415, "The body must be JSON: send Content-Type: application/json."),
            headers);
      }
      // Shared, as std::function copies what it holds.
      auto shared = std::make_shared<const net::HttpRequest>(std::move(request));
      const bool taken = workers_.TrySubmit([this, handler, shared, writer, headers, received] {
        (this->*handler)(*shared, writer, headers, received);
      });
      if (taken) return;
      serving().metrics->CountRequest(Outcome::kRejected);
      SendError(*writer,
                api::ToErrorResponse(base::ResourceExhaustedError(
                    fmt::format("{} requests already wait to be read; try again in a moment",
                                options_.worker_queue))),
                headers);
    });
  }

  void Receive(net::HttpRequest request, Writer writer) {
    const bool open = request.path == "/health" || request.path == "/ready" ||
                      request.path == "/metrics" || request.method == "OPTIONS";
    if (!open && !options_.api_key.empty()) {
      constexpr std::string_view kScheme = "Bearer ";
      const std::string* given = request.Find("authorization");
      const bool bearer =
          given != nullptr && given->size() >= kScheme.size() &&
          net::EqualsIgnoreCase(std::string_view(*given).substr(0, kScheme.size()), kScheme);
      if (!bearer ||
          !SameSecret(std::string_view(*given).substr(kScheme.size()), options_.api_key)) {
        const Status status(StatusCode::kUnauthenticated,
                            bearer
                                ? "the API key is wrong"
                                : "this server wants an API key: send Authorization: Bearer <key>");
        return SendError(
            *writer, api::ToErrorResponse(status), {{"x-request-id", RequestIdOf(request)}});
      }
    }
    const bool always = request.path == "/health" || request.path == "/ready";
    if (!always && serving_.load(std::memory_order_acquire) == nullptr) {
      return SendError(*writer,
                       api::ToErrorResponse(base::UnavailableError(
                           "the model is still loading; try again in a moment (/ready says when)")),
                       {{"x-request-id", RequestIdOf(request)}});
    }
    router_.Handle(std::move(request), std::move(writer));
  }

  /// Precondition: Serve was called, which Receive checks for every handler but /health and
  /// /ready.
  const Serving& serving() const { return *serving_.load(std::memory_order_acquire); }

  void Ready(const Writer& writer) {
    if (ready_.load()) {
      writer->Send(200, {}, "");
    } else {
      SendError(
          *writer,
          api::HttpError(503, "Not ready: the model is loading, or the server is shutting down."),
          {});
    }
  }

  api::ModelCard Card(const std::string& name) const {
    return {name, created_, serving().limits.context_tokens};
  }

  static void SendJson(const Writer& writer, net::Headers headers, std::string_view body) {
    headers.push_back({"Content-Type", "application/json"});
    writer->Send(200, std::move(headers), body);
  }

  /// A request that names no model means the one that is served.
  Status CheckModel(std::string_view name) const {
    const auto& names = serving().model.names;
    if (name.empty() || std::find(names.begin(), names.end(), name) != names.end())
      return OkStatus();
    return base::NotFoundError(fmt::format("there is no model '{}' here; this server has '{}'",
                                           name,
                                           names.front()))
        .WithParam("model");
  }

  void Reject(const Writer& writer, const net::Headers& headers, const Status& status) {
    serving().metrics->CountRequest(Outcome::kRejected);
    SendError(*writer, api::ToErrorResponse(status), headers);
  }

  void ChatCompletion(const net::HttpRequest& http,
                      const Writer& writer,
                      const net::Headers& headers,
                      TimePoint received) {
    const auto request = api::ParseChatCompletionRequest(http.body);
    if (!request.ok()) return Reject(writer, headers, request.status());
    if (Status status = CheckCommon(request->model, request->fields); !status.ok())
      return Reject(writer, headers, status);
    const auto deadline = DeadlineOf(http, received);
    if (!deadline.ok()) return Reject(writer, headers, deadline.status());
    auto prompt = serving().prompts.Chat(
        request->messages, request->add_generation_prompt, request->chat_template_kwargs);
    if (!prompt.ok()) return Reject(writer, headers, prompt.status());
    std::vector<std::vector<TokenId>> prompts;
    prompts.push_back(*std::move(prompt));
    Generate({.chat = true, .model = request->model, .deadline = *deadline, .received = received},
             request->fields,
             std::move(prompts),
             writer,
             headers);
  }

  void Completion(const net::HttpRequest& http,
                  const Writer& writer,
                  const net::Headers& headers,
                  TimePoint received) {
    const auto request = api::ParseCompletionRequest(http.body);
    if (!request.ok()) return Reject(writer, headers, request.status());
    if (Status status = CheckCommon(request->model, request->fields); !status.ok())
      return Reject(writer, headers, status);
    const auto deadline = DeadlineOf(http, received);
    if (!deadline.ok()) return Reject(writer, headers, deadline.status());
    std::vector<std::vector<TokenId>> prompts;
    for (const api::Prompt& prompt : request->prompts) {
      if (const auto* text = std::get_if<std::string>(&prompt)) {
        prompts.push_back(serving().prompts.Raw(*text));
        continue;
      }
      const auto& ids = std::get<std::vector<TokenId>>(prompt);
      if (Status status = api::ValidateIds(ids, serving().limits, "prompt"); !status.ok())
        return Reject(writer, headers, status);
      prompts.push_back(ids);
    }
    Generate({.chat = false, .model = request->model, .deadline = *deadline, .received = received},
             request->fields,
             std::move(prompts),
             writer,
             headers);
  }

  /// When the answer must be complete: the server's limit or the request's own, whichever is
  /// shorter; counted from the request's arrival, so that reading and tokenizing count too.
  StatusOr<std::optional<TimePoint>> DeadlineOf(const net::HttpRequest& http,
                                                TimePoint received) const {
    double seconds = options_.request_timeout_s;
    if (const std::string* given = http.Find(kTimeoutHeader)) {
      HOLMES_ASSIGN_OR_RETURN(const double asked, ParseTimeout(*given));
      seconds = seconds > 0 ? std::min(seconds, asked) : asked;
    }
    if (seconds <= 0) return std::optional<TimePoint>();
    const TimePoint deadline = received + std::chrono::duration_cast<TimePoint::duration>(
                                              std::chrono::duration<double>(seconds));
    if (deadline <= std::chrono::steady_clock::now()) {
      return base::DeadlineExceededError(
          fmt::format("the request's {} s passed while it waited to be read", seconds));
    }
    return std::optional<TimePoint>(deadline);
  }

  Status CheckCommon(std::string_view model, const api::GenerationFields& fields) const {
    HOLMES_RETURN_IF_ERROR(CheckModel(model));
    return api::ValidateFields(fields, serving().limits);
  }

  struct Asked {
    bool chat = false;
    std::string model;  // empty = the one that is served
    std::optional<TimePoint> deadline;
    TimePoint received;
  };

  void Generate(const Asked& asked,
                const api::GenerationFields& fields,
                std::vector<std::vector<TokenId>> prompts,
                const Writer& writer,
                const net::Headers& headers) {
    Answer::Options options;
    options.chat = asked.chat;
    options.stream = fields.stream;
    options.include_usage = fields.stream && fields.include_usage;
    options.logprobs = fields.logprobs;
    options.n = fields.n;
    options.num_prompts = static_cast<int>(prompts.size());
    options.head.id = api::MakeId(asked.chat ? "chatcmpl-" : "cmpl-");
    options.head.model = asked.model.empty() ? serving().model.names.front() : asked.model;
    options.head.created = std::time(nullptr);
    options.headers = headers;
    options.received = asked.received;
    const auto answer =
        std::make_shared<Answer>(std::move(options), writer, serving().engine, serving().metrics);
    answer->ListenForDisconnect();
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      if (answer->client_gone()) return;
      engine::Request request = ToEngineRequest(fields, serving().model.defaults);
      request.prompt = std::move(prompts[i]);
      request.deadline = asked.deadline;
      const auto submitted =
          serving().engine.Submit(std::move(request), answer->SinkOf(static_cast<int>(i)));
      if (!submitted.ok()) return answer->Abort(WithPromptParam(submitted.status(), asked.chat));
      answer->AddSubmitted(*submitted);
    }
    answer->Open();
  }

  /// The engine says "prompt" or nothing; a chat's prompt comes from its messages.
  static Status WithPromptParam(const Status& status, bool chat) {
    if (status.code() != StatusCode::kInvalidArgument) return status;
    if (!status.param().empty() && status.param() != "prompt") return status;
    return status.WithParam(chat ? "messages" : "prompt");
  }

  void Tokenize(const net::HttpRequest& http,
                const Writer& writer,
                const net::Headers& headers,
                TimePoint) {
    const auto request = api::ParseTokenizeRequest(http.body);
    if (!request.ok()) return SendError(*writer, api::ToErrorResponse(request.status()), headers);
    if (Status status = CheckModel(request->model); !status.ok()) {
      return SendError(*writer, api::ToErrorResponse(status), headers);
    }
    std::vector<TokenId> ids;
    if (request->messages) {
      auto chat =
          serving().prompts.Chat(*request->messages, request->add_generation_prompt, text::Value());
      if (!chat.ok()) return SendError(*writer, api::ToErrorResponse(chat.status()), headers);
      ids = *std::move(chat);
    } else {
      ids = serving().prompts.Raw(request->prompt, request->add_special_tokens);
    }
    SendJson(writer, headers, api::TokenizeBody(ids, serving().limits.context_tokens));
  }

  void Detokenize(const net::HttpRequest& http,
                  const Writer& writer,
                  const net::Headers& headers,
                  TimePoint) {
    const auto request = api::ParseDetokenizeRequest(http.body);
    Status status = request.ok() ? CheckModel(request->model) : request.status();
    if (status.ok()) status = api::ValidateIds(request->tokens, serving().limits, "tokens");
    if (!status.ok()) return SendError(*writer, api::ToErrorResponse(status), headers);
    SendJson(writer,
             headers,
             api::DetokenizeBody(serving().engine.tokenizer().DecodeBytes(request->tokens, true)));
  }

  ServerOptions options_;
  const std::int64_t created_;
  net::Router router_;
  std::unique_ptr<const Serving> owned_serving_;
  std::atomic<const Serving*> serving_{nullptr};  // null until Serve
  std::atomic<bool> ready_{false};
  std::atomic<bool> stopped_{false};
  std::unique_ptr<net::HttpServer> http_;
  base::ThreadPool
      workers_;  // last: its jobs use everything above, and it runs them before it is gone
};

}  // namespace

StatusOr<std::unique_ptr<Server>> Server::Create(ServerOptions options) {
  auto server = std::make_unique<ServerImpl>(std::move(options));
  HOLMES_RETURN_IF_ERROR(server->Listen());
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace holmes::server
