/// GGUF versions 2 and 3, read from bytes:
/// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
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

enum class GgufType : std::uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

/// "UINT32"; "unknown type" for a number outside the list.
std::string_view GgufTypeName(GgufType type);
/// Bytes of one value; 0 for strings, arrays and numbers outside the list.
int GgufScalarBytes(GgufType type);

/// A checked metadata value. Borrows the file's bytes.
class GgufValue {
 public:
  GgufValue() = default;
  /// `bytes`: exactly the encoded value; for an array, its elements without the head.
  GgufValue(GgufType type, GgufType element, std::uint64_t count, std::span<const std::byte> bytes)
      : type_(type), element_(element), count_(count), bytes_(bytes) {}

  GgufType type() const { return type_; }
  /// Of an array; otherwise the same as type().
  GgufType element_type() const { return element_; }
  /// Elements of an array; otherwise 1.
  std::uint64_t count() const { return count_; }

  /// Each is empty when the value is of another kind. Number covers every integer and float type
  /// (64-bit integers rounded to double).
  std::optional<double> Number() const;
  std::optional<std::int64_t> Integer() const;
  std::optional<bool> Bool() const;
  std::optional<std::string_view> String() const;
  /// One-dimensional arrays; cost: linear.
  std::optional<std::vector<double>> Numbers() const;
  std::optional<std::vector<std::string_view>> Strings() const;

 private:
  GgufType type_ = GgufType::kUint8;
  GgufType element_ = GgufType::kUint8;
  std::uint64_t count_ = 0;
  std::span<const std::byte> bytes_;
};

struct GgufEntry {
  std::string_view key;
  GgufValue value;
};

struct GgufTensor {
  std::string_view name;
  std::uint32_t ggml_type = 0;
  /// Empty for the integer and double types, which are checked but not among the weights that
  /// Holmes reads.
  std::optional<tensor::BlockType> type;
  /// In the file's order: innermost first.
  std::vector<std::uint64_t> dims;
  std::span<const std::byte> bytes;
};

/// Limits beyond those that the file's own length sets.
inline constexpr int kGgufMaxArrayDepth = 4;
inline constexpr std::uint64_t kGgufMaxEntries = 1u << 16;
inline constexpr std::uint64_t kGgufMaxTensors = 1u << 20;
inline constexpr std::uint64_t kGgufMaxKeyBytes = 65535;
inline constexpr std::uint64_t kGgufMaxTensorNameBytes = 64;
inline constexpr std::uint32_t kGgufMaxAlignment = 1u << 20;

/// A parsed file. Borrows `bytes` for its whole life; immutable and thread-safe.
class GgufFile {
 public:
  /// `file_name` is used in messages only. Memory: linear in the number of entries and tensors,
  /// each of which takes bytes of the file; values are views. Errors: kInvalidArgument (not GGUF at
  /// all), kDataLoss (truncated or inconsistent; names file, byte and expectation), kUnimplemented
  /// (version 1, big-endian, a tensor type that is not read; by name).
  static StatusOr<GgufFile> Parse(std::span<const std::byte> bytes, std::string_view file_name);

  std::uint32_t version() const { return version_; }
  std::uint32_t alignment() const { return alignment_; }
  /// Where tensor data starts in the file.
  std::uint64_t data_offset() const { return data_offset_; }
  std::span<const GgufEntry> entries() const { return entries_; }
  std::span<const GgufTensor> tensors() const { return tensors_; }
  /// Null when absent. Cost: logarithmic.
  const GgufValue* Find(std::string_view key) const;

 private:
  friend class GgufParser;
  std::uint32_t version_ = 0;
  std::uint32_t alignment_ = 32;
  std::uint64_t data_offset_ = 0;
  std::vector<GgufEntry> entries_;
  std::vector<std::uint32_t> by_key_;  // indices of entries_, sorted by key
  std::vector<GgufTensor> tensors_;
};

}  // namespace holmes::weights
