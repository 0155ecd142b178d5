#include "text/template.h"

#include <fmt/format.h>

#include "text/template_ast.h"
#include "text/template_builtins.h"
#include "text/template_interpreter.h"
#include "text/template_lexer.h"
#include "text/template_parser.h"

namespace holmes::text {

Template::Template(std::unique_ptr<const ast::Tree> tree) : tree_(std::move(tree)) {}
Template::~Template() = default;

StatusOr<std::unique_ptr<const Template>> Template::Parse(std::string_view source) {
  if (source.size() > kMaxSourceBytes) {
    return base::InvalidArgumentError(fmt::format(
        "the chat template has {} bytes, at most {} are read", source.size(), kMaxSourceBytes));
  }
  HOLMES_ASSIGN_OR_RETURN(std::vector<TemplateToken> tokens, LexTemplate(source));
  HOLMES_ASSIGN_OR_RETURN(std::unique_ptr<ast::Tree> tree, ParseTemplate(std::move(tokens)));
  return std::unique_ptr<const Template>(new Template(std::move(tree)));
}

StatusOr<std::string> Template::Render(const Value& variables, const RenderOptions& options) const {
  if (variables.depth() > kMaxValueDepth)
    return base::InvalidArgumentError(
        fmt::format("the chat's messages are nested more than {} levels deep", kMaxValueDepth));
  return Interpreter(variables, options).Run(tree_->root);
}

}  // namespace holmes::text
