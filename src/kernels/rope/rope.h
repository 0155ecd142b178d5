/// Rotary position embedding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace holmes::kernels {

/// Which two elements of a head turn together.
enum class RopeLayout : std::uint8_t {
  kHalf,         // (i, i + rotary_dim / 2)
  kInterleaved,  // (2i, 2i + 1)
};

/// Cosines and sines of every position, computed once in float64 and rounded.
class RopeTable {
 public:
  /// inv_freq [rotary_dim / 2]: radians per position. `factor` multiplies cosine and sine (1 but
  /// for some scaled variants).
  RopeTable(std::span<const double> inv_freq, int num_positions, double factor);

  int rotary_dim() const { return 2 * half_; }
  int num_positions() const { return num_positions_; }
  /// [rotary_dim / 2] each.
  const float* cos(int position) const {
    return table_.data() + static_cast<std::size_t>(position) * 2 * half_;
  }
  const float* sin(int position) const { return cos(position) + half_; }

 private:
  int half_;
  int num_positions_;
  std::vector<float> table_;  // [num_positions, 2, rotary_dim / 2]
};

/// Turns `heads` heads of one token in place; elements from rotary_dim on stay as they are.
/// Shapes: x [heads, head_dim], contiguous. 0 <= position < table.num_positions().
/// Source: Su et al. 2021, "RoFormer".
void ApplyRope(
    float* x, int heads, int head_dim, const RopeTable& table, int position, RopeLayout layout);

}  // namespace holmes::kernels
