#include "net/sse.h"

#include <fmt/format.h>

#include <utility>

namespace holmes::net {

Status SseParser::Push(std::string_view bytes, const std::function<bool(SseEvent&&)>& on_event) {
  while (!bytes.empty()) {
    if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const std::size_t end = bytes.find_first_of("\r\n");
    const std::string_view part = bytes.substr(0, end);
    if (line_.size() + data_.size() + part.size() > max_event_bytes_) {
      return base::ResourceExhaustedError(fmt::format(
          "an event of the stream is larger than {} bytes; this does not look like an event stream",
          max_event_bytes_));
    }
    line_ += part;
    if (end == std::string_view::npos) return OkStatus();
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (!EndLine(on_event)) return OkStatus();
  }
  return OkStatus();
}

bool SseParser::EndLine(const std::function<bool(SseEvent&&)>& on_event) {
  const std::string line = std::exchange(line_, {});
  std::string_view view = line;
  if (std::exchange(first_line_, false) && view.starts_with("\xEF\xBB\xBF")) view.remove_prefix(3);
  if (!view.empty()) {
    const std::size_t colon = view.find(':');
    if (colon == 0) return true;  // a comment
    std::string_view value = colon == std::string_view::npos ? "" : view.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    Field(view.substr(0, colon), value);
    return true;
  }
  SseEvent event{std::exchange(type_, {}), std::exchange(data_, {}), last_id_};
  return !std::exchange(has_data_, false) || on_event(std::move(event));
}

void SseParser::Field(std::string_view name, std::string_view value) {
  if (name == "data") {
    if (has_data_) data_ += '\n';
    data_ += value;
    has_data_ = true;
  } else if (name == "event") {
    type_ = value;
  } else if (name == "id" && value.find('\0') == std::string_view::npos) {
    last_id_ = value;
  }
}

std::string SseData(std::string_view payload) { return fmt::format("data: {}\n\n", payload); }
std::string SseComment(std::string_view text) { return fmt::format(": {}\n\n", text); }

}  // namespace holmes::net
