#include "weights/source_index.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace holmes::weights {

TensorIndex::TensorIndex(std::vector<TensorRef> tensors)
    : tensors_(std::move(tensors)), by_name_(tensors_.size()) {
  std::iota(by_name_.begin(), by_name_.end(), 0u);
  std::sort(by_name_.begin(), by_name_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return tensors_[a].name < tensors_[b].name;
  });
}

const TensorRef* TensorIndex::Find(std::string_view name) const {
  const auto at = std::lower_bound(
      by_name_.begin(), by_name_.end(), name, [this](std::uint32_t i, std::string_view wanted) {
        return tensors_[i].name < wanted;
      });
  if (at == by_name_.end() || tensors_[*at].name != name) return nullptr;
  return &tensors_[*at];
}

}  // namespace holmes::weights
