#include "text/byte_alphabet.h"

#include "text/utf8.h"

namespace holmes::text {
namespace {

bool StandsForItself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) ||
         (byte >= 0xAE && byte <= 0xFF);
}

std::array<char32_t, 256> CodePoints() {
  std::array<char32_t, 256> out{};
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte)
    out[static_cast<std::size_t>(byte)] =
        StandsForItself(byte) ? static_cast<char32_t>(byte) : next++;
  return out;
}

}  // namespace

const std::array<std::string, 256>& ByteAlphabet() {
  static const std::array<std::string, 256> alphabet = [] {
    std::array<std::string, 256> out;
    const std::array<char32_t, 256> points = CodePoints();
    for (std::size_t i = 0; i < 256; ++i) AppendUtf8(points[i], out[i]);
    return out;
  }();
  return alphabet;
}

std::optional<std::string> BytesOfAlphabet(std::string_view token) {
  static const std::array<int, 0x180> byte_of = [] {
    std::array<int, 0x180> out{};
    out.fill(-1);
    const std::array<char32_t, 256> points = CodePoints();
    for (std::size_t i = 0; i < 256; ++i) out[points[i]] = static_cast<int>(i);
    return out;
  }();
  std::string out;
  while (!token.empty()) {
    const Utf8Step step = NextUtf8(token);
    const bool known = step.kind == Utf8Step::Kind::kCharacter &&
                       step.code_point < byte_of.size() && byte_of[step.code_point] >= 0;
    if (!known) return std::nullopt;
    out.push_back(static_cast<char>(byte_of[step.code_point]));
    token.remove_prefix(static_cast<std::size_t>(step.length));
  }
  return out;
}

}  // namespace holmes::text
