#include "text/added_tokens.h"

#include <utility>

#include "text/utf8.h"

namespace holmes::text {
namespace {

/// White_Space of Unicode.
bool IsSpace(char32_t c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

std::size_t SkipSpaces(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const Utf8Step step = NextUtf8(text.substr(at));
    if (!IsSpace(step.code_point)) break;
    at += static_cast<std::size_t>(step.length);
  }
  return at;
}

/// Where the white space before `end` begins, not before `begin`.
std::size_t SkipSpacesBack(std::string_view text, std::size_t begin, std::size_t end) {
  while (end > begin) {
    std::size_t at = end - 1;
    while (at > begin && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    if (!IsSpace(NextUtf8(text.substr(at)).code_point)) break;
    end = at;
  }
  return end;
}

std::uint64_t ChildKey(std::int32_t node, char byte) {
  return static_cast<std::uint64_t>(node) << 8 | static_cast<unsigned char>(byte);
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens)
    : tokens_(std::move(tokens)), nodes_(1), begins_(256, false) {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    if (token.text.empty()) continue;
    begins_[static_cast<unsigned char>(token.text[0])] = true;
    std::int32_t node = 0;
    for (const char byte : token.text) {
      const auto [child, is_new] =
          children_.try_emplace(ChildKey(node, byte), static_cast<std::int32_t>(nodes_.size()));
      if (is_new) nodes_.emplace_back();
      node = child->second;
    }
    Node& end = nodes_[static_cast<std::size_t>(node)];
    const auto idx = static_cast<std::int32_t>(i);
    if (end.token < 0) end.token = idx;
    if (end.plain_token < 0 && !token.special) end.plain_token = idx;
  }
}

std::int32_t AddedTokenMatcher::Child(std::int32_t node, char byte) const {
  const auto found = children_.find(ChildKey(node, byte));
  return found == children_.end() ? -1 : found->second;
}

const AddedToken* AddedTokenMatcher::MatchAt(std::string_view text,
                                             std::size_t at,
                                             bool special) const {
  std::int32_t longest = -1;
  for (std::int32_t node = 0; at < text.size() && (node = Child(node, text[at])) >= 0; ++at) {
    const Node& reached = nodes_[static_cast<std::size_t>(node)];
    const std::int32_t token = special ? reached.token : reached.plain_token;
    if (token >= 0) longest = token;
  }
  return longest < 0 ? nullptr : &tokens_[static_cast<std::size_t>(longest)];
}

std::vector<AddedTokenMatcher::Piece> AddedTokenMatcher::Split(std::string_view text,
                                                               bool special) const {
  std::vector<Piece> out;
  std::size_t begin = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const AddedToken* token =
        begins_[static_cast<unsigned char>(text[at])] ? MatchAt(text, at, special) : nullptr;
    if (token == nullptr) {
      ++at;
      continue;
    }
    const std::size_t text_end = token->lstrip ? SkipSpacesBack(text, begin, at) : at;
    at += token->text.size();
    if (token->rstrip) at = SkipSpaces(text, at);
    if (text_end > begin) out.push_back({text.substr(begin, text_end - begin), -1});
    out.push_back({token->text, token->id});
    begin = at;
  }
  if (begin < text.size()) out.push_back({text.substr(begin), -1});
  return out;
}

}  // namespace holmes::text
