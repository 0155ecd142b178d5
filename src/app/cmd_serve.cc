// holmes serve: one engine and its HTTP API in one process.
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <string>

#include "app/command.h"
#include "app/generation_defaults.h"
#include "app/load_engine.h"
#include "app/signal_watch.h"
#include "app/warm_up.h"
#include "base/log.h"
#include "server/server.h"

namespace holmes::app {
namespace {

struct ServeOptions {
  std::string host = "127.0.0.1";
  int port = 8000;
  std::string api_key;
  std::string cors_origin;
  double drain_timeout_s = 30;
  double request_timeout_s = 0;
  int io_threads = 1;
  int worker_threads = 2;
  int max_connections = 4096;
  int max_body_mib = 32;
  std::string example_python = "python3";
};

/// How this program was started, for lines to copy.
std::string OwnPath() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return "holmes";
  const std::filesystem::path relative =
      path.lexically_proximate(std::filesystem::current_path(error));
  return relative.string().size() < path.string().size() ? relative.string() : path.string();
}

/// An address that a client on this machine can use.
std::string ClientHost(const std::string& host) {
  if (host == "0.0.0.0" || host == "::" || host.empty()) return "127.0.0.1";
  return host.find(':') != std::string::npos ? "[" + host + "]" : host;
}

class ServeCommand final : public Command {
 public:
  void AddOptions(OptionTable& table) override {
    AddLoadOptions(table, load_);
    AddGenerationOptions(table, sampling_);
    table.Add({.name = "host",
               .value_name = "ADDRESS",
               .help = "address to listen on; 0.0.0.0 is every one",
               .target = &serve_.host});
    table.Add({.name = "port",
               .short_name = 'p',
               .help = "TCP port to listen on; 0 takes a free one",
               .target = &serve_.port,
               .low = 0,
               .high = 65535});
    table.Add({.name = "api-key",
               .value_name = "KEY",
               .help = "clients must send it as a bearer token; none by default",
               .target = &serve_.api_key});
    table.Add({.name = "cors-origin",
               .value_name = "ORIGIN",
               .help = "web pages of this origin may call the API (* for all); none by default",
               .target = &serve_.cors_origin});
    table.Add({.name = "drain-timeout",
               .value_name = "SECONDS",
               .help = "how long running answers may go on after SIGTERM or Ctrl-C; a second "
                       "signal ends at once",
               .target = &serve_.drain_timeout_s,
               .low = 0,
               .high = 86400});
    table.Add({.name = "request-timeout",
               .value_name = "SECONDS",
               .help = "longest time from a request's arrival to its whole answer; later it is "
                       "cancelled and answered with 504; clients may ask for less with the header "
                       "x-request-timeout; 0 is no limit",
               .target = &serve_.request_timeout_s,
               .low = 0,
               .high = 86400});
    table.Add({.name = "io-threads",
               .help = "threads that read and write connections",
               .target = &serve_.io_threads,
               .low = 1,
               .high = 256});
    table.Add({.name = "worker-threads",
               .help = "threads that parse, render and tokenize requests",
               .target = &serve_.worker_threads,
               .low = 1,
               .high = 256});
    table.Add({.name = "max-connections",
               .help = "open connections; more are refused",
               .target = &serve_.max_connections,
               .low = 1,
               .high = 1 << 20});
    table.Add({.name = "max-body-mib",
               .value_name = "MIB",
               .help = "longest request body",
               .target = &serve_.max_body_mib,
               .low = 1,
               .high = 1024});
    table.Add({.name = "example-python",
               .value_name = "PROGRAM",
               .help = "the Python of the line to copy that is shown at the start",
               .target = &serve_.example_python});
  }

