/// A small blocking HTTP/1.1 client, for command-line tools and tests: one connection per call.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "net/http_types.h"
#include "net/sse.h"

namespace holmes::net {

struct ClientRequest {
  std::string method = "GET";
  std::string url;  // http:// or https://
  /// PEM file of the authorities that an https server's certificate is checked against; empty = the
  /// system's, or those that the environment variable SSL_CERT_FILE names.
  std::string ca_file;
  Headers headers;  // Host, Content-Length and Connection are added
  std::string body;
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds idle_timeout{
      300'000};  // silence of the server; a queue or a long prompt may take minutes
  std::size_t max_body_bytes = 64 << 20;  // of a body that is kept
};

struct ClientResponse {
  int status = 0;
  Headers headers;
  std::string body;  // empty where a callback took it
};

/// Ends calls from another thread. Copies share one state. Thread-safe.
class CancelSource {
 public:
  CancelSource();
  /// Calls that run end with kCancelled, later ones at once.
  void Cancel();
  bool cancelled() const;

 private:
  friend class CancelScope;
  struct State;
  std::shared_ptr<State> state_;
};

/// Gets pieces of the body as they arrive; false ends the call with kCancelled.
using PieceCallback = std::function<bool(std::string_view)>;

/// Blocks until the answer is whole. With `on_piece`, a body of status 2xx goes there; any other
/// body is kept, so that an error can be read. Any HTTP status is a response, not an error. Errors:
/// kInvalidArgument (URL, ca_file), kUnavailable (no connection, a certificate that is not trusted,
/// cut in the middle; names host and port),
/// kDeadlineExceeded, kCancelled, kResourceExhausted (body over its limit).
StatusOr<ClientResponse> Fetch(const ClientRequest& request,
                               const PieceCallback& on_piece = {},
                               const CancelSource* cancel = nullptr);

/// Fetch for event streams: events instead of pieces. Errors: those of Fetch and of SseParser.
StatusOr<ClientResponse> FetchEvents(const ClientRequest& request,
                                     const std::function<bool(SseEvent&&)>& on_event,
                                     const CancelSource* cancel = nullptr);

}  // namespace holmes::net
