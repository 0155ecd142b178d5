// tokenizer.json: a file gives a tokenizer that works on any text, or an error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "text/tokenizer.h"
#include "weights/tokenizer_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto spec = holmes::weights::ReadTokenizerJson(bytes);
  if (!spec.ok()) return 0;
  const auto tokenizer = holmes::text::Tokenizer::Create(*std::move(spec));
  if (!tokenizer.ok()) return 0;
  const auto ids = (*tokenizer)->Encode(bytes.substr(0, 200), {.parse_special = true});
  static_cast<void>((*tokenizer)->DecodeBytes(ids, true));
  return 0;
}
