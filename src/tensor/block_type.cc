#include "tensor/block_type.h"

#include <array>

#include "base/check.h"

namespace holmes::tensor {
namespace {

constexpr std::array<BlockTypeInfo, 13> kTypes = {{
    {BlockType::kF32, "F32", 1, 4},
    {BlockType::kF16, "F16", 1, 2},
    {BlockType::kQ4_0, "Q4_0", 32, 18},
    {BlockType::kQ4_1, "Q4_1", 32, 20},
    {BlockType::kQ5_0, "Q5_0", 32, 22},
    {BlockType::kQ5_1, "Q5_1", 32, 24},
    {BlockType::kQ8_0, "Q8_0", 32, 34},
    {BlockType::kQ2_K, "Q2_K", 256, 84},
    {BlockType::kQ3_K, "Q3_K", 256, 110},
    {BlockType::kQ4_K, "Q4_K", 256, 144},
    {BlockType::kQ5_K, "Q5_K", 256, 176},
    {BlockType::kQ6_K, "Q6_K", 256, 210},
    {BlockType::kBF16, "BF16", 1, 2},
}};

}  // namespace

std::optional<BlockTypeInfo> FindBlockType(std::uint32_t ggml_type) {
  for (const BlockTypeInfo& info : kTypes) {
    if (static_cast<std::uint32_t>(info.type) == ggml_type) return info;
  }
  return std::nullopt;
}

const BlockTypeInfo& InfoOf(BlockType type) {
  for (const BlockTypeInfo& info : kTypes) {
    if (info.type == type) return info;
  }
  base::CheckFailed("known block type", "a BlockType outside the table");
}

}  // namespace holmes::tensor
