/// Requests and responses as plain values.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holmes::net {

struct Header {
  std::string name;
  std::string value;
};
using Headers = std::vector<Header>;

/// The first header of that name, whatever its case; null when absent.
const std::string* FindHeader(const Headers& headers, std::string_view name);
bool EqualsIgnoreCase(std::string_view a, std::string_view b);

struct HttpRequest {
  std::string method;  // as sent: "GET"
  std::string target;  // as sent: "/v1/models/a%2Fb?x=1"
  std::string path;    // decoded, without the query: "/v1/models/a/b"
  std::string query;   // as sent: "x=1"
  int version = 11;    // 10 or 11
  Headers headers;
  std::string body;
  std::string remote;      // "127.0.0.1:50312"
  std::string path_param;  // what a route's {name} matched, set by Router

  const std::string* Find(std::string_view name) const { return FindHeader(headers, name); }
};

/// The answer to one request. Thread-safe; callable from any thread, also after the connection or
/// the server is gone (then without effect). Either one Send, or Start, any number of Write, and
/// Finish. A writer that is dropped unfinished answers 500 or, once started, cuts the connection,
/// so that no client takes half an answer for a whole one.
class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;

  /// A whole answer. Content-Length, Date and Connection are added. False when the peer is gone or
  /// an answer has begun.
  virtual bool Send(int status, Headers headers, std::string_view body) = 0;

  /// Begins a streamed answer (chunked; for HTTP/1.0 until close). False as Send.
  virtual bool Start(int status, Headers headers) = 0;
  /// Queues a piece and returns at once; pieces that queue up leave in one write. False when the
  /// peer is gone or reads too slowly: more than Options::max_unsent_bytes waiting cuts the
  /// connection and fires OnDisconnect.
  virtual bool Write(std::string_view piece) = 0;
  virtual bool Finish() = 0;

  /// `callback` runs once, on an io thread, if the peer vanishes before the answer is finished (at
  /// once, on this thread, if it already has), and is destroyed without running otherwise. A peer
  /// that shuts down its sending side counts as vanished. One callback per writer.
  virtual void OnDisconnect(std::function<void()> callback) = 0;
  virtual bool disconnected() const = 0;
};

/// Called on an io thread: must not block and must not throw.
using Handler = std::function<void(HttpRequest, std::shared_ptr<ResponseWriter>)>;

/// The body of an error that this folder answers itself (400, 404, 405, 413 ...).
using ErrorBodyFn = std::function<std::string(int status, std::string_view message)>;
/// {"error":{"message":...,"type":...,"param":null,"code":null}}, as OpenAI's API has it.
std::string JsonErrorBody(int status, std::string_view message);

std::string_view ReasonPhrase(int status);

}  // namespace holmes::net
