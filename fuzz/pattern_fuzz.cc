// Normal forms and patterns: normalizing twice changes nothing; a pattern from the input cuts any
// text without losing a byte, or is refused.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holmes::text;
  holmes::base::SetLogLevel(holmes::base::LogLevel::kError);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = bytes.substr(0, 60).find('\0');
  const std::string text = ReplaceInvalidUtf8(cut < size ? bytes.substr(cut + 1, 400) : bytes);
  for (const NormalForm form : {NormalForm::kNfc, NormalForm::kNfkc}) {
    const std::string once = Normalize(text, form);
    if (!IsValidUtf8(once) || Normalize(once, form) != once) std::abort();
  }
  if (cut == std::string_view::npos) return 0;
  const auto pre_tokenizer = PreTokenizer::Create(
      {{PreTokenStep::Kind::kRegexIsolated, std::string(bytes.substr(0, cut))}});
  if (!pre_tokenizer.ok()) return 0;
  std::vector<std::string_view> pieces;
  (*pre_tokenizer)->Split(text, pieces);
  std::string joined;
  for (const std::string_view piece : pieces) {
    if (piece.empty() || !IsValidUtf8(piece)) std::abort();
    joined += piece;
  }
  if (joined != text) std::abort();
  return 0;
}
