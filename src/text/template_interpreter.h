/// Walks a template's tree. Internal to text.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/template_ast.h"
#include "text/template_builtins.h"

namespace holmes::text {

/// One rendering; not reused.
class Interpreter {
 public:
  Interpreter(const Value& variables, const RenderOptions& options);
  /// Errors: those of Template::Render.
  StatusOr<std::string> Run(const ast::Body& body);

 private:
  /// Variables of a block; the innermost that has a name wins.
  struct Scope {
    explicit Scope(Scope* parent_scope) : parent(parent_scope) {}
    Scope* parent;
    std::vector<std::pair<std::string, Value>> variables;
    void Set(const std::string& name, Value value);
    const Value* Find(std::string_view name) const;
  };
  /// What a statement did to the flow of its loop.
  enum class Flow { kNext, kBreak, kContinue };

  Status AtLine(const Status& status, int line) const;
  StatusOr<Flow> RunBody(const ast::Body& body, Scope& scope, std::string& out);
  StatusOr<Flow> RunStatement(const ast::Stmt& stmt, Scope& scope, std::string& out);
  StatusOr<Flow> RunIf(const ast::Stmt& stmt, Scope& scope, std::string& out);
  StatusOr<Flow> RunFor(const ast::Stmt& stmt, Scope& scope, std::string& out);
  Status RunSet(const ast::Stmt& stmt, Scope& scope);
  Status RunSetBlock(const ast::Stmt& stmt, Scope& scope);
  Status RunCallBlock(const ast::Stmt& stmt, Scope& scope, std::string& out);
  Status Append(std::string_view text, std::string& out) const;
  Status Assign(const std::vector<ast::ExprPtr>& targets, const Value& value, Scope& scope);
  Value MakeMacro(const ast::Stmt& stmt, Scope& scope);
  StatusOr<Value> CallMacro(const ast::Stmt& stmt, Scope& defined_in, const Arguments& arguments);
  Status TakeExtraArguments(const ast::Stmt& stmt, const Arguments& arguments, Scope& local) const;
  /// `last_seen`: what loop.changed was given last.
  Value LoopVariable(const std::shared_ptr<const List>& items,
                     std::size_t index,
                     const std::shared_ptr<std::optional<List>>& last_seen) const;

  StatusOr<Value> Evaluate(const ast::Expr& expr, Scope& scope);
  StatusOr<Value> EvaluateNode(const ast::Expr& expr, Scope& scope);
  StatusOr<Value> EvaluateCall(const ast::Expr& expr, Scope& scope);
  StatusOr<Value> EvaluateCompare(const ast::Expr& expr, Scope& scope);
  StatusOr<Value> EvaluateDict(const ast::Expr& expr, Scope& scope);
  StatusOr<Value> GetAttribute(const Value& object, const std::string& name) const;
  StatusOr<Arguments> EvaluateArguments(const ast::Expr& expr, Scope& scope);
  /// A filter chain whose innermost input is `text`.
  StatusOr<Value> FilterText(const ast::Expr* filters, Value text, Scope& scope);
  Status TooDeep() const;
  void AddGlobals();
  StatusOr<Value> MakeCycler(const Arguments& arguments);

  RenderBudget budget_;
  std::vector<Value> cyclers_;  // namespaces whose functions know their place here
  Scope globals_;
  Scope top_;
  int call_depth_ = 0;
  int depth_ = 0;                      // of expressions being evaluated
  bool raised_ = false;                // raise_exception: its message stands alone
  const Value* block_text_ = nullptr;  // input of a filter block
};

}  // namespace holmes::text
