/// Server-sent events (WHATWG HTML, section 9.2 "Server-sent events"): reading a stream cut
/// anywhere, and writing one event.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace holmes::net {

struct SseEvent {
  std::string type;  // empty = "message"
  std::string data;  // several data lines joined by '\n'
  std::string id;    // the last one seen in the stream
};

/// Incremental. Lines end in \r\n, \n or \r; comments and unknown fields are dropped; an event
/// without data is none; a leading byte order mark is skipped. One thread at a time.
class SseParser {
 public:
  explicit SseParser(std::size_t max_event_bytes = 16 << 20) : max_event_bytes_(max_event_bytes) {}

  /// Calls `on_event` for every event that `bytes` completes; a false from it stops the rest of
  /// this call. Errors: kResourceExhausted when one event or line is larger than the limit; the
  /// parser is then of no further use.
  Status Push(std::string_view bytes, const std::function<bool(SseEvent&&)>& on_event);

 private:
  bool EndLine(const std::function<bool(SseEvent&&)>& on_event);
  void Field(std::string_view name, std::string_view value);

  const std::size_t max_event_bytes_;
  std::string line_;
  std::string type_;
  std::string data_;
  std::string last_id_;
  bool has_data_ = false;
  bool after_cr_ = false;
  bool first_line_ = true;
};

/// "data: `payload`\n\n". Precondition: the payload has no line break (one JSON text).
std::string SseData(std::string_view payload);
/// ": `text`\n\n", which keeps a connection alive and is no event.
std::string SseComment(std::string_view text);

}  // namespace holmes::net
