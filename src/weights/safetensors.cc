#include "weights/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "weights/json_file.h"
#include "weights/printable.h"

namespace holmes::weights {
namespace {

namespace json = boost::json;

struct DType {
  std::string_view name;
  std::uint64_t bytes;
  bool is_float;
  std::optional<tensor::BlockType> type;
};
constexpr std::array<DType, 17> kDTypes = {{
    {"F32", 4, true, tensor::BlockType::kF32},
    {"F16", 2, true, tensor::BlockType::kF16},
    {"BF16", 2, true, tensor::BlockType::kBF16},
    {"F64", 8, true, std::nullopt},
    {"F8_E4M3", 1, true, std::nullopt},
    {"F8_E5M2", 1, true, std::nullopt},
    {"F8_E8M0", 1, true, std::nullopt},
    {"C64", 8, true, std::nullopt},
    {"BOOL", 1, false, std::nullopt},
    {"U8", 1, false, std::nullopt},
    {"I8", 1, false, std::nullopt},
    {"U16", 2, false, std::nullopt},
    {"I16", 2, false, std::nullopt},
    {"U32", 4, false, std::nullopt},
    {"I32", 4, false, std::nullopt},
    {"U64", 8, false, std::nullopt},
    {"I64", 8, false, std::nullopt},
}};

class SafetensorsParser {
 public:
  SafetensorsParser(std::span<const std::byte> bytes, std::string_view file_name)
      : bytes_(bytes), file_name_(file_name) {}

  StatusOr<std::vector<SafetensorsEntry>> Parse() {
    HOLMES_ASSIGN_OR_RETURN(const json::value header, ReadHeader());
    const json::object* const object = header.if_object();
    if (object == nullptr) return Corrupt("the header is not a JSON object");
    for (const json::key_value_pair& item : *object) {
      if (item.key() == "__metadata__") {
        if (!item.value().is_object()) return Corrupt("__metadata__ is not an object");
        continue;
      }
      HOLMES_RETURN_IF_ERROR(ReadEntry(item.key(), item.value()));
    }
    HOLMES_RETURN_IF_ERROR(CheckLayout());
    return std::move(entries_);
  }

 private:
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
  };

  Status Corrupt(std::string_view what) const {
    return base::DataLossError(
        fmt::format("{}: {}; the file is damaged, download it again", file_name_, what));
  }

  StatusOr<json::value> ReadHeader();
  Status ReadEntry(std::string_view name, const json::value& value);
  StatusOr<DType> ReadType(std::string_view what, const json::object& fields) const;
  StatusOr<std::vector<std::int64_t>> ReadShape(std::string_view what,
                                                const json::object& fields) const;
  StatusOr<Range> ReadRange(std::string_view what, const json::object& fields) const;
  StatusOr<std::uint64_t> ByteCount(std::string_view what,
                                    const DType& dtype,
                                    std::span<const std::int64_t> shape) const;
  Status CheckLayout();

  std::span<const std::byte> bytes_;
  std::string_view file_name_;
  std::uint64_t data_at_ = 0;
  std::vector<SafetensorsEntry> entries_;
  std::vector<Range> ranges_;  // one per entry, relative to data_at_
};

StatusOr<json::value> SafetensorsParser::ReadHeader() {
  if (bytes_.empty())
    return base::InvalidArgumentError(
        fmt::format("{}: the file is empty; download it again", file_name_));
  std::uint64_t length = 0;
  if (bytes_.size() < sizeof(length)) {
    return base::InvalidArgumentError(
        fmt::format("{}: {} bytes are too few for a safetensors file; download it again",
                    file_name_,
                    bytes_.size()));
  }
  std::memcpy(&length, bytes_.data(), sizeof(length));
  const std::uint64_t remaining = bytes_.size() - sizeof(length);
  if (length > kSafetensorsMaxHeaderBytes) {
    return base::InvalidArgumentError(
        fmt::format("{}: not a safetensors file: the first 8 bytes announce a header of {} bytes, "
                    "at most {} are allowed",
                    file_name_,
                    length,
                    kSafetensorsMaxHeaderBytes));
  }
  if (length > remaining) {
    return base::DataLossError(
        fmt::format("{}: the header takes {} bytes but the file ends after {}; it is truncated, "
                    "download it again",
                    file_name_,
                    length,
                    remaining));
  }
  data_at_ = sizeof(length) + length;
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + sizeof(length),
                              static_cast<std::size_t>(length));
  if (text.empty() || text[0] != '{') {
    return base::InvalidArgumentError(
        fmt::format("{}: not a safetensors file: byte 8 is {} where '{{' is expected",
                    file_name_,
                    Quoted(text.substr(0, 1))));
  }
  return ParseJson(text, fmt::format("{} (header, from byte 8)", file_name_));
}

StatusOr<DType> SafetensorsParser::ReadType(std::string_view what,
                                            const json::object& fields) const {
  const json::value* const value = fields.if_contains("dtype");
  if (value == nullptr || !value->is_string()) return Corrupt(fmt::format("{} has no dtype", what));
  const std::string_view name = value->get_string();
  const auto found = std::find_if(
      kDTypes.begin(), kDTypes.end(), [&](const DType& dtype) { return dtype.name == name; });
  if (found == kDTypes.end()) {
    return base::UnimplementedError(
        fmt::format("{}: {} has dtype {}, which is not known", file_name_, what, Quoted(name)));
  }
  if (found->is_float && !found->type) {
    return base::UnimplementedError(fmt::format(
        "{}: {} has dtype {}, which is not supported; use a checkpoint in BF16, F16 or F32",
        file_name_,
        what,
        name));
  }
  return *found;
}

