#include "weights/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "weights/printable.h"

namespace holmes::weights {
namespace {

constexpr std::uint32_t kMagic = 0x46554747;             // "GGUF", little-endian
constexpr std::uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;  // key length, key, type, value
constexpr std::uint64_t kMinTensorBytes =
    8 + 1 + 4 + 8 + 4 + 8;  // name length, name, rank, one extent, type, offset

/// Types of the GGUF list that Holmes does not read, so that a refusal can name them.
struct NamedType {
  std::uint32_t number;
  std::string_view name;
  int element_bytes;  // > 0: plain elements, checked and then left out; 0: refused
};
constexpr std::array<NamedType, 23> kOtherTypes = {{
    {9, "Q8_1", 0},      {15, "Q8_K", 0},     {16, "IQ2_XXS", 0},  {17, "IQ2_XS", 0},
    {18, "IQ3_XXS", 0},  {19, "IQ1_S", 0},    {20, "IQ4_NL", 0},   {21, "IQ3_S", 0},
    {22, "IQ2_S", 0},    {23, "IQ4_XS", 0},   {24, "I8", 1},       {25, "I16", 2},
    {26, "I32", 4},      {27, "I64", 8},      {28, "F64", 8},      {29, "IQ1_M", 0},
    {31, "Q4_0_4_4", 0}, {32, "Q4_0_4_8", 0}, {33, "Q4_0_8_8", 0}, {34, "TQ1_0", 0},
    {35, "TQ2_0", 0},    {39, "MXFP4", 0},    {40, "NVFP4", 0},
}};

const NamedType* FindOtherType(std::uint32_t number) {
  for (const NamedType& type : kOtherTypes) {
    if (type.number == number) return &type;
  }
  return nullptr;
}

}  // namespace

/// Walks the bytes once, front to back. `offset_` never passes the end: every read asks Need first.
class GgufParser {
 public:
  GgufParser(std::span<const std::byte> bytes, std::string_view file_name)
      : bytes_(bytes), file_name_(file_name) {}

  StatusOr<GgufFile> Parse() {
    HOLMES_RETURN_IF_ERROR(ReadHeader());
    HOLMES_RETURN_IF_ERROR(ReadEntries());
    HOLMES_RETURN_IF_ERROR(ReadAlignment());
    HOLMES_RETURN_IF_ERROR(ReadTensorInfos());
    HOLMES_RETURN_IF_ERROR(PlaceTensors());
    return std::move(file_);
  }

 private:
  std::uint64_t remaining() const { return bytes_.size() - offset_; }

  Status Corrupt(std::uint64_t at, std::string_view what) const {
    return base::DataLossError(
        fmt::format("{}: byte {}: {}; the file is damaged, download or convert it again",
                    file_name_,
                    at,
                    what));
  }
  Status Unsupported(std::uint64_t at, std::string_view what) const {
    return base::UnimplementedError(fmt::format("{}: byte {}: {}", file_name_, at, what));
  }

  /// `what` is the thing that would be cut off.
  Status Need(std::uint64_t length, std::string_view what) const {
    if (length <= remaining()) return OkStatus();
    return base::DataLossError(
        fmt::format("{}: byte {}: {} takes {} bytes but the file ends after {} more ({} bytes in "
                    "all); it is truncated or damaged, download it again",
                    file_name_,
                    offset_,
                    what,
                    length,
                    remaining(),
                    bytes_.size()));
  }

  template <typename T>
  StatusOr<T> Read(std::string_view what) {
    HOLMES_RETURN_IF_ERROR(Need(sizeof(T), what));
    T value;
    std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return value;
  }

