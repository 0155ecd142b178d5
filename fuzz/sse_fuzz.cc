// A stream read whole and read byte by byte has the same events.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "net/sse.h"

namespace {

std::string Read(std::string_view bytes, std::size_t step) {
  holmes::net::SseParser parser(4096);
  std::string out;
  while (!bytes.empty()) {
    const auto status = parser.Push(bytes.substr(0, step), [&](holmes::net::SseEvent&& event) {
      out += event.type + "|" + event.id + "|" + event.data + "\n";
      return true;
    });
    if (!status.ok()) return out + "refused";
    bytes.remove_prefix(std::min(step, bytes.size()));
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  HOLMES_CHECK(Read(bytes, bytes.size() + 1) == Read(bytes, 1));
  return 0;
}
