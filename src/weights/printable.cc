#include "weights/printable.h"

#include <fmt/format.h>

namespace holmes::weights {

std::string Quoted(std::string_view text) {
  constexpr std::size_t kMaxBytes = 80;
  std::string out = "'";
  for (const char c : text.substr(0, kMaxBytes)) {
    if (c >= 0x20 && c < 0x7f) {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  out += text.size() > kMaxBytes ? "...'" : "'";
  return out;
}

}  // namespace holmes::weights