  StatusOr<std::string_view> ReadString(std::string_view what, std::uint64_t max_bytes) {
    const std::uint64_t at = offset_;
    HOLMES_ASSIGN_OR_RETURN(const std::uint64_t length, Read<std::uint64_t>(what));
    if (length > max_bytes)
      return Corrupt(
          at,
          fmt::format(
              "{} has a length of {} bytes, at most {} are allowed", what, length, max_bytes));
    HOLMES_RETURN_IF_ERROR(Need(length, what));
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data() + offset_),
                                static_cast<std::size_t>(length));
    offset_ += length;
    return text;
  }

  Status ReadHeader();
  Status ReadEntries();
  StatusOr<GgufValue> ReadValue(std::string_view what);
  Status SkipElements(GgufType element, std::uint64_t count, int depth, std::string_view what);
  StatusOr<std::pair<GgufType, std::uint64_t>> ReadArrayHead(std::string_view what);
  StatusOr<GgufType> ReadType(std::string_view what);
  Status ReadAlignment();
  Status ReadTensorInfos();
  Status ReadTensorInfo(std::uint64_t index);
  Status CheckTensorType(std::uint64_t at, GgufTensor& tensor) const;
  StatusOr<std::uint64_t> TensorBytes(std::uint64_t at, const GgufTensor& tensor) const;
  Status CheckTensorNames() const;
  Status PlaceTensors();
  Status CheckOverlap() const;

  struct Extent {
    std::uint64_t info_at;  // where the file describes the tensor
    std::uint64_t offset;   // relative to the data section
    std::uint64_t length;
  };

  std::span<const std::byte> bytes_;
  std::string_view file_name_;
  std::uint64_t offset_ = 0;
  std::uint64_t num_tensors_ = 0;
  std::uint64_t num_entries_ = 0;
  std::vector<Extent> extents_;  // one per tensor
  GgufFile file_;
};

Status GgufParser::ReadHeader() {
  if (bytes_.empty())
    return base::InvalidArgumentError(
        fmt::format("{}: the file is empty; download it again", file_name_));
  std::uint32_t magic = 0;
  std::memcpy(&magic, bytes_.data(), std::min(bytes_.size(), sizeof(magic)));
  if (magic != kMagic) {
    const std::string_view start(reinterpret_cast<const char*>(bytes_.data()),
                                 std::min<std::size_t>(bytes_.size(), 4));
    return base::InvalidArgumentError(
        fmt::format("{}: not a GGUF file: it starts with {} where 'GGUF' is expected",
                    file_name_,
                    Quoted(start)));
  }
  offset_ = sizeof(magic);
  HOLMES_ASSIGN_OR_RETURN(file_.version_, Read<std::uint32_t>("the version"));
  if (file_.version_ != 0 && (file_.version_ & 0xffff) == 0) {
    return Unsupported(4,
                       fmt::format("big-endian GGUF (version field 0x{:08x}) is not supported; "
                                   "convert the model for little-endian machines",
                                   file_.version_));
  }
  if (file_.version_ != 2 && file_.version_ != 3) {
    return Unsupported(
        4,
        fmt::format(
            "GGUF version {} is not supported, versions 2 and 3 are; convert the model again",
            file_.version_));
  }
  HOLMES_ASSIGN_OR_RETURN(num_tensors_, Read<std::uint64_t>("the tensor count"));
  HOLMES_ASSIGN_OR_RETURN(num_entries_, Read<std::uint64_t>("the metadata count"));
  const std::uint64_t max_tensors = std::min(kGgufMaxTensors, remaining() / kMinTensorBytes);
  if (num_tensors_ > max_tensors) {
    return Corrupt(8,
                   fmt::format("{} tensors are announced, a file of {} bytes holds at most {}",
                               num_tensors_,
                               bytes_.size(),
                               max_tensors));
  }
  const std::uint64_t max_entries = std::min(kGgufMaxEntries, remaining() / kMinEntryBytes);
  if (num_entries_ > max_entries) {
    return Corrupt(
        16,
        fmt::format("{} metadata entries are announced, a file of {} bytes holds at most {}",
                    num_entries_,
                    bytes_.size(),
                    max_entries));
  }
  return OkStatus();
}

Status GgufParser::ReadEntries() {
  for (std::uint64_t i = 0; i < num_entries_; ++i) {
    const std::uint64_t at = offset_;
    HOLMES_ASSIGN_OR_RETURN(const std::string_view key,
                            ReadString(fmt::format("metadata key {}", i), kGgufMaxKeyBytes));
    if (key.empty()) return Corrupt(at, fmt::format("metadata key {} is empty", i));
    HOLMES_ASSIGN_OR_RETURN(const GgufValue value,
                            ReadValue(fmt::format("metadata value of {}", Quoted(key))));
    file_.entries_.push_back({key, value});
  }
  file_.by_key_.resize(file_.entries_.size());
  for (std::uint32_t i = 0; i < file_.by_key_.size(); ++i) file_.by_key_[i] = i;
  const auto key_of = [this](std::uint32_t i) { return file_.entries_[i].key; };
  std::sort(file_.by_key_.begin(), file_.by_key_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return key_of(a) < key_of(b);
  });
  for (std::size_t i = 1; i < file_.by_key_.size(); ++i) {
    const std::string_view key = key_of(file_.by_key_[i]);
    if (key == key_of(file_.by_key_[i - 1])) {
      const std::uint64_t at = reinterpret_cast<const std::byte*>(key.data()) - bytes_.data();
      return Corrupt(at, fmt::format("metadata key {} appears twice", Quoted(key)));
    }
  }
  return OkStatus();
}

