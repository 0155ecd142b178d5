#include "kernels/linear/slice.h"

#include <cmath>
#include <cstring>

#include "tensor/half.h"

namespace holmes::kernels {
namespace {

constexpr int kLanes = PackedMatrix::kPanelRows;
constexpr int kInputs = PackedMatrix::kSliceInputs;

template <typename T>
void Put(std::byte* base, std::int64_t index, T value) {
  std::memcpy(base + index * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

template <typename T>
T Get(const std::byte* base, std::int64_t index) {
  T value;
  std::memcpy(&value, base + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

/// Eight 4-bit values per dword: input 8 i + j of a lane is bits [4 j, 4 j + 4) of dword [i][lane].
void PutNibbles(std::byte* base, int lane, const std::int8_t* q) {
  for (int i = 0; i < kInputs / 8; ++i) {
    std::uint32_t word = 0;
    for (int j = 0; j < 8; ++j) word |= static_cast<std::uint32_t>(q[8 * i + j] & 15) << (4 * j);
    Put(base, i * kLanes + lane, word);
  }
}

int GetNibble(const std::byte* base, int lane, int input) {
  return static_cast<int>(Get<std::uint32_t>(base, input / 8 * kLanes + lane) >> (4 * (input % 8)) &
                          15U);
}

/// Where kInt8 keeps an input: four per dword.
std::int64_t BiasedByte(int lane, int input) { return (input / 4 * kLanes + lane) * 4 + input % 4; }

}  // namespace

void StoreLane(PanelFormat format, const SliceValues& values, int lane, MutablePanelSlice slice) {
  switch (format) {
    case PanelFormat::kF32:
      for (int i = 0; i < kInputs; ++i) Put(slice.body, i * kLanes + lane, values.value[i]);
      return;
    case PanelFormat::kF16:
    case PanelFormat::kBF16:
      for (int i = 0; i < kInputs; ++i) Put(slice.body, i * kLanes + lane, values.bits[i]);
      return;
    case PanelFormat::kInt8:
      Put(slice.head, lane, values.half_scale);
      for (int i = 0; i < kInputs; ++i)
        Put(slice.body, BiasedByte(lane, i), static_cast<std::uint8_t>(values.q[i] + 128));
      return;
    case PanelFormat::kInt8x16:
      for (int s = 0; s < 2; ++s) Put(slice.head, s * kLanes + lane, values.scale[s]);
      for (int i = 0; i < kInputs; ++i) Put(slice.body, i * kLanes + lane, values.q[i]);
      return;
    case PanelFormat::kNibble:
      Put(slice.head, lane, values.half_scale);
      Put(slice.head, kLanes + lane, values.half_offset);
      PutNibbles(slice.body, lane, values.q);
      return;
    case PanelFormat::kNibbleF:
      Put(slice.head, lane, values.scale[0]);
      Put(slice.head, kLanes + lane, values.offset);
      PutNibbles(slice.body, lane, values.q);
      return;
  }
}

void LoadLane(PanelFormat format, PanelSlice slice, int lane, float* weights) {
  const auto half = [&](std::int64_t at) {
    return tensor::HalfToFloat(Get<std::uint16_t>(slice.head, at));
  };
  for (int i = 0; i < kInputs; ++i) {
    const std::int64_t at = i * kLanes + lane;
    switch (format) {
      case PanelFormat::kF32:
        weights[i] = Get<float>(slice.body, at);
        break;
      case PanelFormat::kF16:
        weights[i] = tensor::HalfToFloat(Get<std::uint16_t>(slice.body, at));
        break;
      case PanelFormat::kBF16:
        weights[i] = tensor::BFloat16ToFloat(Get<std::uint16_t>(slice.body, at));
        break;
      case PanelFormat::kInt8: {
        // d q written as the vector kernels compute it (panel_avx512.cc says why): every step is
        // exact for a finite d.
        const float v =
            0x1p15F + static_cast<float>(Get<std::uint8_t>(slice.body, BiasedByte(lane, i)));
        weights[i] = std::fma(half(lane), v, half(lane) * -(0x1p15F + 128.0F));
        break;
      }
      case PanelFormat::kInt8x16:
        weights[i] = Get<float>(slice.head, i / 16 * kLanes + lane) *
                     static_cast<float>(Get<std::int8_t>(slice.body, at));
        break;
      case PanelFormat::kNibble:
        weights[i] = std::fma(
            half(lane), static_cast<float>(GetNibble(slice.body, lane, i)), half(kLanes + lane));
        break;
      case PanelFormat::kNibbleF:
        weights[i] = std::fma(Get<float>(slice.head, lane),
                              static_cast<float>(GetNibble(slice.body, lane, i)),
                              Get<float>(slice.head, kLanes + lane));
        break;
    }
  }
}

}  // namespace holmes::kernels
