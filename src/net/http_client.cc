#include "net/http_client.h"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <exception>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace holmes::net {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

struct CancelSource::State {
  base::Mutex mu;
  bool cancelled HOLMES_GUARDED_BY(mu) = false;
  std::unordered_set<asio::io_context*> running HOLMES_GUARDED_BY(mu);
};

CancelSource::CancelSource() : state_(std::make_shared<State>()) {}

void CancelSource::Cancel() {
  base::MutexLock lock(state_->mu);
  state_->cancelled = true;
  // A stopped context runs no handler any more: the blocked call returns and destroys its sockets.
  for (asio::io_context* io : state_->running) io->stop();
}

bool CancelSource::cancelled() const {
  base::MutexLock lock(state_->mu);
  return state_->cancelled;
}

/// Makes a call's context known to its CancelSource while it runs.
class CancelScope {
 public:
  CancelScope(const CancelSource* source, asio::io_context& io) : io_(io) {
    if (source == nullptr) return;
    state_ = source->state_;
    base::MutexLock lock(state_->mu);
    state_->running.insert(&io_);
    if (state_->cancelled) io_.stop();
  }
  ~CancelScope() {
    if (!state_) return;
    base::MutexLock lock(state_->mu);
    state_->running.erase(&io_);
  }
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

 private:
  asio::io_context& io_;
  std::shared_ptr<CancelSource::State> state_;
};

namespace {

struct Target {
  bool tls = false;
  std::string host;
  std::string port;
  std::string host_header;
  std::string path;  // with the query
};

StatusOr<Target> ParseUrl(std::string_view url) {
  const auto parsed = boost::urls::parse_uri(url);
  if (!parsed || parsed->host().empty() ||
      (parsed->scheme() != "http" && parsed->scheme() != "https")) {
    return base::InvalidArgumentError(fmt::format("'{}' is not a URL of http:// or https://", url));
  }
  Target target;
  target.tls = parsed->scheme() == "https";
  target.host = parsed->host_address();
  target.port = parsed->has_port() ? std::string(parsed->port()) : (target.tls ? "443" : "80");
  target.host_header = parsed->encoded_host_and_port();
  target.path = parsed->encoded_path().empty() ? "/" : std::string(parsed->encoded_path());
  if (parsed->has_query()) target.path += "?" + std::string(parsed->encoded_query());
  return target;
}

std::string RequestText(const ClientRequest& request, const Target& target) {
  std::string out = fmt::format(
      "{} {} HTTP/1.1\r\nHost: {}\r\n", request.method, target.path, target.host_header);
  for (const Header& header : request.headers)
    out += fmt::format("{}: {}\r\n", header.name, header.value);
  if (!request.body.empty() || request.method == "POST") {
    out += fmt::format("Content-Length: {}\r\n", request.body.size());
  }
  out += "Connection: close\r\n\r\n";
  return out + request.body;
}

/// One call's coroutine. Lives on the caller's stack; everything runs on the calling thread.
class Call {
 public:
  Call(const ClientRequest& request, const Target& target, const PieceCallback& on_piece)
      : request_(request), target_(target), on_piece_(on_piece) {}