StatusOr<GgufType> GgufParser::ReadType(std::string_view what) {
  const std::uint64_t at = offset_;
  HOLMES_ASSIGN_OR_RETURN(const std::uint32_t number, Read<std::uint32_t>(what));
  if (number > static_cast<std::uint32_t>(GgufType::kFloat64)) {
    return Corrupt(at, fmt::format("{} has type {}, known types are 0 to 12", what, number));
  }
  return static_cast<GgufType>(number);
}

StatusOr<std::pair<GgufType, std::uint64_t>> GgufParser::ReadArrayHead(std::string_view what) {
  HOLMES_ASSIGN_OR_RETURN(const GgufType element, ReadType(what));
  HOLMES_ASSIGN_OR_RETURN(const std::uint64_t count, Read<std::uint64_t>(what));
  return std::pair(element, count);
}

StatusOr<GgufValue> GgufParser::ReadValue(std::string_view what) {
  HOLMES_ASSIGN_OR_RETURN(const GgufType type, ReadType(what));
  GgufType element = type;
  std::uint64_t count = 1;
  if (type == GgufType::kArray) {
    HOLMES_ASSIGN_OR_RETURN(const auto head, ReadArrayHead(what));
    element = head.first;
    count = head.second;
  }
  const std::uint64_t begin = offset_;
  HOLMES_RETURN_IF_ERROR(SkipElements(element, count, 1, what));
  return GgufValue(type, element, count, bytes_.subspan(begin, offset_ - begin));
}

/// Checks `count` elements and steps over them. Every element takes at least one byte, so the loop
/// is bounded by the file.
Status GgufParser::SkipElements(GgufType element,
                                std::uint64_t count,
                                int depth,
                                std::string_view what) {
  if (const std::uint64_t size = GgufScalarBytes(element); size != 0) {
    if (count > remaining() / size) {
      return base::DataLossError(
          fmt::format("{}: byte {}: {} holds {} elements of {} bytes but the file ends after {} "
                      "more bytes ({} in all); it is truncated or damaged, download it again",
                      file_name_,
                      offset_,
                      what,
                      count,
                      size,
                      remaining(),
                      bytes_.size()));
    }
    if (element == GgufType::kBool) {
      for (std::uint64_t i = 0; i < count; ++i) {
        const int value = std::to_integer<int>(bytes_[offset_ + i]);
        if (value > 1)
          return Corrupt(offset_ + i,
                         fmt::format("{} has a boolean of {}, 0 or 1 are allowed", what, value));
      }
    }
    offset_ += count * size;
    return OkStatus();
  }
  if (element == GgufType::kString) {
    for (std::uint64_t i = 0; i < count; ++i) {
      if (const auto text = ReadString(what, std::numeric_limits<std::uint64_t>::max()); !text.ok())
        return text.status();
    }
    return OkStatus();
  }
  if (depth >= kGgufMaxArrayDepth) {
    return Corrupt(offset_,
                   fmt::format("{} nests arrays more than {} deep", what, kGgufMaxArrayDepth));
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    HOLMES_ASSIGN_OR_RETURN(const auto head, ReadArrayHead(what));
    HOLMES_RETURN_IF_ERROR(SkipElements(head.first, head.second, depth + 1, what));
  }
  return OkStatus();
}

