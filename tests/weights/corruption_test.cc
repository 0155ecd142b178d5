/// Small valid files with every bit flipped in turn: any Status will do, a crash or a read outside
/// the file will not (run under the sanitizers, too).
#include <gtest/gtest.h>

#include "weights/gguf.h"
#include "weights/gguf_builder.h"
#include "weights/gguf_vocab.h"
#include "weights/safetensors.h"

namespace holmes::weights {
namespace {

template <typename Visit>
void EveryBitFlipped(const std::string& bytes, Visit visit) {
  // The heap block has exactly the file's size, so that the address sanitizer sees a read outside.
  std::vector<char> copy(bytes.begin(), bytes.end());
  for (std::size_t i = 0; i < copy.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      copy[i] = static_cast<char>(copy[i] ^ (1 << bit));
      visit(BytesOf({copy.data(), copy.size()}));
      copy[i] = static_cast<char>(copy[i] ^ (1 << bit));
    }
  }
}

std::uint64_t Touch(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0;
  for (const std::byte byte : bytes) sum += std::to_integer<std::uint64_t>(byte);
  return sum;
}

TEST(CorruptionTest, GgufSurvivesEveryBitFlip) {
  int accepted = 0;
  std::uint64_t sum = 0;
  EveryBitFlipped(SmallGguf().Build(), [&](std::span<const std::byte> bytes) {
    const auto file = GgufFile::Parse(bytes, "x.gguf");
    if (!file.ok()) return;
    ++accepted;
    for (const GgufTensor& tensor : file->tensors()) sum += Touch(tensor.bytes);
    for (const GgufEntry& entry : file->entries()) {
      sum += entry.value.Strings().value_or(std::vector<std::string_view>()).size();
      sum += entry.value.Numbers().value_or(std::vector<double>()).size();
      sum += entry.value.String().value_or("").size();
    }
    if (const auto vocab = ReadGgufVocab(*file, "x.gguf"); vocab.ok()) {
      for (const auto id : vocab->end_of_generation)
        ASSERT_LT(static_cast<std::size_t>(id), vocab->tokens.size());
    }
    if (const auto ends = ReadGgufEndIds(*file, "x.gguf"); ends.ok()) sum += ends->size();
  });
  EXPECT_GT(accepted, 0);  // flips inside names, texts and data
  EXPECT_GT(sum, 0u);
}

TEST(CorruptionTest, SafetensorsSurvivesEveryBitFlip) {
  const std::string header =
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[3],"data_offsets":[8,14]}})";
  int accepted = 0;
  std::uint64_t sum = 0;
  EveryBitFlipped(
      ByteWriter().Put<std::uint64_t>(header.size()).Raw(header).Raw(std::string(14, 'd')).bytes(),
      [&](std::span<const std::byte> bytes) {
        const auto entries = ParseSafetensors(bytes, "x.safetensors");
        if (!entries.ok()) return;
        ++accepted;
        for (const SafetensorsEntry& entry : *entries) sum += Touch(entry.bytes);
      });
  EXPECT_GT(accepted, 0);
  EXPECT_GT(sum, 0u);
}

}  // namespace
}  // namespace holmes::weights
