#include "weights/end_tokens.h"

#include <algorithm>
#include <array>

namespace holmes::weights {

bool IsWellKnownEndText(std::string_view token_text) {
  static constexpr std::array<std::string_view, 6> kTexts = {
      "<|im_end|>", "<|eot_id|>", "<|end_of_text|>", "<|endoftext|>", "<|eom_id|>", "</s>"};
  return std::find(kTexts.begin(), kTexts.end(), token_text) != kTexts.end();
}

std::vector<TokenId> SortedUnique(std::vector<TokenId> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace holmes::weights