Status GgufParser::ReadAlignment() {
  const GgufValue* const value = file_.Find("general.alignment");
  if (value == nullptr) return OkStatus();
  const std::optional<std::int64_t> alignment = value->Integer();
  if (!alignment || *alignment < 8 || *alignment > kGgufMaxAlignment ||
      !std::has_single_bit(static_cast<std::uint64_t>(*alignment))) {
    return Corrupt(
        0,
        fmt::format("general.alignment is {} ({}), a power of two from 8 to {} is allowed",
                    value->Number() ? fmt::format("{}", *value->Number()) : "not a number",
                    GgufTypeName(value->type()),
                    kGgufMaxAlignment));
  }
  file_.alignment_ = static_cast<std::uint32_t>(*alignment);
  return OkStatus();
}

Status GgufParser::ReadTensorInfos() {
  for (std::uint64_t i = 0; i < num_tensors_; ++i) HOLMES_RETURN_IF_ERROR(ReadTensorInfo(i));
  return CheckTensorNames();
}

Status GgufParser::ReadTensorInfo(std::uint64_t index) {
  const std::uint64_t at = offset_;
  GgufTensor tensor;
  HOLMES_ASSIGN_OR_RETURN(
      tensor.name,
      ReadString(fmt::format("the name of tensor {}", index), kGgufMaxTensorNameBytes));
  if (tensor.name.empty()) return Corrupt(at, fmt::format("the name of tensor {} is empty", index));
  const std::string what = fmt::format("tensor {}", Quoted(tensor.name));
  const std::uint64_t rank_at = offset_;
  HOLMES_ASSIGN_OR_RETURN(const std::uint32_t rank, Read<std::uint32_t>(what));
  if (rank < 1 || rank > 4)
    return Corrupt(rank_at, fmt::format("{} has {} dimensions, 1 to 4 are allowed", what, rank));
  for (std::uint32_t d = 0; d < rank; ++d) {
    const std::uint64_t dim_at = offset_;
    HOLMES_ASSIGN_OR_RETURN(const std::uint64_t extent, Read<std::uint64_t>(what));
    if (extent == 0) return Corrupt(dim_at, fmt::format("dimension {} of {} is 0", d, what));
    tensor.dims.push_back(extent);
  }
  const std::uint64_t type_at = offset_;
  HOLMES_ASSIGN_OR_RETURN(tensor.ggml_type, Read<std::uint32_t>(what));
  HOLMES_RETURN_IF_ERROR(CheckTensorType(type_at, tensor));
  HOLMES_ASSIGN_OR_RETURN(const std::uint64_t length, TensorBytes(at, tensor));
  const std::uint64_t offset_at = offset_;
  HOLMES_ASSIGN_OR_RETURN(const std::uint64_t offset, Read<std::uint64_t>(what));
  if (offset % file_.alignment_ != 0) {
    return Corrupt(offset_at,
                   fmt::format("{} starts at data offset {}, a multiple of {} is expected",
                               what,
                               offset,
                               file_.alignment_));
  }
  extents_.push_back({offset_at, offset, length});
  file_.tensors_.push_back(std::move(tensor));
  return OkStatus();
}

Status GgufParser::CheckTensorType(std::uint64_t at, GgufTensor& tensor) const {
  if (const auto info = tensor::FindBlockType(tensor.ggml_type)) {
    tensor.type = info->type;
    return OkStatus();
  }
  const NamedType* const other = FindOtherType(tensor.ggml_type);
  if (other == nullptr) {
    return Unsupported(at,
                       fmt::format("tensor {} has type {}, which is not known; the file is damaged "
                                   "or newer than this program",
                                   Quoted(tensor.name),
                                   tensor.ggml_type));
  }
  if (other->element_bytes == 0) {
    return Unsupported(at,
                       fmt::format("tensor {} has type {}, which is not supported; use a file in "
                                   "Q8_0, Q4_K, Q4_1, Q4_0, Q6_K, F16 or BF16",
                                   Quoted(tensor.name),
                                   other->name));
  }
  return OkStatus();
}

