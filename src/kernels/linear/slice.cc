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
  return static_cast<int>(Get<std::uint32_t>(base, input / 8 * kLanes + lane) >> (4 * (input % 8)) & 15U);
}

}  // namespace

std::int64_t SliceBytes(PanelFormat format) {
  switch (format) {
    case PanelFormat::kF32: return kInputs * kLanes * 4;
    case PanelFormat::kF16:
    case PanelFormat::kBF16: return kInputs * kLanes * 2;
    case PanelFormat::kInt8: return kLanes * 2 + kInputs * kLanes;
    case PanelFormat::kInt8x16: return 2 * kLanes * 4 + kInputs * kLanes;
    case PanelFormat::kNibble: return 2 * kLanes * 2 + kInputs * kLanes / 2;
    case PanelFormat::kNibbleF: return 2 * kLanes * 4 + kInputs * kLanes / 2;
  }
  return 0;
}

void StoreLane(PanelFormat format, const SliceValues& values, int lane, std::byte* slice) {
  switch (format) {
    case PanelFormat::kF32:
      for (int i = 0; i < kInputs; ++i) Put(slice, i * kLanes + lane, values.value[i]);
      return;
    case PanelFormat::kF16:
    case PanelFormat::kBF16:
      for (int i = 0; i < kInputs; ++i) Put(slice, i * kLanes + lane, values.bits[i]);
      return;
    case PanelFormat::kInt8:
      Put(slice, lane, values.half_scale);
      for (int i = 0; i < kInputs; ++i) Put(slice + kLanes * 2, i * kLanes + lane, values.q[i]);
      return;
    case PanelFormat::kInt8x16:
      for (int s = 0; s < 2; ++s) Put(slice, s * kLanes + lane, values.scale[s]);
      for (int i = 0; i < kInputs; ++i) Put(slice + 2 * kLanes * 4, i * kLanes + lane, values.q[i]);
      return;
    case PanelFormat::kNibble:
      Put(slice, lane, values.half_scale);
      Put(slice, kLanes + lane, values.half_offset);
      PutNibbles(slice + 2 * kLanes * 2, lane, values.q);
      return;
    case PanelFormat::kNibbleF:
      Put(slice, lane, values.scale[0]);
      Put(slice, kLanes + lane, values.offset);
      PutNibbles(slice + 2 * kLanes * 4, lane, values.q);
      return;
  }
}

void LoadLane(PanelFormat format, const std::byte* slice, int lane, float* weights) {
  for (int i = 0; i < kInputs; ++i) {
    const std::int64_t at = i * kLanes + lane;
    switch (format) {
      case PanelFormat::kF32: weights[i] = Get<float>(slice, at); break;
      case PanelFormat::kF16: weights[i] = tensor::HalfToFloat(Get<std::uint16_t>(slice, at)); break;
      case PanelFormat::kBF16: weights[i] = tensor::BFloat16ToFloat(Get<std::uint16_t>(slice, at)); break;
      case PanelFormat::kInt8:
        weights[i] = tensor::HalfToFloat(Get<std::uint16_t>(slice, lane)) * static_cast<float>(Get<std::int8_t>(slice + kLanes * 2, at));
        break;
      case PanelFormat::kInt8x16:
        weights[i] = Get<float>(slice, i / 16 * kLanes + lane) * static_cast<float>(Get<std::int8_t>(slice + 2 * kLanes * 4, at));
        break;
      case PanelFormat::kNibble:
        weights[i] = std::fma(tensor::HalfToFloat(Get<std::uint16_t>(slice, lane)), static_cast<float>(GetNibble(slice + 2 * kLanes * 2, lane, i)),
                              tensor::HalfToFloat(Get<std::uint16_t>(slice, kLanes + lane)));
        break;
      case PanelFormat::kNibbleF:
        weights[i] = std::fma(Get<float>(slice, lane), static_cast<float>(GetNibble(slice + 2 * kLanes * 4, lane, i)), Get<float>(slice, kLanes + lane));
        break;
    }
  }
}

}  // namespace holmes::kernels
