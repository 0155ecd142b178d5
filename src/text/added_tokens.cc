#include "text/added_tokens.h"

#include <algorithm>

namespace holmes::text {
namespace {

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const AddedToken& token) { return token.text.empty(); });
  std::stable_sort(tokens_.begin(), tokens_.end(), [](const AddedToken& a, const AddedToken& b) {
    return a.text.size() > b.text.size();
  });
  for (const AddedToken& token : tokens_)
    by_first_byte_[static_cast<unsigned char>(token.text[0])].push_back(&token);
}

const AddedToken* AddedTokenMatcher::MatchAt(std::string_view text,
                                             std::size_t at,
                                             bool special) const {
  for (const AddedToken* token : by_first_byte_[static_cast<unsigned char>(text[at])]) {
    if ((special || !token->special) && text.substr(at, token->text.size()) == token->text)
      return token;
  }
  return nullptr;
}

std::vector<AddedTokenMatcher::Piece> AddedTokenMatcher::Split(std::string_view text,
                                                               bool special) const {
  std::vector<Piece> out;
  std::size_t begin = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const AddedToken* token = MatchAt(text, at, special);
    if (token == nullptr) {
      ++at;
      continue;
    }
    std::size_t text_end = at;
    at += token->text.size();
    // A token that strips takes the white space beside it.
    while (token->lstrip && text_end > begin && IsSpace(text[text_end - 1])) --text_end;
    while (token->rstrip && at < text.size() && IsSpace(text[at])) ++at;
    if (text_end > begin) out.push_back({text.substr(begin, text_end - begin), -1});
    out.push_back({token->text, token->id});
    begin = at;
  }
  if (begin < text.size()) out.push_back({text.substr(begin), -1});
  return out;
}

}  // namespace holmes::text
