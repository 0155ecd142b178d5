#include "kernels/linear/packed_matrix.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "kernels/linear/slice.h"
#include "kernels/linear/stored_row.h"

namespace holmes::kernels {
namespace {

constexpr std::int64_t kAlignment = 64;
constexpr std::int64_t kHugePage = std::int64_t{2} << 20;

/// Which layout keeps the stored values exactly.
StatusOr<PanelFormat> FormatOf(tensor::BlockType type) {
  using tensor::BlockType;
  switch (type) {
    case BlockType::kF32:
      return PanelFormat::kF32;
    case BlockType::kF16:
      return PanelFormat::kF16;
    case BlockType::kBF16:
      return PanelFormat::kBF16;
    case BlockType::kQ8_0:
      return PanelFormat::kInt8;
    case BlockType::kQ6_K:
      return PanelFormat::kInt8x16;
    case BlockType::kQ4_1:
      return PanelFormat::kNibble;
    case BlockType::kQ4_0:
      return PanelFormat::kNibbleMinus8;
    case BlockType::kQ4_K:
      return PanelFormat::kNibbleF;
    default:
      break;
  }
  return base::UnimplementedError(
      fmt::format("weights of type {} are not supported yet; supported: F32, F16, BF16, Q8_0, "
                  "Q4_0, Q4_1, Q4_K, Q6_K",
                  tensor::InfoOf(type).name));
}

}  // namespace

void PackedMatrix::Free::operator()(std::byte* p) const { std::free(p); }

namespace {

/// Checks bytes against shape and says which layout keeps the values.
StatusOr<PanelFormat> Check(const WeightView& view) {
  const tensor::BlockTypeInfo& info = tensor::InfoOf(view.type);
  if (view.n < 1 || view.k < 1 || view.k % info.block_elements != 0 ||
      view.k / info.block_elements * info.block_bytes * view.n !=
          static_cast<std::int64_t>(view.bytes.size())) {
    return base::InvalidArgumentError(fmt::format("{} bytes are not a matrix [{}, {}] of type {}",
                                                  view.bytes.size(),
                                                  view.n,
                                                  view.k,
                                                  info.name));
  }
  return FormatOf(view.type);
}

}  // namespace

StatusOr<PackedMatrix> PackedMatrix::Layout(const WeightView& view, Isa isa) {
  PackedMatrix out;
  HOLMES_ASSIGN_OR_RETURN(out.format_, Check(view));
  out.n_ = view.n;
  out.k_ = view.k;
  out.isa_ = isa;
  out.head_bytes_ = HeadBytes(out.format_);
  out.body_bytes_ = BodyBytes(out.format_);
  return out;
}

StatusOr<std::int64_t> PackedMatrix::PackedBytes(const WeightView& view) {
  HOLMES_ASSIGN_OR_RETURN(const PackedMatrix layout, Layout(view, Isa::kScalar));
  return layout.allocated_bytes();
}

std::int64_t PackedMatrix::allocated_bytes() const {
  return (bytes() + kAlignment - 1) / kAlignment * kAlignment;
}

StatusOr<PackedMatrix> PackedMatrix::Pack(const WeightView& view, Isa isa, Team* team) {
  HOLMES_ASSIGN_OR_RETURN(PackedMatrix out, Layout(view, isa));
  const auto bytes = static_cast<std::size_t>(out.allocated_bytes());
  const bool huge = out.bytes() >= kHugePage;
  void* data = nullptr;
  if (posix_memalign(&data, huge ? kHugePage : kAlignment, bytes) != 0)
    return base::ResourceExhaustedError(
        fmt::format("no memory for {} bytes of packed weights", bytes));
  out.data_.reset(static_cast<std::byte*>(data));
  // One page table entry per 2 MiB where the system allows it; a refusal changes nothing.
  if (huge) madvise(data, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);

  // Members share out whole groups, so that each page is first touched by one of them.
  const std::int64_t groups = (out.num_panels() + kGroupPanels - 1) / kGroupPanels;
  const auto pack_share = [&](int member, int members) {
    const std::int64_t first = groups * member / members * kGroupPanels;
    const std::int64_t last =
        std::min(groups * (member + 1) / members * kGroupPanels, out.num_panels());
    for (std::int64_t panel = first; panel < last; ++panel) out.PackPanel(view, panel);
  };
  if (team != nullptr) {
    team->Run(pack_share);
  } else {
    pack_share(0, 1);
  }
  return out;
}

void PackedMatrix::PackPanel(const WeightView& view, std::int64_t panel) {
  const std::int64_t rows = std::min<std::int64_t>(kPanelRows, view.n - panel * kPanelRows);
  for (std::int64_t s = 0; s < num_slices(); ++s) {
    const PanelSlice at = slice(panel, s);
    const MutablePanelSlice to{data_.get() + (at.head - data_.get()),
                               data_.get() + (at.body - data_.get())};
    std::memset(to.head, 0, static_cast<std::size_t>(head_bytes_));
    std::memset(to.body, 0, static_cast<std::size_t>(body_bytes_));
    for (std::int64_t lane = 0; lane < rows; ++lane) {
      StoreLane(
          format_, StoredRow(view, panel * kPanelRows + lane).Slice(s), static_cast<int>(lane), to);
    }
  }
}

void PackedMatrix::DequantizeRow(std::int64_t row, float* out) const {
  HOLMES_DCHECK(row >= 0 && row < n_);
  for (std::int64_t s = 0; s < num_slices(); ++s) {
    float weights[kSliceInputs];
    LoadLane(format_, slice(row / kPanelRows, s), static_cast<int>(row % kPanelRows), weights);
    const std::int64_t count = std::min<std::int64_t>(kSliceInputs, k_ - s * kSliceInputs);
    std::copy_n(weights, count, out + s * kSliceInputs);
  }
}

}  // namespace holmes::kernels
