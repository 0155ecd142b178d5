#include "kernels/linear/slice.h"

#include <cmath>
#include <cstring>

#include "base/check.h"
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

/// Where a lane's input lies: four inputs per dword; in nibble formats the bytes of inputs 16 to 31
/// are the high halves of those of inputs 0 to 15.
std::int64_t ByteOf(int lane, int input) { return (input / 4 * kLanes + lane) * 4 + input % 4; }

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
    case PanelFormat::kNibbleMinus8:
      Put(slice.head, lane, values.half_scale);
      break;
    case PanelFormat::kInt8x16:
      for (int h = 0; h < 2; ++h) Put(slice.head, h * kLanes + lane, values.scale[h]);
      break;
    case PanelFormat::kNibble:
      Put(slice.head, lane, values.half_scale);
      Put(slice.head, kLanes + lane, values.half_offset);
      break;
    case PanelFormat::kNibbleF:
      Put(slice.head, lane, values.scale[0]);
      Put(slice.head, kLanes + lane, values.offset);
      break;
  }
  if (IsNibble(format)) {
    for (int i = 0; i < kInputs / 2; ++i) {
      const unsigned byte = (values.u[i] & 15U) | (values.u[kInputs / 2 + i] & 15U) << 4;
      Put(slice.body, ByteOf(lane, i), static_cast<std::uint8_t>(byte));
    }
  } else {
    for (int i = 0; i < kInputs; ++i) Put(slice.body, ByteOf(lane, i), values.u[i]);
  }
}

LaneScales LoadScales(PanelFormat format, PanelSlice slice, int lane) {
  const auto half = [&](std::int64_t at) {
    return tensor::HalfToFloat(Get<std::uint16_t>(slice.head, at));
  };
  switch (format) {
    case PanelFormat::kInt8:
    case PanelFormat::kNibbleMinus8:
      return {.scale = {half(lane), half(lane)}};
    case PanelFormat::kInt8x16:
      return {.scale = {Get<float>(slice.head, lane), Get<float>(slice.head, kLanes + lane)}};
    case PanelFormat::kNibble:
      return {.scale = {half(lane), half(lane)}, .offset = half(kLanes + lane)};
    case PanelFormat::kNibbleF:
      return {.scale = {Get<float>(slice.head, lane), Get<float>(slice.head, lane)},
              .offset = Get<float>(slice.head, kLanes + lane)};
    default:
      base::CheckFailed("an integer format", "the others have no scales");
  }
}

void LoadIntegers(PanelFormat format, PanelSlice slice, int lane, std::uint8_t* u) {
  if (!IsNibble(format)) {
    for (int i = 0; i < kInputs; ++i) u[i] = Get<std::uint8_t>(slice.body, ByteOf(lane, i));
    return;
  }
  for (int i = 0; i < kInputs / 2; ++i) {
    const unsigned byte = Get<std::uint8_t>(slice.body, ByteOf(lane, i));
    u[i] = static_cast<std::uint8_t>(byte & 15U);
    u[kInputs / 2 + i] = static_cast<std::uint8_t>(byte >> 4);
  }
}

void LoadLane(PanelFormat format, PanelSlice slice, int lane, float* weights) {
  if (IsInteger(format)) {
    const LaneScales scales = LoadScales(format, slice, lane);
    std::uint8_t u[kInputs];
    LoadIntegers(format, slice, lane, u);
    // d q has at most 11 + 8 bits, so only the addition of an offset can round.
    for (int i = 0; i < kInputs; ++i) {
      weights[i] = std::fma(
          scales.scale[i / 16], static_cast<float>(u[i] - IntegerZero(format)), scales.offset);
    }
    return;
  }
  for (int i = 0; i < kInputs; ++i) {
    const std::int64_t at = i * kLanes + lane;
    if (format == PanelFormat::kF32) weights[i] = Get<float>(slice.body, at);
    if (format == PanelFormat::kF16)
      weights[i] = tensor::HalfToFloat(Get<std::uint16_t>(slice.body, at));
    if (format == PanelFormat::kBF16)
      weights[i] = tensor::BFloat16ToFloat(Get<std::uint16_t>(slice.body, at));
  }
}

}  // namespace holmes::kernels
