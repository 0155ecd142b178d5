/// Cuts template source into text and tokens. Internal to text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace holmes::text {

enum class TokenKind {
  kText,
  kOutputBegin,
  kOutputEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd
};

struct TemplateToken {
  TokenKind kind;
  std::string text;  // literal text, decoded string, name, digits or operator
  int line;
};

/// White space control as with trim_blocks and lstrip_blocks. Errors: kInvalidArgument with the
/// line.
StatusOr<std::vector<TemplateToken>> LexTemplate(std::string_view source);

}  // namespace holmes::text
