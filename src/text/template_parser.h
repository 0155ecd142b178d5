/// Tokens to a syntax tree. Internal to text.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "text/template_ast.h"
#include "text/template_lexer.h"

namespace holmes::text {

/// Errors: those of Template::Parse.
StatusOr<std::unique_ptr<ast::Tree>> ParseTemplate(std::vector<TemplateToken> tokens);

/// Whether the interpreter has a filter or test of that name.
bool IsKnownFilter(std::string_view name);
bool IsKnownTest(std::string_view name);

}  // namespace holmes::text
