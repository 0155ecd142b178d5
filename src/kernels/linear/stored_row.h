/// Reads one row of a stored tensor in slices of 32 inputs, still quantised.
#pragma once

#include "kernels/linear/slice.h"

namespace holmes::kernels {

class StoredRow {
 public:
  /// `view` has been checked by PackedMatrix::Pack.
  StoredRow(const WeightView& view, std::int64_t row);

  /// Inputs [32 s, 32 s + 32); zeros beyond the row's end.
  SliceValues Slice(std::int64_t s) const;

 private:
  tensor::BlockType type_;
  std::int64_t k_;
  const std::byte* row_;
};

}  // namespace holmes::kernels
