#include "kernels/linear/linear.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "kernels/linear/panel_kernels.h"

namespace holmes::kernels {
namespace {

/// Rows that share one dequantised piece. Larger wastes less on dequantising, smaller balances
/// better: dequantising 64 outputs costs about 3 cycles per 16 weights, the products 8 cycles per
/// row of them, so 256 rows leave about 1 %.
constexpr std::int64_t kMaxPieceRows = 256;
constexpr std::int64_t kMinPieceRows = 64;
/// Fewer units than this many per member would leave members waiting for the last one.
constexpr std::int64_t kUnitsPerMember = 4;

const internal::PanelKernels& KernelsFor(const PackedMatrix& w) {
  if (w.isa() == Isa::kScalar) return internal::ScalarKernels();
  if (w.isa() == Isa::kAvx2) return internal::Avx2Kernels();
  if (!IsInteger(w.format())) return internal::Avx512Kernels();
  return w.isa() == Isa::kAmx ? internal::AmxKernels() : internal::VnniKernels();
}

bool Streams(const LinearJob& job) { return job.rows <= KernelsFor(*job.w).max_stream_rows; }

std::int64_t NumGroups(const LinearJob& job) {
  return (job.w->num_panels() + internal::kGroupPanels - 1) / internal::kGroupPanels;
}

/// Units of work of a job that is not streamed: groups of panels x pieces of the rows.
struct Tiling {
  std::int64_t row_pieces = 0;
  std::int64_t units = 0;
};

Tiling TilingOf(const LinearJob& job, std::int64_t piece_rows) {
  const std::int64_t pieces = (job.rows + piece_rows - 1) / piece_rows;
  return {pieces, NumGroups(job) * pieces};
}

/// Where row piece `piece` starts: pieces of equal size, so that the last one is not a sliver, in
/// whole tiles of QuantizedRows.
std::int64_t PieceStart(const LinearJob& job, const Tiling& tiling, std::int64_t piece) {
  constexpr std::int64_t kUnit = QuantizedRows::kTileRows;
  return std::min(job.rows,
                  job.rows * piece / tiling.row_pieces / kUnit * kUnit +
                      (piece == tiling.row_pieces ? kUnit : 0));
}

void CheckInput(const LinearJob& job) {
  if (IsInteger(job.w->format())) {
    HOLMES_CHECK(job.quantized != nullptr && job.quantized->max_k() >= job.w->k(),
                 "an integer format needs quantised rows of its length");
  } else {
    HOLMES_CHECK(job.x != nullptr, "a float format needs float rows");
  }
}

void RunTile(const LinearJob& job, const Tiling& tiling, std::int64_t unit) {
  const std::int64_t first = unit / tiling.row_pieces * internal::kGroupPanels;
  const std::int64_t row = PieceStart(job, tiling, unit % tiling.row_pieces);
  const std::int64_t row_end = PieceStart(job, tiling, unit % tiling.row_pieces + 1);
  KernelsFor(*job.w).tile(job,
                          first,
                          std::min(first + internal::kGroupPanels, job.w->num_panels()),
                          row,
                          row_end - row);
}

/// The member's fixed share of all streamed jobs, by cost: a panel belongs to the member whose
/// range of the summed cost holds its start.
void StreamShares(std::span<const LinearJob> jobs, int member, int members) {
  const auto cost = [](const LinearJob& job) {
    return job.rows == 0 || !Streams(job) ? 0 : job.w->k();
  };
  std::int64_t total = 0;
  for (const LinearJob& job : jobs) total += job.w->num_panels() * cost(job);
  const std::int64_t from = total * member / members;
  const std::int64_t to = total * (member + 1) / members;
  std::int64_t at = 0;
  for (const LinearJob& job : jobs) {
    const std::int64_t each = cost(job);
    if (each == 0) continue;
    const auto panel_at = [&](std::int64_t part) {
      return std::clamp((part - at + each - 1) / each, std::int64_t{0}, job.w->num_panels());
    };
    const std::int64_t first = from <= at ? 0 : panel_at(from);
    const std::int64_t last = to <= at ? 0 : panel_at(to);
    if (first < last) KernelsFor(*job.w).stream(job, first, last);
    at += job.w->num_panels() * each;
  }
}

/// Rows of a piece with which all tiled jobs together give each member enough to choose from.
std::int64_t PieceRows(std::span<const LinearJob> jobs, int members) {
  std::int64_t rows = kMaxPieceRows;
  for (; rows > kMinPieceRows; rows /= 2) {
    std::int64_t units = 0;
    for (const LinearJob& job : jobs) units += Streams(job) ? 0 : TilingOf(job, rows).units;
    if (units >= kUnitsPerMember * members) break;
  }
  return rows;
}

}  // namespace

void LinearInRegion(const LinearJob& job, Team& team, int member) {
  LinearManyInRegion({&job, 1}, team, member);
}

void LinearManyInRegion(std::span<const LinearJob> jobs, Team& team, int member) {
  bool all_stream = true;
  for (const LinearJob& job : jobs) {
    if (job.rows == 0) continue;
    CheckInput(job);
    all_stream = all_stream && Streams(job);
  }
  StreamShares(jobs, member, team.size());
  if (all_stream) return;
  const std::int64_t piece_rows = PieceRows(jobs, team.size());
  std::int64_t claimed = team.Claim();
  std::int64_t first = 0;  // unit of the job, among those of all jobs
  for (const LinearJob& job : jobs) {
    if (job.rows == 0 || Streams(job)) continue;
    const Tiling tiling = TilingOf(job, piece_rows);
    for (; claimed - first < tiling.units; claimed = team.Claim())
      RunTile(job, tiling, claimed - first);
    first += tiling.units;
  }
}

void LinearPanels(const LinearJob& job, std::int64_t first, std::int64_t last) {
  if (job.rows == 0 || first >= last) return;
  CheckInput(job);
  const internal::PanelKernels& kernels = KernelsFor(*job.w);
  if (Streams(job)) return kernels.stream(job, first, last);
  for (std::int64_t panel = first; panel < last;) {
    const std::int64_t group = panel / internal::kGroupPanels + 1;
    const std::int64_t end = std::min(last, group * internal::kGroupPanels);
    kernels.tile(job, panel, end, 0, job.rows);
    panel = end;
  }
}

void Linear(const LinearJob& job, Team& team) {
  LinearJob whole = job;
  std::optional<QuantizedRows> quantized;
  if (IsInteger(job.w->format()) && job.quantized == nullptr) {
    quantized.emplace(job.rows, job.w->k());
    quantized->Quantize(job.x, job.ldx, 0, job.rows, 0, job.w->k(), job.w->isa());
    whole.quantized = &*quantized;
  }
  team.Run([&](int member, int) { LinearInRegion(whole, team, member); });
}

}  // namespace holmes::kernels
