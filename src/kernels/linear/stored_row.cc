#include "kernels/linear/stored_row.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "tensor/half.h"

namespace holmes::kernels {
namespace {

using tensor::HalfToFloat;

std::uint16_t U16(const std::byte* at) {
  std::uint16_t value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

unsigned U8(const std::byte* at) { return static_cast<unsigned>(*at); }

/// Sixteen bytes: low nibbles are inputs 0 to 15, high ones 16 to 31.
void SplitNibbles(const std::byte* bytes, std::uint8_t* u) {
  for (int i = 0; i < 16; ++i) {
    u[i] = static_cast<std::uint8_t>(U8(bytes + i) & 15U);
    u[16 + i] = static_cast<std::uint8_t>(U8(bytes + i) >> 4);
  }
}

/// Six-bit scale and minimum `j` of a Q4_K block's 12 bytes.
void ScaleAndMin(const std::byte* s, int j, unsigned& scale, unsigned& min) {
  if (j < 4) {
    scale = U8(s + j) & 63U;
    min = U8(s + j + 4) & 63U;
    return;
  }
  scale = (U8(s + j + 4) & 15U) | (U8(s + j - 4) >> 6) << 4;
  min = U8(s + j + 4) >> 4 | (U8(s + j) >> 6) << 4;
}

SliceValues FromQ4K(const std::byte* block, int sub) {
  SliceValues out;
  unsigned scale = 0;
  unsigned min = 0;
  ScaleAndMin(block + 4, sub, scale, min);
  out.scale[0] = HalfToFloat(U16(block)) * static_cast<float>(scale);
  out.offset = -(HalfToFloat(U16(block + 2)) * static_cast<float>(min));
  // Two slices share 32 bytes: the even one has the low nibbles.
  const std::byte* bytes = block + 16 + sub / 2 * 32;
  for (int i = 0; i < 32; ++i)
    out.u[i] = static_cast<std::uint8_t>(sub % 2 == 0 ? U8(bytes + i) & 15U : U8(bytes + i) >> 4);
  return out;
}

SliceValues FromQ6K(const std::byte* block, int sub) {
  SliceValues out;
  // 256 inputs in halves of 128: slices 0 to 3 of a half share its 64 low bytes and 32 high bytes.
  const int half = sub / 4;
  const int quarter = sub % 4;
  const std::byte* low = block + half * 64 + quarter % 2 * 32;
  const std::byte* high = block + 128 + half * 32;
  const float d = HalfToFloat(U16(block + 208));
  for (int i = 0; i < 32; ++i) {
    const unsigned nibble = quarter < 2 ? U8(low + i) & 15U : U8(low + i) >> 4;
    out.u[i] = static_cast<std::uint8_t>(nibble | (U8(high + i) >> (2 * quarter) & 3U) << 4);
  }
  for (int s = 0; s < 2; ++s) {
    out.scale[s] =
        d * static_cast<float>(static_cast<std::int8_t>(block[192 + half * 8 + quarter * 2 + s]));
  }
  return out;
}

}  // namespace

StoredRow::StoredRow(const WeightView& view, std::int64_t row) : type_(view.type), k_(view.k) {
  const tensor::BlockTypeInfo& info = tensor::InfoOf(view.type);
  row_ = view.bytes.data() + row * (view.k / info.block_elements * info.block_bytes);
}

SliceValues StoredRow::Slice(std::int64_t s) const {
  using tensor::BlockType;
  SliceValues out;
  const std::int64_t count = std::min<std::int64_t>(32, k_ - 32 * s);
  switch (type_) {
    case BlockType::kF32:
      std::memcpy(out.value, row_ + 32 * s * 4, static_cast<std::size_t>(count) * 4);
      return out;
    case BlockType::kF16:
    case BlockType::kBF16:
      std::memcpy(out.bits, row_ + 32 * s * 2, static_cast<std::size_t>(count) * 2);
      return out;
    case BlockType::kQ8_0:
      out.half_scale = U16(row_ + 34 * s);
      for (int i = 0; i < 32; ++i)
        out.u[i] = static_cast<std::uint8_t>(U8(row_ + 34 * s + 2 + i) ^ 128U);
      return out;
    case BlockType::kQ4_0:
      out.half_scale = U16(row_ + 18 * s);
      SplitNibbles(row_ + 18 * s + 2, out.u);
      return out;
    case BlockType::kQ4_1:
      out.half_scale = U16(row_ + 20 * s);
      out.half_offset = U16(row_ + 20 * s + 2);
      SplitNibbles(row_ + 20 * s + 4, out.u);
      return out;
    case BlockType::kQ4_K:
      return FromQ4K(row_ + 144 * (s / 8), static_cast<int>(s % 8));
    case BlockType::kQ6_K:
      return FromQ6K(row_ + 210 * (s / 8), static_cast<int>(s % 8));
    default:
      break;
  }
  base::CheckFailed("a packable type", "PackedMatrix::Pack refuses the others");
}

}  // namespace holmes::kernels
