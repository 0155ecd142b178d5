/// Tensors by name, shared by the formats.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "weights/model_source.h"

namespace holmes::weights {

/// Owns the tensor list; immutable after construction.
class TensorIndex {
 public:
  TensorIndex() = default;
  /// Names are distinct: the readers checked that.
  explicit TensorIndex(std::vector<TensorRef> tensors);
  std::span<const TensorRef> tensors() const { return tensors_; }
  /// Null when absent. Cost: logarithmic.
  const TensorRef* Find(std::string_view name) const;

 private:
  std::vector<TensorRef> tensors_;
  std::vector<std::uint32_t> by_name_;
};

}  // namespace holmes::weights