StatusOr<std::uint64_t> GgufParser::TensorBytes(std::uint64_t at, const GgufTensor& tensor) const {
  std::uint64_t block_elements = 1;
  std::uint64_t block_bytes = 0;
  std::string_view type_name;
  if (tensor.type) {
    const tensor::BlockTypeInfo& info = tensor::InfoOf(*tensor.type);
    block_elements = info.block_elements;
    block_bytes = info.block_bytes;
    type_name = info.name;
  } else {
    const NamedType* const other = FindOtherType(tensor.ggml_type);
    block_bytes = other->element_bytes;
    type_name = other->name;
  }
  if (tensor.dims[0] % block_elements != 0) {
    return Corrupt(at,
                   fmt::format("tensor {} has rows of {} elements, {} needs a multiple of {}",
                               Quoted(tensor.name),
                               tensor.dims[0],
                               type_name,
                               block_elements));
  }
  // Elements also have to fit a signed 64-bit count, which is what shapes are held in.
  std::uint64_t elements = 1;
  for (const std::uint64_t extent : tensor.dims) {
    if (extent > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / elements) {
      return Corrupt(at,
                     fmt::format("the dimensions of tensor {} multiply to more than 2^63",
                                 Quoted(tensor.name)));
    }
    elements *= extent;
  }
  const std::uint64_t blocks = elements / block_elements;
  if (blocks > std::numeric_limits<std::uint64_t>::max() / block_bytes) {
    return Corrupt(at, fmt::format("tensor {} has more than 2^64 bytes", Quoted(tensor.name)));
  }
  return blocks * block_bytes;
}

Status GgufParser::CheckTensorNames() const {
  std::vector<std::string_view> names;
  names.reserve(file_.tensors_.size());
  for (const GgufTensor& tensor : file_.tensors_) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return OkStatus();
  const std::uint64_t at = reinterpret_cast<const std::byte*>(twice->data()) - bytes_.data();
  return Corrupt(at, fmt::format("tensor {} appears twice", Quoted(*twice)));
}

Status GgufParser::PlaceTensors() {
  // offset_ <= bytes_.size(), which is far from the end of 64 bits: rounding up cannot overflow.
  const std::uint64_t alignment = file_.alignment_;
  file_.data_offset_ = (offset_ + alignment - 1) / alignment * alignment;
  std::uint64_t needed = 0;
  for (std::size_t i = 0; i < extents_.size(); ++i) {
    const Extent& extent = extents_[i];
    const std::uint64_t limit = std::numeric_limits<std::uint64_t>::max() - file_.data_offset_;
    if (extent.offset > limit || extent.length > limit - extent.offset) {
      return Corrupt(extent.info_at,
                     fmt::format("tensor {} ends beyond 2^64", Quoted(file_.tensors_[i].name)));
    }
    needed = std::max(needed, file_.data_offset_ + extent.offset + extent.length);
  }
  HOLMES_RETURN_IF_ERROR(CheckOverlap());
  if (needed > bytes_.size()) {
    return base::DataLossError(
        fmt::format("{}: the file is truncated: it has {} bytes of the {} that its tensors take "
                    "({} MB of {} MB); download it again",
                    file_name_,
                    bytes_.size(),
                    needed,
                    bytes_.size() / 1000000,
                    (needed + 999999) / 1000000));
  }
  for (std::size_t i = 0; i < extents_.size(); ++i) {
    file_.tensors_[i].bytes =
        bytes_.subspan(file_.data_offset_ + extents_[i].offset, extents_[i].length);
  }
  return OkStatus();
}

Status GgufParser::CheckOverlap() const {
  std::vector<std::uint32_t> order(extents_.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
    return extents_[a].offset < extents_[b].offset;
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const Extent& before = extents_[order[i - 1]];
    const Extent& after = extents_[order[i]];
    if (before.offset + before.length > after.offset) {
      return Corrupt(
          after.info_at,
          fmt::format("tensor {} starts at data offset {}, inside tensor {}, which ends at {}",
                      Quoted(file_.tensors_[order[i]].name),
                      after.offset,
                      Quoted(file_.tensors_[order[i - 1]].name),
                      before.offset + before.length));
    }
  }
  return OkStatus();
}

StatusOr<GgufFile> GgufFile::Parse(std::span<const std::byte> bytes, std::string_view file_name) {
  return GgufParser(bytes, file_name).Parse();
}

const GgufValue* GgufFile::Find(std::string_view key) const {
  const auto at = std::lower_bound(
      by_key_.begin(), by_key_.end(), key, [this](std::uint32_t i, std::string_view wanted) {
        return entries_[i].key < wanted;
      });
  if (at == by_key_.end() || entries_[*at].key != key) return nullptr;
  return &entries_[*at].value;
}

}  // namespace holmes::weights
