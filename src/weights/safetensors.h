/// The safetensors format, read from bytes: https://github.com/huggingface/safetensors#format
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/block_type.h"

namespace holmes::weights {

/// Longest JSON header that is read. Real ones take about 110 bytes a tensor.
inline constexpr std::uint64_t kSafetensorsMaxHeaderBytes = 16u << 20;
inline constexpr std::size_t kSafetensorsMaxRank = 8;
inline constexpr std::size_t kSafetensorsMaxNameBytes = 1024;

struct SafetensorsEntry {
  std::string name;
  /// Empty for integers and booleans, which are checked but not among the weights that Holmes
  /// reads.
  std::optional<tensor::BlockType> type;
  /// Outermost first; empty for a scalar; an extent may be 0.
  std::vector<std::int64_t> shape;
  /// Any alignment: the format asks for none.
  std::span<const std::byte> bytes;
};

/// Reads one file; the entries borrow `bytes` and come in the order of the header. `file_name` is
/// used in messages only. Memory: linear in the header, whose length is limited. Errors:
/// kInvalidArgument (not a safetensors file), kDataLoss (truncated, or offsets, shapes and types
/// that do not agree: data must follow each other without hole or overlap and fill the file),
/// kUnimplemented (a float type that is not read, or an unknown type; by name).
StatusOr<std::vector<SafetensorsEntry>> ParseSafetensors(std::span<const std::byte> bytes,
                                                         std::string_view file_name);

}  // namespace holmes::weights
