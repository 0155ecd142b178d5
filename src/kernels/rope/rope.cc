#include "kernels/rope/rope.h"

#include <cmath>

namespace holmes::kernels {

RopeTable::RopeTable(std::span<const double> inv_freq, int num_positions, double factor)
    : half_(static_cast<int>(inv_freq.size())),
      num_positions_(num_positions),
      table_(static_cast<std::size_t>(num_positions) * 2 * inv_freq.size()) {
  for (int p = 0; p < num_positions; ++p) {
    float* row = table_.data() + static_cast<std::size_t>(p) * 2 * half_;
    for (int i = 0; i < half_; ++i) {
      const double angle = p * inv_freq[static_cast<std::size_t>(i)];
      row[i] = static_cast<float>(std::cos(angle) * factor);
      row[half_ + i] = static_cast<float>(std::sin(angle) * factor);
    }
  }
}

void ApplyRope(
    float* x, int heads, int head_dim, const RopeTable& table, int position, RopeLayout layout) {
  const int half = table.rotary_dim() / 2;
  const float* cos = table.cos(position);
  const float* sin = table.sin(position);
  const int stride = layout == RopeLayout::kHalf ? 1 : 2;
  const int other = layout == RopeLayout::kHalf ? half : 1;
  for (int h = 0; h < heads; ++h) {
    float* head = x + static_cast<std::int64_t>(h) * head_dim;
    for (int i = 0; i < half; ++i) {
      float& a = head[i * stride];
      float& b = head[i * stride + other];
      const float turned_a = a * cos[i] - b * sin[i];
      b = b * cos[i] + a * sin[i];
      a = turned_a;
    }
  }
}

}  // namespace holmes::kernels
