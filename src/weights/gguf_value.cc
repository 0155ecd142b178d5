#include <bit>
#include <cstring>

#include "weights/gguf.h"

namespace holmes::weights {
namespace {

static_assert(std::endian::native == std::endian::little,
              "GGUF values are copied as they lie in the file");

template <typename T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

std::optional<double> NumberAt(GgufType type, const std::byte* at) {
  switch (type) {
    case GgufType::kUint8:
      return Load<std::uint8_t>(at);
    case GgufType::kInt8:
      return Load<std::int8_t>(at);
    case GgufType::kUint16:
      return Load<std::uint16_t>(at);
    case GgufType::kInt16:
      return Load<std::int16_t>(at);
    case GgufType::kUint32:
      return Load<std::uint32_t>(at);
    case GgufType::kInt32:
      return Load<std::int32_t>(at);
    case GgufType::kUint64:
      return static_cast<double>(Load<std::uint64_t>(at));
    case GgufType::kInt64:
      return static_cast<double>(Load<std::int64_t>(at));
    case GgufType::kFloat32:
      return Load<float>(at);
    case GgufType::kFloat64:
      return Load<double>(at);
    case GgufType::kBool:
    case GgufType::kString:
    case GgufType::kArray:
      break;
  }
  return std::nullopt;
}

std::string_view StringAt(const std::byte* at, std::uint64_t length) {
  return {reinterpret_cast<const char*>(at), static_cast<std::size_t>(length)};
}

}  // namespace

std::string_view GgufTypeName(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
      return "UINT8";
    case GgufType::kInt8:
      return "INT8";
    case GgufType::kUint16:
      return "UINT16";
    case GgufType::kInt16:
      return "INT16";
    case GgufType::kUint32:
      return "UINT32";
    case GgufType::kInt32:
      return "INT32";
    case GgufType::kFloat32:
      return "FLOAT32";
    case GgufType::kBool:
      return "BOOL";
    case GgufType::kString:
      return "STRING";
    case GgufType::kArray:
      return "ARRAY";
    case GgufType::kUint64:
      return "UINT64";
    case GgufType::kInt64:
      return "INT64";
    case GgufType::kFloat64:
      return "FLOAT64";
  }
  return "unknown type";
}

int GgufScalarBytes(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kInt8:
    case GgufType::kBool:
      return 1;
    case GgufType::kUint16:
    case GgufType::kInt16:
      return 2;
    case GgufType::kUint32:
    case GgufType::kInt32:
    case GgufType::kFloat32:
      return 4;
    case GgufType::kUint64:
    case GgufType::kInt64:
    case GgufType::kFloat64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      break;
  }
  return 0;
}

std::optional<double> GgufValue::Number() const {
  if (bytes_.empty()) return std::nullopt;
  return NumberAt(type_, bytes_.data());
}

std::optional<std::int64_t> GgufValue::Integer() const {
  if (bytes_.empty() || type_ == GgufType::kFloat32 || type_ == GgufType::kFloat64)
    return std::nullopt;
  if (type_ == GgufType::kUint64 || type_ == GgufType::kInt64) {
    const std::int64_t value = Load<std::int64_t>(bytes_.data());
    if (type_ == GgufType::kUint64 && value < 0)
      return std::nullopt;  // beyond what the caller can hold
    return value;
  }
  const std::optional<double> number = Number();  // at most 32 bits: exact in a double
  if (!number) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

std::optional<bool> GgufValue::Bool() const {
  if (type_ != GgufType::kBool || bytes_.empty()) return std::nullopt;
  return bytes_[0] != std::byte{0};
}

std::optional<std::string_view> GgufValue::String() const {
  if (type_ != GgufType::kString) return std::nullopt;
  return StringAt(bytes_.data() + 8, Load<std::uint64_t>(bytes_.data()));
}

std::optional<std::vector<double>> GgufValue::Numbers() const {
  if (type_ != GgufType::kArray || element_ == GgufType::kBool) return std::nullopt;
  const int stride = GgufScalarBytes(element_);
  if (stride == 0) return std::nullopt;
  std::vector<double> numbers;
  numbers.reserve(count_);
  for (std::uint64_t i = 0; i < count_; ++i) {
    numbers.push_back(*NumberAt(element_, bytes_.data() + i * stride));
  }
  return numbers;
}

std::optional<std::vector<std::string_view>> GgufValue::Strings() const {
  if (type_ != GgufType::kArray || element_ != GgufType::kString) return std::nullopt;
  std::vector<std::string_view> strings;
  strings.reserve(count_);
  const std::byte* at = bytes_.data();
  for (std::uint64_t i = 0; i < count_; ++i) {
    const std::uint64_t length = Load<std::uint64_t>(at);
    strings.push_back(StringAt(at + 8, length));
    at += 8 + length;
  }
  return strings;
}

}  // namespace holmes::weights
