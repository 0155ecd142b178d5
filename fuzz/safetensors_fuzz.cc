/// Safetensors from arbitrary bytes: parse, then touch every tensor.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "weights/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holmes::weights;
  const auto entries =
      ParseSafetensors({reinterpret_cast<const std::byte*>(data), size}, "fuzz.safetensors");
  if (!entries.ok()) return 0;
  volatile std::size_t sink = 0;
  std::size_t total = 0;
  for (const SafetensorsEntry& entry : *entries) {
    total += entry.bytes.size();
    if (!entry.bytes.empty())
      sink = sink + std::to_integer<std::size_t>(entry.bytes.front()) +
             std::to_integer<std::size_t>(entry.bytes.back());
  }
  HOLMES_CHECK(total <= size);
  return 0;
}
