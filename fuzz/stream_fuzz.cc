// Detokenizer and stop strings: pieces given out equal the whole.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "text/stop_matcher.h"
#include "text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = size / 4;
  const holmes::text::StopSet set(
      {std::string(bytes.substr(0, cut)), std::string(bytes.substr(0, cut / 2))});
  holmes::text::Utf8Stream stream;
  holmes::text::StopMatcher matcher(set);
  std::string whole;
  std::string sent;
  for (std::size_t at = cut; at < size; at += 1 + size % 5) {
    const std::string piece = stream.Push(bytes.substr(at, 1 + size % 5));
    if (!holmes::text::IsValidUtf8(piece)) std::abort();
    whole += piece;
    sent += matcher.Push(piece);
  }
  const std::string rest = stream.Flush();
  whole += rest;
  sent += matcher.Push(rest);
  if (!matcher.matched()) sent += matcher.Flush();
  if (whole != holmes::text::ReplaceInvalidUtf8(bytes.substr(cut))) std::abort();
  if (!whole.starts_with(sent) || (!matcher.matched() && sent != whole)) std::abort();
  for (const std::string& stop : set.strings()) {
    if (sent.find(stop) != std::string::npos) std::abort();
  }
  return 0;
}
