#include "text/template_interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

namespace holmes::text {
namespace {

using ast::ExprKind;
using ast::StmtKind;

constexpr std::int64_t kTurnSteps = 8;  // of a loop, which makes its variable `loop` anew
}  // namespace

void Interpreter::Scope::Set(const std::string& name, Value value) {
  for (auto& [existing, current] : variables) {
    if (existing == name) {
      current = std::move(value);
      return;
    }
  }
  variables.emplace_back(name, std::move(value));
}

const Value* Interpreter::Scope::Find(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent) {
    for (const auto& [existing, value] : scope->variables) {
      if (existing == name) return &value;
    }
  }
  return nullptr;
}

Interpreter::Interpreter(const Value& variables, const RenderOptions& options)
    : budget_(options), globals_(nullptr), top_(&globals_) {
  AddGlobals();
  budget_.AllowFor(variables);
  if (variables.is_dict()) top_.variables = variables.as_dict();
}

StatusOr<std::string> Interpreter::Run(const ast::Body& body) {
  std::string out;
  HOLMES_ASSIGN_OR_RETURN(const Flow flow, RunBody(body, top_, out));
  static_cast<void>(flow);
  return out;
}

Status Interpreter::AtLine(const Status& status, int line) const {
  const bool has_place = raised_ || status.code() == StatusCode::kResourceExhausted ||
                         status.message().starts_with("chat template line ");
  return has_place ? status : status.WithContext(fmt::format("chat template line {}", line));
}

Status Interpreter::Append(std::string_view text, std::string& out) const {
  HOLMES_RETURN_IF_ERROR(budget_.CheckSize(out.size() + text.size()));
  out += text;
  return OkStatus();
}

StatusOr<Interpreter::Flow> Interpreter::RunBody(const ast::Body& body,
                                                 Scope& scope,
                                                 std::string& out) {
  for (const auto& stmt : body) {
    HOLMES_RETURN_IF_ERROR(budget_.Step());
    StatusOr<Flow> flow = RunStatement(*stmt, scope, out);
    if (!flow.ok()) return AtLine(flow.status(), stmt->line);
    if (*flow != Flow::kNext) return *flow;
  }
  return Flow::kNext;
}