  asio::awaitable<void> Run() {
    auto executor = co_await asio::this_coro::executor;
    error_code error;
    asio::ip::tcp::resolver resolver(executor);
    const auto places = co_await resolver.async_resolve(
        target_.host, target_.port, asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return Fail("find", error);
    beast::tcp_stream stream(executor);
    stream.expires_after(request_.connect_timeout);
    co_await stream.async_connect(places, asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return Fail("connect to", error);
    stream.socket().set_option(asio::ip::tcp::no_delay(true), error);
    if (!target_.tls) {
      co_await Talk(stream, stream);
      co_return;
    }
    asio::ssl::context context(asio::ssl::context::tls_client);
    if (request_.ca_file.empty()) {
      context.set_default_verify_paths(error);
    } else {
      context.load_verify_file(request_.ca_file, error);
      if (error) co_return FailCaFile(error);
    }
    beast::ssl_stream<beast::tcp_stream> secure(std::move(stream), context);
    SSL_set_tlsext_host_name(secure.native_handle(), target_.host.c_str());
    secure.set_verify_mode(asio::ssl::verify_peer, error);
    secure.set_verify_callback(asio::ssl::host_name_verification(target_.host), error);
    co_await secure.async_handshake(asio::ssl::stream_base::client,
                                    asio::redirect_error(asio::use_awaitable, error));
    if (error) {
      const long verified = SSL_get_verify_result(secure.native_handle());
      if (verified != X509_V_OK) co_return FailCertificate(verified);
      co_return Fail("agree on TLS with", error);
    }
    co_await Talk(secure, beast::get_lowest_layer(secure));
  }

  bool done() const { return done_; }
  const Status& status() const { return status_; }
  ClientResponse& response() { return response_; }

 private:
  void Fail(std::string_view what, const error_code& error) {
    done_ = true;
    const std::string place = fmt::format("{}:{}", target_.host, target_.port);
    if (error == beast::error::timeout) {
      status_ = base::DeadlineExceededError(fmt::format("could not {} {} in time", what, place));
    } else {
      status_ =
          base::UnavailableError(fmt::format("could not {} {}: {}", what, place, error.message()));
    }
  }

  void FailCaFile(const error_code& error) {
    done_ = true;
    status_ = base::InvalidArgumentError(
        fmt::format("'{}' is no PEM file of certificates: {}", request_.ca_file, error.message()));
  }

  void FailCertificate(long verify_result) {
    done_ = true;
    status_ = base::UnavailableError(
        fmt::format("the certificate of {}:{} is not trusted: {}; if it should be, give the file "
                    "of its authority (environment variable SSL_CERT_FILE)",
                    target_.host,
                    target_.port,
                    X509_verify_cert_error_string(verify_result)));
  }

  template <typename Stream>
  asio::awaitable<void> Talk(Stream& stream, beast::tcp_stream& timed) {
    const std::string text = RequestText(request_, target_);
    std::size_t sent = 0;
    error_code error;
    while (sent < text.size() && !error) {
      timed.expires_after(request_.idle_timeout);
      sent += co_await stream.async_write_some(asio::buffer(text.data() + sent, text.size() - sent),
                                               asio::redirect_error(asio::use_awaitable, error));
    }
    // A server that refuses a large body may answer and close before it has read it all: its answer
    // counts.
    http::response_parser<http::buffer_body> parser;
    parser.body_limit(boost::none);
    if (request_.method == "HEAD") parser.skip(true);
    beast::flat_buffer buffer;
    timed.expires_after(request_.idle_timeout);
    co_await http::async_read_header(
        stream, buffer, parser, asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return Fail("get an answer from", error);
    response_.status = parser.get().result_int();
    for (const auto& field : parser.get()) {
      response_.headers.push_back({std::string(field.name_string()), std::string(field.value())});
    }
    std::vector<char> piece(64 << 10);
    while (!parser.is_done()) {
      parser.get().body().data = piece.data();
      parser.get().body().size = piece.size();
      timed.expires_after(request_.idle_timeout);
      co_await http::async_read_some(
          stream, buffer, parser, asio::redirect_error(asio::use_awaitable, error));
      const std::size_t got = piece.size() - parser.get().body().size;
      if (got > 0 && !Take({piece.data(), got})) co_return;
      if (error == http::error::need_buffer) error = {};
      if (error) co_return Fail("read the whole answer of", error);
    }
    done_ = true;
  }

  /// False when the call is over.
  bool Take(std::string_view piece) {
    if (on_piece_ && response_.status / 100 == 2) {
      if (on_piece_(piece)) return true;
      status_ = base::CancelledError("the caller ended the request");
    } else {
      response_.body += piece;
      if (response_.body.size() <= request_.max_body_bytes) return true;
      status_ = base::ResourceExhaustedError(fmt::format(
          "the answer of {} is larger than {} bytes", target_.host, request_.max_body_bytes));
    }
    done_ = true;
    return false;
  }

  const ClientRequest& request_;
  const Target& target_;
  const PieceCallback& on_piece_;
  ClientResponse response_;
  Status status_;
  bool done_ = false;
};

}  // namespace

StatusOr<ClientResponse> Fetch(const ClientRequest& request,
                               const PieceCallback& on_piece,
                               const CancelSource* cancel) {
  HOLMES_ASSIGN_OR_RETURN(const Target target, ParseUrl(request.url));
  Call call(request, target, on_piece);
  std::string thrown;
  {
    asio::io_context io(1);
    const CancelScope scope(cancel, io);
    asio::co_spawn(
        io,
        [&call] { return call.Run(); },
        [&thrown](std::exception_ptr error) {
          if (error) thrown = "the HTTP client failed inside";
        });
    io.run();
  }
  if (!thrown.empty()) return base::InternalError(thrown);
  if (!call.done()) return base::CancelledError("the request was cancelled");
  HOLMES_RETURN_IF_ERROR(call.status());
  return std::move(call.response());
}

StatusOr<ClientResponse> FetchEvents(const ClientRequest& request,
                                     const std::function<bool(SseEvent&&)>& on_event,
                                     const CancelSource* cancel) {
  SseParser parser;
  Status parse_status;
  bool stopped = false;
  auto response = Fetch(
      request,
      [&](std::string_view piece) {
        parse_status = parser.Push(piece, [&](SseEvent&& event) {
          stopped = !on_event(std::move(event));
          return !stopped;
        });
        return parse_status.ok() && !stopped;
      },
      cancel);
  HOLMES_RETURN_IF_ERROR(parse_status);
  return response;
}

}  // namespace holmes::net
