/// An HTTP/1.0 and 1.1 server (RFC 9110, RFC 9112): keep-alive, pipelining, chunked bodies both
/// ways, streamed answers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "net/http_types.h"

namespace holmes::net {

/// Limits of one server. What goes beyond one is answered (400, 408, 413, 431, 503) and its
/// connection closed.
struct HttpServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0 = any free one, see HttpServer::port()
  int io_threads = 1;
  std::size_t max_connections = 4096;
  std::size_t max_header_bytes = 64 << 10;
  std::size_t max_body_bytes = 32 << 20;
  std::size_t max_unsent_bytes = 4 << 20;            // of one streamed answer
  std::chrono::milliseconds header_timeout{30'000};  // first byte to the end of the headers
  std::chrono::milliseconds body_timeout{30'000};    // between two pieces of a body
  std::chrono::milliseconds idle_timeout{75'000};    // between two requests
  std::chrono::milliseconds write_timeout{
      60'000};              // a peer that takes not a byte of what waits for it
  std::string cors_origin;  // Access-Control-Allow-Origin of every answer; empty = none
  ErrorBodyFn error_body = JsonErrorBody;
};

struct HttpServerStats {
  std::uint64_t connections_accepted = 0;
  std::uint64_t connections_refused = 0;  // over max_connections
  std::uint64_t requests = 0;
  std::uint64_t bad_requests = 0;  // answered here, without the handler
  std::uint64_t disconnects = 0;   // peers that vanished before their answer was finished
  std::uint64_t slow_readers = 0;  // of those, cut because they read too slowly
  std::size_t connections_open = 0;
};

/// Thread-safe.
class HttpServer {
 public:
  /// Binds and listens; connections wait until Start.
  /// Errors: kAlreadyExists (port taken), kPermissionDenied (port below 1024), kInvalidArgument
  /// (address, limits).
  static StatusOr<std::unique_ptr<HttpServer>> Create(HttpServerOptions options, Handler handler);
  /// As Stop with no time left.
  virtual ~HttpServer() = default;

  /// Starts the io threads. Call once.
  virtual void Start() = 0;
  virtual std::uint16_t port() const = 0;
  /// Accepts no more, closes idle connections, lets running answers finish until `deadline`, cuts
  /// the rest and joins the io threads. True when nothing had to be cut. Not from an io thread (a
  /// handler). A second call returns at once.
  virtual bool Stop(std::chrono::steady_clock::time_point deadline) = 0;
  virtual HttpServerStats Stats() const = 0;
};

}  // namespace holmes::net
