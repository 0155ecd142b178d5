/// Element and block formats of stored tensors, numbered as in GGUF
/// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace holmes::tensor {

enum class BlockType : std::uint8_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kBF16 = 30,
};

struct BlockTypeInfo {
  BlockType type;
  std::string_view name;  // "Q4_1"
  int block_elements;     // elements along the innermost dimension that share one block
  int block_bytes;
};

/// Empty for a number that is not in the list above.
std::optional<BlockTypeInfo> FindBlockType(std::uint32_t ggml_type);
const BlockTypeInfo& InfoOf(BlockType type);

}  // namespace holmes::tensor
