#include "kernels/linear/linear.h"

#include <algorithm>

#include "kernels/linear/panel_kernels.h"

namespace holmes::kernels {
namespace {

/// Rows that share one dequantised piece. Larger wastes less on dequantising, smaller balances
/// better: dequantising 64 outputs costs about 3 cycles per 16 weights, the products 8 cycles per
/// row of them, so 256 rows leave about 1 %.
constexpr std::int64_t kTileRows = 256;

struct Work {
  std::int64_t panel_units = 0;  // groups of panels (tile) or panels (stream)
  std::int64_t row_units = 1;
  std::int64_t cost = 0;  // per unit, in inputs
  std::int64_t units() const { return panel_units * row_units; }
};

bool Streams(const LinearJob& job) { return job.rows <= internal::kStreamRows; }

Work WorkOf(const LinearJob& job) {
  if (job.rows == 0) return {};
  if (Streams(job)) return {job.w->num_panels(), 1, job.w->k()};
  return {(job.w->num_panels() + internal::kGroupPanels - 1) / internal::kGroupPanels,
          (job.rows + kTileRows - 1) / kTileRows,
          job.w->k()};
}

void RunUnits(const LinearJob& job, const Work& work, std::int64_t begin, std::int64_t end) {
  if (begin >= end) return;
  const internal::PanelKernels& kernels =
      job.w->isa() == Isa::kAvx512 ? internal::Avx512Kernels() : internal::ScalarKernels();
  if (Streams(job)) {
    kernels.stream(job, begin, end);
    return;
  }
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t first = unit / work.row_units * internal::kGroupPanels;
    // Row pieces of equal size, so that the last one is not a sliver.
    const std::int64_t piece = unit % work.row_units;
    const std::int64_t row = job.rows * piece / work.row_units;
    const std::int64_t row_end = job.rows * (piece + 1) / work.row_units;
    kernels.tile(job,
                 first,
                 std::min(first + internal::kGroupPanels, job.w->num_panels()),
                 row,
                 row_end - row);
  }
}

}  // namespace

void LinearInRegion(const LinearJob& job, int member, int members) {
  LinearManyInRegion({&job, 1}, member, members);
}

void LinearManyInRegion(std::span<const LinearJob> jobs, int member, int members) {
  std::int64_t total = 0;
  for (const LinearJob& job : jobs) {
    const Work work = WorkOf(job);
    total += work.units() * work.cost;
  }
  // [from, to) of the jobs' summed cost is this member's; a unit belongs to the member whose range
  // holds its start.
  const std::int64_t from = total * member / members;
  const std::int64_t to = total * (member + 1) / members;
  std::int64_t at = 0;
  for (const LinearJob& job : jobs) {
    const Work work = WorkOf(job);
    if (work.units() == 0) continue;
    const auto unit_at = [&](std::int64_t cost) {
      return std::clamp((cost - at + work.cost - 1) / work.cost, std::int64_t{0}, work.units());
    };
    RunUnits(job, work, from <= at ? 0 : unit_at(from), to <= at ? 0 : unit_at(to));
    at += work.units() * work.cost;
  }
}

void Linear(const LinearJob& job, Team& team) {
  team.Run([&](int member, int members) { LinearInRegion(job, member, members); });
}

}  // namespace holmes::kernels