StatusOr<Interpreter::Flow> Interpreter::RunStatement(const ast::Stmt& stmt,
                                                      Scope& scope,
                                                      std::string& out) {
  switch (stmt.kind) {
    case StmtKind::kText: {
      HOLMES_RETURN_IF_ERROR(Append(stmt.text, out));
      return Flow::kNext;
    }
    case StmtKind::kOutput: {
      HOLMES_ASSIGN_OR_RETURN(const Value value, Evaluate(*stmt.expr, scope));
      HOLMES_RETURN_IF_ERROR(Append(value.ToString(), out));
      return Flow::kNext;
    }
    case StmtKind::kIf:
      return RunIf(stmt, scope, out);
    case StmtKind::kFor:
      return RunFor(stmt, scope, out);
    case StmtKind::kSet: {
      HOLMES_RETURN_IF_ERROR(RunSet(stmt, scope));
      return Flow::kNext;
    }
    case StmtKind::kSetBlock: {
      HOLMES_RETURN_IF_ERROR(RunSetBlock(stmt, scope));
      return Flow::kNext;
    }
    case StmtKind::kMacro: {
      scope.Set(stmt.text, MakeMacro(stmt, scope));
      return Flow::kNext;
    }
    case StmtKind::kCallBlock: {
      HOLMES_RETURN_IF_ERROR(RunCallBlock(stmt, scope, out));
      return Flow::kNext;
    }
    case StmtKind::kFilterBlock: {
      std::string inner;
      Scope local(&scope);
      HOLMES_ASSIGN_OR_RETURN(const Flow flow, RunBody(stmt.bodies[0], local, inner));
      HOLMES_ASSIGN_OR_RETURN(const Value value,
                              FilterText(stmt.expr.get(), std::move(inner), scope));
      HOLMES_RETURN_IF_ERROR(Append(value.ToString(), out));
      return flow;
    }
    case StmtKind::kWith: {
      Scope local(&scope);
      for (std::size_t i = 0; i < stmt.targets.size(); ++i) {
        HOLMES_ASSIGN_OR_RETURN(Value value, Evaluate(*stmt.conditions[i], scope));
        local.Set(stmt.targets[i]->name, std::move(value));
      }
      return RunBody(stmt.bodies[0], local, out);
    }
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

StatusOr<Interpreter::Flow> Interpreter::RunIf(const ast::Stmt& stmt,
                                               Scope& scope,
                                               std::string& out) {
  for (std::size_t i = 0; i < stmt.conditions.size(); ++i) {
    bool holds = stmt.conditions[i] == nullptr;
    if (!holds) {
      HOLMES_ASSIGN_OR_RETURN(const Value value, Evaluate(*stmt.conditions[i], scope));
      holds = value.Truthy();
    }
    if (holds) return RunBody(stmt.bodies[i], scope, out);
  }
  return Flow::kNext;
}

Value Interpreter::LoopVariable(const std::shared_ptr<const List>& items,
                                std::size_t index,
                                const std::shared_ptr<std::optional<List>>& last_seen) const {
  const auto size = static_cast<std::int64_t>(items->size());
  const auto at = static_cast<std::int64_t>(index);
  Dict loop = {{"index", at + 1},
               {"index0", at},
               {"revindex", size - at},
               {"revindex0", size - at - 1},
               {"first", at == 0},
               {"last", at + 1 == size},
               {"length", size},
               {"depth", 1},
               {"depth0", 0}};
  loop.emplace_back("previtem",
                    at > 0 ? (*items)[index - 1] : Value(Undefined{"there is no previous item"}));
  loop.emplace_back(
      "nextitem", at + 1 < size ? (*items)[index + 1] : Value(Undefined{"there is no next item"}));
  loop.emplace_back("cycle", Function([index](const Arguments& arguments) -> StatusOr<Value> {
                      if (arguments.positional.empty())
                        return base::InvalidArgumentError("no items for cycling given");
                      return arguments.positional[index % arguments.positional.size()];
                    }));
  loop.emplace_back("changed", Function([last_seen](const Arguments& arguments) {
                      const bool changed = *last_seen != arguments.positional;
                      if (changed) *last_seen = arguments.positional;
                      return Value(changed);
                    }));
  return loop;
}

StatusOr<Interpreter::Flow> Interpreter::RunFor(const ast::Stmt& stmt,
                                                Scope& scope,
                                                std::string& out) {
  HOLMES_ASSIGN_OR_RETURN(const Value iterable, Evaluate(*stmt.expr, scope));
  HOLMES_RETURN_IF_ERROR(budget_.SpendOn(iterable));
  HOLMES_ASSIGN_OR_RETURN(List all, Iterate(iterable));
  if (stmt.condition != nullptr) {
    List kept;
    for (const Value& item : all) {
      HOLMES_RETURN_IF_ERROR(budget_.Step());
      Scope local(&scope);
      HOLMES_RETURN_IF_ERROR(Assign(stmt.targets, item, local));
      HOLMES_ASSIGN_OR_RETURN(const Value holds, Evaluate(*stmt.condition, local));
      if (holds.Truthy()) kept.push_back(item);
    }
    all = std::move(kept);
  }
  const auto items = std::make_shared<const List>(std::move(all));
  if (items->empty()) {
    if (stmt.bodies.size() < 2) return Flow::kNext;
    Scope local(&scope);
    return RunBody(stmt.bodies[1], local, out);
  }
  StatusOr<Flow> result = Flow::kNext;
  const auto last_seen = std::make_shared<std::optional<List>>();
  for (std::size_t i = 0; i < items->size(); ++i) {
    HOLMES_RETURN_IF_ERROR(budget_.Spend(kTurnSteps));
    Scope local(&scope);
    local.Set("loop", LoopVariable(items, i, last_seen));
    const Status assigned = Assign(stmt.targets, (*items)[i], local);
    result = assigned.ok() ? RunBody(stmt.bodies[0], local, out) : StatusOr<Flow>(assigned);
    if (!result.ok() || *result == Flow::kBreak) break;
  }
  if (!result.ok()) return result;
  return Flow::kNext;
}

Status Interpreter::Assign(const std::vector<ast::ExprPtr>& targets,
                           const Value& value,
                           Scope& scope) {
  if (targets.size() == 1) {
    const ast::Expr& target = *targets[0];
    if (target.kind == ExprKind::kName) {
      scope.Set(target.name, value);
      return OkStatus();
    }
    HOLMES_ASSIGN_OR_RETURN(const Value object, Evaluate(*target.args[0], scope));
    if (!object.is_namespace())
      return base::InvalidArgumentError("cannot assign attribute on non-namespace object");
    if (value.holds_reference())
      return base::UnimplementedError(fmt::format(
          "'{}': a namespace or a callable inside a namespace is not supported", target.name));
    SetKey(object.namespace_dict(), target.name, value);
    return OkStatus();
  }
  HOLMES_ASSIGN_OR_RETURN(const List items, Iterate(value));
  if (items.size() != targets.size())
    return base::InvalidArgumentError(
        fmt::format("{} values to unpack into {} names", items.size(), targets.size()));
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (targets[i]->kind != ExprKind::kName)
      return base::InvalidArgumentError("only names can be unpacked into");
    scope.Set(targets[i]->name, items[i]);
  }
  return OkStatus();
}

Status Interpreter::RunSet(const ast::Stmt& stmt, Scope& scope) {
  HOLMES_ASSIGN_OR_RETURN(const Value value, Evaluate(*stmt.expr, scope));
  return Assign(stmt.targets, value, scope);
}

Status Interpreter::RunSetBlock(const ast::Stmt& stmt, Scope& scope) {
  std::string inner;
  Scope local(&scope);
  HOLMES_ASSIGN_OR_RETURN(const Flow flow, RunBody(stmt.bodies[0], local, inner));
  static_cast<void>(flow);
  HOLMES_ASSIGN_OR_RETURN(const Value value, FilterText(stmt.expr.get(), std::move(inner), scope));
  return Assign(stmt.targets, value, scope);
}

Value Interpreter::MakeMacro(const ast::Stmt& stmt, Scope& scope) {
  // The macro lives in the scope it sees, and no callable leaves its scope: namespaces refuse them
  // and macros give text.
  return Function([this, &stmt, &scope](const Arguments& arguments) {
    return CallMacro(stmt, scope, arguments);
  });
}

/// varargs, kwargs and caller, where the macro names them; a refusal where it does not.
Status Interpreter::TakeExtraArguments(const ast::Stmt& stmt,
                                       const Arguments& arguments,
                                       Scope& local) const {
  const std::size_t known = stmt.parameters.size();
  List varargs;
  if (arguments.positional.size() > known)
    varargs.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(known),
                   arguments.positional.end());
  if (!varargs.empty() && !stmt.uses_varargs)
    return base::InvalidArgumentError(
        fmt::format("macro '{}' takes not more than {} argument(s)", stmt.text, known));
  Dict kwargs;
  for (const auto& [name, value] : arguments.named) {
    const auto parameter = std::find_if(
        stmt.parameters.begin(), stmt.parameters.end(), [&wanted = name](const auto& candidate) {
          return candidate.name == wanted;
        });
    if (parameter != stmt.parameters.end()) {
      if (static_cast<std::size_t>(parameter - stmt.parameters.begin()) <
          arguments.positional.size())
        return base::InvalidArgumentError(
            fmt::format("macro '{}' gets the argument '{}' twice", stmt.text, name));
    } else if (name == "caller" && stmt.uses_caller) {
      local.Set(name, value);
    } else if (stmt.uses_kwargs && name != "caller") {
      kwargs.emplace_back(name, value);
    } else {
      return base::InvalidArgumentError(
          fmt::format("macro '{}' takes no keyword argument '{}'", stmt.text, name));
    }
  }
  if (stmt.uses_varargs) local.Set("varargs", Value::Tuple(std::move(varargs)));
  if (stmt.uses_kwargs) local.Set("kwargs", std::move(kwargs));
  return OkStatus();
}

