#include "tensor/dequantize.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

namespace holmes::tensor {
namespace {

/// tests/tensor/data/blocks.bin, written by tools/goldens/make_block_goldens.py.
struct Golden {
  BlockType type;
  std::vector<std::byte> bytes;
  std::vector<float> floats;
};

std::vector<Golden> ReadGoldens() {
  std::ifstream file(HOLMES_TEST_DATA_DIR "/blocks.bin", std::ios::binary);
  const std::string data((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<Golden> goldens;
  std::size_t at = 0;
  while (at + 12 <= data.size()) {
    std::uint32_t head[3];
    std::memcpy(head, data.data() + at, 12);
    Golden golden{.type = FindBlockType(head[0]).value().type,
                  .bytes = std::vector<std::byte>(head[1]),
                  .floats = std::vector<float>(head[2])};
    std::memcpy(golden.bytes.data(), data.data() + at + 12, head[1]);
    std::memcpy(golden.floats.data(), data.data() + at + 12 + head[1], head[2] * sizeof(float));
    at += 12 + head[1] + head[2] * sizeof(float);
    goldens.push_back(std::move(golden));
  }
  return goldens;
}

TEST(DequantizeTest, EqualsTheReferenceBitForBit) {
  const std::vector<Golden> goldens = ReadGoldens();
  std::set<BlockType> seen;
  for (const Golden& golden : goldens) {
    const BlockTypeInfo& info = InfoOf(golden.type);
    ASSERT_EQ(golden.bytes.size() / info.block_bytes * info.block_elements, golden.floats.size());
    std::vector<float> out(golden.floats.size(), -1.0f);
    DequantizeRow(
        golden.type, golden.bytes.data(), static_cast<std::int64_t>(out.size()), out.data());
    for (std::size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(out[i]),
                std::bit_cast<std::uint32_t>(golden.floats[i]))
          << info.name << " element " << i << ": " << out[i] << " instead of " << golden.floats[i];
    }
    seen.insert(golden.type);
  }
  EXPECT_EQ(seen.size(), 13u);
}

TEST(DequantizeTest, ReadsAtAnyAlignmentAndWritesNoMore) {
  for (const Golden& golden : ReadGoldens()) {
    const BlockTypeInfo& info = InfoOf(golden.type);
    std::vector<std::byte> shifted(info.block_bytes + 1);
    std::memcpy(shifted.data() + 1, golden.bytes.data(), info.block_bytes);
    std::vector<float> out(info.block_elements + 1, 123.0f);
    DequantizeRow(golden.type, shifted.data() + 1, info.block_elements, out.data());
    EXPECT_EQ(std::memcmp(out.data(), golden.floats.data(), info.block_elements * sizeof(float)), 0)
        << info.name;
    EXPECT_EQ(out.back(), 123.0f) << info.name;
    DequantizeRow(golden.type, shifted.data(), 0, nullptr);
  }
}

}  // namespace
}  // namespace holmes::tensor
