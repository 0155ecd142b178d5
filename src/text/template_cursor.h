/// Reads a template's tokens one after the other. Internal to text.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "text/template_lexer.h"

namespace holmes::text {

/// The last token is kEnd and is never passed.
class TokenCursor {
 public:
  explicit TokenCursor(std::vector<TemplateToken> tokens) : tokens_(std::move(tokens)) {}

  const TemplateToken& Now() const { return tokens_[at_]; }
  const TemplateToken& Next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool IsName(std::string_view name) const {
    return Now().kind == TokenKind::kName && Now().text == name;
  }
  bool IsOp(std::string_view op) const {
    return Now().kind == TokenKind::kOperator && Now().text == op;
  }
  void Skip() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool TakeOp(std::string_view op) { return IsOp(op) && (Skip(), true); }
  bool TakeName(std::string_view name) { return IsName(name) && (Skip(), true); }
  Status Error(std::string message) const {
    return base::InvalidArgumentError(fmt::format("template line {}: {}", Now().line, message));
  }
  std::string Found() const {
    switch (Now().kind) {
      case TokenKind::kEnd:
        return "the template's end";
      case TokenKind::kBlockEnd:
      case TokenKind::kOutputEnd:
        return "the tag's end";
      default:
        return "'" + Now().text + "'";
    }
  }
  Status ExpectOp(std::string_view op) {
    return TakeOp(op) ? OkStatus() : Error(fmt::format("'{}' is expected, {} found", op, Found()));
  }
  Status ExpectName(std::string_view name) {
    return TakeName(name) ? OkStatus()
                          : Error(fmt::format("'{}' is expected, {} found", name, Found()));
  }
  Status ExpectBlockEnd() {
    if (Now().kind != TokenKind::kBlockEnd)
      return Error(fmt::format("the tag's end is expected, {} found", Found()));
    Skip();
    return OkStatus();
  }
  StatusOr<std::string> Identifier() {
    if (Now().kind != TokenKind::kName)
      return Error(fmt::format("a name is expected, {} found", Found()));
    std::string name = Now().text;
    Skip();
    return name;
  }

 private:
  std::vector<TemplateToken> tokens_;
  std::size_t at_ = 0;
};

}  // namespace holmes::text
