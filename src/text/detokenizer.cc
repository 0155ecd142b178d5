#include "text/detokenizer.h"

namespace holmes::text {

void Detokenizer::Prime(std::span<const TokenId> ids) {
  constexpr std::size_t kLongestCharacter = 4;
  std::string tail;
  for (std::size_t i = ids.size(); i > 0 && tail.size() < kLongestCharacter; --i) {
    if (skip_special_ && tokenizer_.IsSpecial(ids[i - 1])) continue;
    tail.insert(0, tokenizer_.TokenBytes(ids[i - 1]));
  }
  stream_.Prime(tail);
}

}  // namespace holmes::text