StatusOr<Value> Interpreter::CallMacro(const ast::Stmt& stmt,
                                       Scope& defined_in,
                                       const Arguments& arguments) {
  if (++call_depth_ > budget_.options().max_call_depth) {
    --call_depth_;
    return base::ResourceExhaustedError(
        fmt::format("the chat template calls itself more than {} levels deep",
                    budget_.options().max_call_depth));
  }
  Scope local(&defined_in);
  Status status = OkStatus();
  status = TakeExtraArguments(stmt, arguments, local);
  for (std::size_t i = 0; status.ok() && i < stmt.parameters.size(); ++i) {
    const ast::Parameter& parameter = stmt.parameters[i];
    if (const Value* given = FindArgument(arguments, i, parameter.name)) {
      local.Set(parameter.name, *given);
    } else if (parameter.fallback != nullptr) {
      StatusOr<Value> fallback = Evaluate(*parameter.fallback, local);
      status = fallback.status();
      if (fallback.ok()) local.Set(parameter.name, *std::move(fallback));
    } else {
      local.Set(parameter.name, Undefined{parameter.name});
    }
  }
  std::string out;
  if (status.ok()) {
    const StatusOr<Flow> flow = RunBody(stmt.bodies[0], local, out);
    status = flow.status();
  }
  --call_depth_;
  HOLMES_RETURN_IF_ERROR(status);
  return Value(std::move(out));
}

Status Interpreter::RunCallBlock(const ast::Stmt& stmt, Scope& scope, std::string& out) {
  HOLMES_ASSIGN_OR_RETURN(const Value callee, Evaluate(*stmt.expr->args[0], scope));
  if (!callee.is_function())
    return base::InvalidArgumentError(
        fmt::format("'{}' object is not callable", callee.type_name()));
  HOLMES_ASSIGN_OR_RETURN(Arguments arguments, EvaluateArguments(*stmt.expr, scope));
  arguments.named.emplace_back("caller", Function([this, &stmt, &scope](const Arguments& inner) {
                                 return CallMacro(stmt, scope, inner);
                               }));
  HOLMES_ASSIGN_OR_RETURN(const Value value, callee.as_function()(arguments));
  return Append(value.ToString(), out);
}

StatusOr<Value> Interpreter::FilterText(const ast::Expr* filters, Value text, Scope& scope) {
  if (filters == nullptr) return text;
  const Value* outer = std::exchange(block_text_, &text);
  StatusOr<Value> out = Evaluate(*filters, scope);
  block_text_ = outer;
  return out;
}

}  // namespace holmes::text
