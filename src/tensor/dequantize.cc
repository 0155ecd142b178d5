#include "tensor/dequantize.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "tensor/half.h"

namespace holmes::tensor {
namespace {

static_assert(std::endian::native == std::endian::little,
              "blocks are read as they lie in the file");

constexpr int kSmallBlock = 32;
constexpr int kSuperBlock = 256;

std::uint8_t Byte(const std::byte* at) { return std::to_integer<std::uint8_t>(*at); }
std::int8_t SignedByte(const std::byte* at) { return static_cast<std::int8_t>(Byte(at)); }
int LowNibble(std::uint8_t byte) { return byte & 0x0f; }
int HighNibble(std::uint8_t byte) { return byte >> 4; }

template <typename T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

float Half(const std::byte* at) { return HalfToFloat(Load<std::uint16_t>(at)); }

// One function per type: the block at `src` to block_elements floats at `dst`.

void F32(const std::byte* src, float* dst) { *dst = Load<float>(src); }
void F16(const std::byte* src, float* dst) { *dst = Half(src); }
void BF16(const std::byte* src, float* dst) { *dst = BFloat16ToFloat(Load<std::uint16_t>(src)); }

/// half d; int8 q[32].
void Q8_0(const std::byte* src, float* dst) {
  const float d = Half(src);
  for (int i = 0; i < kSmallBlock; ++i) dst[i] = static_cast<float>(SignedByte(src + 2 + i)) * d;
}

/// half d; 16 bytes whose low nibbles are elements 0 to 15 and high nibbles 16 to 31, each offset
/// by 8.
void Q4_0(const std::byte* src, float* dst) {
  const float d = Half(src);
  for (int i = 0; i < 16; ++i) {
    const std::uint8_t pair = Byte(src + 2 + i);
    dst[i] = d * static_cast<float>(LowNibble(pair) - 8);
    dst[i + 16] = d * static_cast<float>(HighNibble(pair) - 8);
  }
}

/// half d, m; nibbles as in Q4_0 without the offset.
void Q4_1(const std::byte* src, float* dst) {
  const float d = Half(src);
  const float m = Half(src + 2);
  for (int i = 0; i < 16; ++i) {
    const std::uint8_t pair = Byte(src + 4 + i);
    dst[i] = d * static_cast<float>(LowNibble(pair)) + m;
    dst[i + 16] = d * static_cast<float>(HighNibble(pair)) + m;
  }
}

/// Five-bit quant i of a Q5_0 or Q5_1 block: nibbles as in Q4_0, the fifth bits in element order.
int FiveBits(const std::byte* nibbles, std::uint32_t fifth_bits, int i) {
  const std::uint8_t pair = Byte(nibbles + i % 16);
  const int low = i < 16 ? LowNibble(pair) : HighNibble(pair);
  return low | static_cast<int>((fifth_bits >> i) & 1u) << 4;
}

/// half d; uint32 fifth bits; nibbles; offset by 16.
void Q5_0(const std::byte* src, float* dst) {
  const float d = Half(src);
  const auto fifth_bits = Load<std::uint32_t>(src + 2);
  for (int i = 0; i < kSmallBlock; ++i)
    dst[i] = d * static_cast<float>(FiveBits(src + 6, fifth_bits, i) - 16);
}

/// half d, m; uint32 fifth bits; nibbles.
void Q5_1(const std::byte* src, float* dst) {
  const float d = Half(src);
  const float m = Half(src + 2);
  const auto fifth_bits = Load<std::uint32_t>(src + 4);
  for (int i = 0; i < kSmallBlock; ++i)
    dst[i] = d * static_cast<float>(FiveBits(src + 8, fifth_bits, i)) + m;
}

/// 16 bytes of scale (low nibble) and minimum (high nibble) per 16 elements; 64 bytes of 2-bit
/// quants; half d, dmin. Each half of 128 elements owns 32 quant bytes: bits 0-1 of them are its
/// first 32 elements, bits 2-3 the next 32, and so on.
void Q2_K(const std::byte* src, float* dst) {
  const std::byte* const quants = src + 16;
  const float d = Half(src + 80);
  const float dmin = Half(src + 82);
  for (int i = 0; i < kSuperBlock; ++i) {
    const std::uint8_t scale = Byte(src + i / 16);
    const int q = Byte(quants + i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 3;
    dst[i] = d * static_cast<float>(LowNibble(scale)) * static_cast<float>(q) -
             dmin * static_cast<float>(HighNibble(scale));
  }
}

/// Scale j (of 16) of a Q3_K block, six bits offset by 32: four low bits in nibbles of bytes 0 to
/// 7, two high bits in bytes 8 to 11.
int Q3Scale(const std::byte* packed, int j) {
  const std::uint8_t pair = Byte(packed + j % 8);
  const int low = j < 8 ? LowNibble(pair) : HighNibble(pair);
  const int high = Byte(packed + 8 + j % 4) >> (j / 4 * 2) & 3;
  return (low | high << 4) - 32;
}

/// 32 bytes of third bits (set: no offset, clear: minus 4), 64 bytes of 2-bit quants laid out as in
/// Q2_K, 12 bytes of scales, half d.
void Q3_K(const std::byte* src, float* dst) {
  const std::byte* const quants = src + 32;
  const std::byte* const scales = src + 96;
  const float d = Half(src + 108);
  for (int i = 0; i < kSuperBlock; ++i) {
    const int low = Byte(quants + i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 3;
    const bool third_bit = (Byte(src + i % 32) >> (i / 32) & 1) != 0;
    dst[i] = d * static_cast<float>(Q3Scale(scales, i / 16)) *
             static_cast<float>(third_bit ? low : low - 4);
  }
}

struct ScaleMin {
  int scale;
  int min;
};

/// Six-bit scale and minimum j (of 8) of a Q4_K or Q5_K block. The first four are whole in bytes
/// 0-3 and 4-7; the others have their low nibbles in bytes 8-11 and their two high bits on top of
/// the first eight bytes.
ScaleMin KScaleMin(const std::byte* packed, int j) {
  if (j < 4) return {Byte(packed + j) & 63, Byte(packed + j + 4) & 63};
  const std::uint8_t low = Byte(packed + j + 4);
  return {LowNibble(low) | Byte(packed + j - 4) >> 6 << 4,
          HighNibble(low) | Byte(packed + j) >> 6 << 4};
}

/// half d, dmin; 12 bytes of scales; 128 bytes of nibbles: each 32 bytes hold 32 elements in the
/// low and the next 32 in the high nibbles.
void Q4_K(const std::byte* src, float* dst) {
  const float d = Half(src);
  const float dmin = Half(src + 2);
  for (int j = 0; j < 8; ++j) {
    const ScaleMin packed = KScaleMin(src + 4, j);
    const float scale = d * static_cast<float>(packed.scale);
    const float min = dmin * static_cast<float>(packed.min);
    const std::byte* const nibbles = src + 16 + j / 2 * 32;
    for (int i = 0; i < 32; ++i) {
      const int q = j % 2 == 0 ? LowNibble(Byte(nibbles + i)) : HighNibble(Byte(nibbles + i));
      dst[j * 32 + i] = scale * static_cast<float>(q) - min;
    }
  }
}

/// As Q4_K, with 32 bytes of fifth bits before the nibbles: bit j of byte i belongs to element 32 j
/// + i.
void Q5_K(const std::byte* src, float* dst) {
  const float d = Half(src);
  const float dmin = Half(src + 2);
  for (int j = 0; j < 8; ++j) {
    const ScaleMin packed = KScaleMin(src + 4, j);
    const float scale = d * static_cast<float>(packed.scale);
    const float min = dmin * static_cast<float>(packed.min);
    const std::byte* const nibbles = src + 48 + j / 2 * 32;
    for (int i = 0; i < 32; ++i) {
      const int low = j % 2 == 0 ? LowNibble(Byte(nibbles + i)) : HighNibble(Byte(nibbles + i));
      const int fifth_bit = Byte(src + 16 + i) >> j & 1;
      dst[j * 32 + i] = scale * static_cast<float>(low | fifth_bit << 4) - min;
    }
  }
}

/// 128 bytes of low nibbles, 64 bytes of high bit pairs, int8 scales[16], half d; quants offset
/// by 32. Each half of 128 elements owns 64 nibble bytes (low nibbles first, then high) and 32
/// bytes of pairs, as in Q2_K.
void Q6_K(const std::byte* src, float* dst) {
  const std::byte* const pairs = src + 128;
  const std::byte* const scales = src + 192;
  const float d = Half(src + 208);
  for (int i = 0; i < kSuperBlock; ++i) {
    const int half = i / 128;
    const int in_half = i % 128;
    const std::uint8_t nibbles = Byte(src + half * 64 + in_half % 64);
    const int low = in_half < 64 ? LowNibble(nibbles) : HighNibble(nibbles);
    const int high = Byte(pairs + half * 32 + i % 32) >> (in_half / 32 * 2) & 3;
    const float scale = d * static_cast<float>(SignedByte(scales + i / 16));
    dst[i] = scale * static_cast<float>((low | high << 4) - 32);
  }
}

template <auto Block>
void Row(const BlockTypeInfo& info, const std::byte* src, std::int64_t num_elements, float* dst) {
  const std::int64_t num_blocks = num_elements / info.block_elements;
  for (std::int64_t b = 0; b < num_blocks; ++b)
    Block(src + b * info.block_bytes, dst + b * info.block_elements);
}

}  // namespace

void DequantizeRow(BlockType type, const std::byte* src, std::int64_t num_elements, float* dst) {
  const BlockTypeInfo& info = InfoOf(type);
  HOLMES_DCHECK(num_elements >= 0 && num_elements % info.block_elements == 0,
                "a row is whole blocks");
  switch (type) {
    case BlockType::kF32:
      return Row<F32>(info, src, num_elements, dst);
    case BlockType::kF16:
      return Row<F16>(info, src, num_elements, dst);
    case BlockType::kBF16:
      return Row<BF16>(info, src, num_elements, dst);
    case BlockType::kQ8_0:
      return Row<Q8_0>(info, src, num_elements, dst);
    case BlockType::kQ4_0:
      return Row<Q4_0>(info, src, num_elements, dst);
    case BlockType::kQ4_1:
      return Row<Q4_1>(info, src, num_elements, dst);
    case BlockType::kQ5_0:
      return Row<Q5_0>(info, src, num_elements, dst);
    case BlockType::kQ5_1:
      return Row<Q5_1>(info, src, num_elements, dst);
    case BlockType::kQ2_K:
      return Row<Q2_K>(info, src, num_elements, dst);
    case BlockType::kQ3_K:
      return Row<Q3_K>(info, src, num_elements, dst);
    case BlockType::kQ4_K:
      return Row<Q4_K>(info, src, num_elements, dst);
    case BlockType::kQ5_K:
      return Row<Q5_K>(info, src, num_elements, dst);
    case BlockType::kQ6_K:
      return Row<Q6_K>(info, src, num_elements, dst);
  }
}

}  // namespace holmes::tensor
