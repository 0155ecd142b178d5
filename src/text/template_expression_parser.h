/// Tokens to expressions. Internal to text.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "text/template_ast.h"
#include "text/template_cursor.h"

namespace holmes::text {

/// Each rule begins at the current token and leaves the first token that is not its own.
/// Errors: kInvalidArgument with the line; kUnimplemented for what is not there, by name.
class ExpressionParser : protected TokenCursor {
 protected:
  using ExprPtr = ast::ExprPtr;
  using Rule = StatusOr<ExprPtr> (ExpressionParser::*)();
  static constexpr int kMaxDepth = 100;  // of nested expressions and blocks: bounds the stack

  struct Depth {
    explicit Depth(int& depth) : depth_(depth) { ++depth_; }
    ~Depth() { --depth_; }
    int& depth_;
  };

  using TokenCursor::TokenCursor;

  ExprPtr Make(ast::ExprKind kind) const;
  /// Sets the node's height. Errors: too high a tree, which would need too much stack later.
  Status Measure(ast::Expr& node) const;
  StatusOr<ExprPtr> Measured(ExprPtr node) const;
  StatusOr<ExprPtr> With(ExprPtr node, ExprPtr a, ExprPtr b = nullptr) const;

  // Loosest binding first.
  StatusOr<ExprPtr> TupleOf(Rule rule);
  StatusOr<ExprPtr> Tuple();
  StatusOr<ExprPtr> Expression();
  StatusOr<ExprPtr> Or();
  StatusOr<ExprPtr> And();
  StatusOr<ExprPtr> Not();
  StatusOr<ExprPtr> Compare();
  StatusOr<ExprPtr> Binary(Rule operand, std::initializer_list<std::string_view> ops);
  StatusOr<ExprPtr> Sum();
  StatusOr<ExprPtr> Concat();
  StatusOr<ExprPtr> Product();
  StatusOr<ExprPtr> Power();
  StatusOr<ExprPtr> FilteredUnary();
  StatusOr<ExprPtr> Unary(bool filters);
  StatusOr<ExprPtr> Primary();
  StatusOr<ExprPtr> NumberOf(const TemplateToken& token, ExprPtr out);
  StatusOr<ExprPtr> Parenthesis();
  StatusOr<ExprPtr> ListLiteral();
  StatusOr<ExprPtr> DictLiteral();
  StatusOr<ExprPtr> Postfix(ExprPtr out);
  StatusOr<ExprPtr> Subscript(ExprPtr object);
  Status CallArguments(ast::Expr& node);
  StatusOr<ExprPtr> Call(ExprPtr callee);
  /// A filter's name and arguments; `input` null = the block's text, which the interpreter puts in.
  StatusOr<ExprPtr> OneFilter(ExprPtr input);
  StatusOr<ExprPtr> Filters(ExprPtr out);
  StatusOr<ExprPtr> FiltersAndTests(ExprPtr out);
  StatusOr<ExprPtr> Test(ExprPtr input);

  int depth_ = 0;
  // Whether the macro that is being read names these.
  bool varargs_ = false;
  bool kwargs_ = false;
  bool caller_ = false;
};

}  // namespace holmes::text