StatusOr<std::vector<std::int64_t>> SafetensorsParser::ReadShape(std::string_view what,
                                                                 const json::object& fields) const {
  const json::value* const value = fields.if_contains("shape");
  const json::array* const extents = value == nullptr ? nullptr : value->if_array();
  if (extents == nullptr) return Corrupt(fmt::format("{} has no shape", what));
  if (extents->size() > kSafetensorsMaxRank) {
    return Corrupt(fmt::format("{} has {} dimensions, at most {} are allowed",
                               what,
                               extents->size(),
                               kSafetensorsMaxRank));
  }
  std::vector<std::int64_t> shape;
  for (const json::value& extent : *extents) {
    const std::optional<std::int64_t> count = AsCount(extent);
    if (!count)
      return Corrupt(fmt::format("dimension {} of {} is not a count", shape.size(), what));
    shape.push_back(*count);
  }
  return shape;
}

StatusOr<SafetensorsParser::Range> SafetensorsParser::ReadRange(std::string_view what,
                                                                const json::object& fields) const {
  const json::value* const value = fields.if_contains("data_offsets");
  const json::array* const offsets = value == nullptr ? nullptr : value->if_array();
  if (offsets == nullptr || offsets->size() != 2)
    return Corrupt(fmt::format("{} has no data_offsets of two numbers", what));
  const std::optional<std::int64_t> begin = AsCount((*offsets)[0]);
  const std::optional<std::int64_t> end = AsCount((*offsets)[1]);
  if (!begin || !end || *begin > *end)
    return Corrupt(fmt::format("the data_offsets of {} are not an ascending pair of counts", what));
  return Range{static_cast<std::uint64_t>(*begin), static_cast<std::uint64_t>(*end)};
}

StatusOr<std::uint64_t> SafetensorsParser::ByteCount(std::string_view what,
                                                     const DType& dtype,
                                                     std::span<const std::int64_t> shape) const {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  // Extents beside a zero are held to the same limit, so that a reader may multiply any of them.
  std::uint64_t total = dtype.bytes;
  bool is_empty = false;
  for (const std::int64_t extent : shape) {
    is_empty |= extent == 0;
    if (extent == 0) continue;
    if (static_cast<std::uint64_t>(extent) > kMax / total) {
      return Corrupt(fmt::format("{} has more than 2^63 bytes", what));
    }
    total *= static_cast<std::uint64_t>(extent);
  }
  return is_empty ? 0 : total;
}

Status SafetensorsParser::ReadEntry(std::string_view name, const json::value& value) {
  const std::string what = fmt::format("tensor {}", Quoted(name));
  if (name.empty() || name.size() > kSafetensorsMaxNameBytes) {
    return Corrupt(fmt::format("{} has a name of {} bytes, 1 to {} are allowed",
                               what,
                               name.size(),
                               kSafetensorsMaxNameBytes));
  }
  const json::object* const fields = value.if_object();
  if (fields == nullptr) return Corrupt(fmt::format("{} is not described by an object", what));
  HOLMES_ASSIGN_OR_RETURN(const DType dtype, ReadType(what, *fields));
  HOLMES_ASSIGN_OR_RETURN(std::vector<std::int64_t> shape, ReadShape(what, *fields));
  HOLMES_ASSIGN_OR_RETURN(const Range range, ReadRange(what, *fields));
  HOLMES_ASSIGN_OR_RETURN(const std::uint64_t expected, ByteCount(what, dtype, shape));
  if (range.end - range.begin != expected) {
    return Corrupt(
        fmt::format("{} lies from data byte {} to {}, its shape and dtype {} take {} bytes",
                    what,
                    range.begin,
                    range.end,
                    dtype.name,
                    expected));
  }
  entries_.push_back(
      {.name = std::string(name), .type = dtype.type, .shape = std::move(shape), .bytes = {}});
  ranges_.push_back(range);
  return OkStatus();
}

/// Data has to start at 0, follow each other without hole or overlap, and end with the file. This
/// also catches a name given twice, since the JSON reader keeps only one of its ranges.
Status SafetensorsParser::CheckLayout() {
  std::vector<std::uint32_t> order(entries_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
    return std::pair(ranges_[a].begin, ranges_[a].end) <
           std::pair(ranges_[b].begin, ranges_[b].end);
  });
  std::uint64_t end = 0;
  for (const std::uint32_t i : order) {
    if (ranges_[i].begin != end) {
      return Corrupt(fmt::format("tensor {} starts at data byte {} where {} is expected",
                                 Quoted(entries_[i].name),
                                 ranges_[i].begin,
                                 end));
    }
    end = ranges_[i].end;
  }
  const std::uint64_t available = bytes_.size() - data_at_;
  if (end > available) {
    const std::uint64_t needed = end + data_at_;
    return base::DataLossError(fmt::format(
        "{}: the file is truncated: it has {} bytes of {} ({} MB of {} MB); download it again",
        file_name_,
        bytes_.size(),
        needed,
        bytes_.size() / 1000000,
        needed / 1000000 + 1));
  }
  if (end < available)
    return Corrupt(fmt::format("{} bytes follow the last tensor", available - end));
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    entries_[i].bytes =
        bytes_.subspan(data_at_ + ranges_[i].begin, ranges_[i].end - ranges_[i].begin);
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<SafetensorsEntry>> ParseSafetensors(std::span<const std::byte> bytes,
                                                         std::string_view file_name) {
  return SafetensorsParser(bytes, file_name).Parse();
}

}  // namespace holmes::weights