  Status Run() override {
    SignalWatch signals({SIGINT, SIGTERM});  // until OnSignal below, one ends the process at once
    LoadedModel loaded;                      // outlives the server
    // The port first: one that is taken is told at once, and whoever watches /health and /ready
    // sees a process that loads instead of none.
    HOLMES_ASSIGN_OR_RETURN(const std::unique_ptr<server::Server> server,
                            server::Server::Create(MakeServerOptions()));
    server->Start();
    base::LogInfo("listening on port {}; loading the model", server->port());
    HOLMES_ASSIGN_OR_RETURN(loaded, LoadEngine(load_));
    const server::GenerationDefaults defaults = Over(sampling_, loaded.defaults);
    if (const std::string text = Describe(defaults); !text.empty())
      base::LogInfo("where a request is silent: {}", text);
    if (Status status = WarmUp(*loaded.engine); !status.ok())
      return status.WithContext("the model does not answer");
    server->Serve(loaded.engine.get(), {.names = {}, .defaults = defaults, .render_chat = {}});
    std::promise<int> first;
    signals.OnSignal([&first, num_signals = 0](int number) mutable {
      if (++num_signals > 1) std::_Exit(128 + number);
      first.set_value(number);
    });
    server->SetReady(true);
    ShowReady(*server, loaded);
    const int signal = first.get_future().get();
    base::LogInfo("signal {}: no new requests; running answers may finish for {} s",
                  signal,
                  serve_.drain_timeout_s);
    const auto limit = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(serve_.drain_timeout_s));
    const bool whole = server->Stop(std::chrono::steady_clock::now() + limit);
    base::LogInfo("{}",
                  whole ? "stopped; every answer was finished"
                        : "stopped; answers that took longer were cut");
    return OkStatus();
  }

 private:
  server::ServerOptions MakeServerOptions() const {
    server::ServerOptions options;
    options.http.address = serve_.host;
    options.http.port = static_cast<std::uint16_t>(serve_.port);
    options.http.io_threads = serve_.io_threads;
    options.http.max_connections = static_cast<std::size_t>(serve_.max_connections);
    options.http.max_body_bytes = static_cast<std::size_t>(serve_.max_body_mib) << 20;
    options.http.cors_origin = serve_.cors_origin;
    options.api_key = serve_.api_key;
    options.worker_threads = static_cast<std::size_t>(serve_.worker_threads);
    options.request_timeout_s = serve_.request_timeout_s;
    return options;
  }

  void ShowReady(const server::Server& server, const LoadedModel& loaded) const {
    const engine::ModelInfo& model = loaded.engine->model();
    const std::string url = fmt::format("http://{}:{}", ClientHost(serve_.host), server.port());
    const std::string key =
        serve_.api_key.empty() ? "none" : "YOUR-KEY";  // the key itself belongs into no log
    const std::string header =
        serve_.api_key.empty() ? "" : fmt::format(" -H 'Authorization: Bearer {}'", key);
    fmt::print("holmes: {} on {}, {} tokens of context, {} answers at a time\n",
               model.name,
               loaded.device,
               model.context_tokens,
               loaded.max_sequences);
    fmt::print("holmes: ready on {}\n\n", url);
    fmt::print(
        "curl {}/v1/chat/completions{} -H 'Content-Type: application/json' -d '{{\"model\": "
        "\"{}\", \"messages\": [{{\"role\": \"user\", "
        "\"content\": \"What is the capital of France?\"}}]}}'\n\n",
        url,
        header,
        model.name);
    fmt::print(
        "{} -c 'from openai import OpenAI; print(OpenAI(base_url=\"{}/v1\", "
        "api_key=\"{}\").chat.completions.create(model=\"{}\", "
        "messages=[{{\"role\": \"user\", \"content\": \"What is the capital of "
        "France?\"}}]).choices[0].message.content)'\n\n",
        serve_.example_python,
        url,
        key,
        model.name);
    fmt::print("{} run --url {}\n\n", OwnPath(), url);
    std::fflush(stdout);
  }

  LoadOptions load_;
  ServeOptions serve_;
  server::GenerationDefaults sampling_;
};

}  // namespace

std::unique_ptr<Command> MakeServeCommand() { return std::make_unique<ServeCommand>(); }

}  // namespace holmes::app
