/// GGUF from arbitrary bytes: parse, then read everything that the parser calls valid.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "weights/gguf.h"
#include "weights/gguf_vocab.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holmes::weights;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto file = GgufFile::Parse(bytes, "fuzz.gguf");
  if (!file.ok()) return 0;
  volatile std::size_t sink = 0;
  for (const GgufEntry& entry : file->entries()) {
    HOLMES_CHECK(file->Find(entry.key) == &entry.value);
    if (const auto strings = entry.value.Strings()) sink = sink + strings->size();
    if (const auto numbers = entry.value.Numbers()) sink = sink + numbers->size();
    if (const auto text = entry.value.String(); text && !text->empty())
      sink = sink + static_cast<unsigned char>(text->back());
    if (entry.value.Number() || entry.value.Integer() || entry.value.Bool()) sink = sink + 1;
  }
  for (const GgufTensor& tensor : file->tensors()) {
    HOLMES_CHECK(!tensor.bytes.empty());
    sink = sink + std::to_integer<std::size_t>(tensor.bytes.front()) +
           std::to_integer<std::size_t>(tensor.bytes.back());
  }
  const auto vocab = ReadGgufVocab(*file, "fuzz.gguf");
  if (vocab.ok()) {
    for (const auto id : vocab->end_of_generation)
      HOLMES_CHECK(id >= 0 && static_cast<std::size_t>(id) < vocab->tokens.size());
  }
  const auto ends = ReadGgufEndIds(*file, "fuzz.gguf");
  if (ends.ok()) sink = sink + ends->size();
  return 0;
}
