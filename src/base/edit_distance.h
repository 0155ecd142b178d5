/// Finding the name that somebody probably meant.
#pragma once

#include <string>
#include <string_view>

namespace holmes::base {

/// Insertions, deletions, replacements and swaps of neighbours that turn one into the other
/// (optimal string alignment distance). Quadratic.
int EditDistance(std::string_view a, std::string_view b);

/// The element of `names` nearest to `name`, the first of equals; empty when there are none.
/// Elements convert to string_view.
template <typename Names>
std::string Nearest(std::string_view name, const Names& names) {
  std::string best;
  int best_distance = -1;
  for (const auto& candidate : names) {
    const int distance = EditDistance(name, candidate);
    if (best_distance >= 0 && distance >= best_distance) continue;
    best_distance = distance;
    best = std::string(std::string_view(candidate));
  }
  return best;
}

}  // namespace holmes::base
