/// Bytes to one HttpRequest. Private to net; keeps Beast out of the connection.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "net/http_types.h"

namespace holmes::net {

/// Why a request is refused: the answer's status and its message.
struct Refusal {
  int status = 0;
  std::string message;
};

/// One request (RFC 9112). Not thread-safe. After a refusal the connection cannot go on: where the
/// next request begins is unknown.
class RequestParser {
 public:
  RequestParser(std::size_t max_header_bytes, std::size_t max_body_bytes);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  /// Consumes what it can of `bytes` and returns how many; the rest must be offered again together
  /// with what follows. Stops behind the request's last byte. `refusal()` has a status when it must
  /// not go on.
  std::size_t Put(std::string_view bytes);
  bool header_done() const;
  bool done() const;
  /// The client waits for "100 Continue" before it sends the body.
  bool wants_continue() const;
  /// Before Take.
  bool keep_alive() const;
  const Refusal& refusal() const { return refusal_; }
  /// Precondition: done().
  HttpRequest Take();

 private:
  void CheckHeader();
  struct Impl;
  std::unique_ptr<Impl> impl_;
  Refusal refusal_;
  bool header_checked_ = false;
};

/// "%2F" to "/"; false for a cut or wrong escape or a NUL.
bool PercentDecode(std::string_view text, std::string& out);

}  // namespace holmes::net
