#include "text/template_interpreter.h"

#include <fmt/format.h>

#include <array>
#include <ctime>

namespace holmes::text {
namespace {

using ast::ExprKind;
using ast::StmtKind;

// Of expressions in each other, through macros too: bounds the stack.
constexpr int kMaxEvaluationDepth = 600;
constexpr std::int64_t kTurnSteps = 8;       // of a loop, which makes its variable `loop` anew
constexpr std::int64_t kMaxRange = 100'000;  // jinja2's sandbox has the same

StatusOr<Value> Range(const Arguments& arguments) {
  std::array<std::int64_t, 3> bounds = {0, 0, 1};
  const std::size_t count = arguments.positional.size();
  if (count < 1 || count > 3)
    return base::InvalidArgumentError(
        fmt::format("range expected 1 to 3 arguments, got {}", count));
  for (std::size_t i = 0; i < count; ++i) {
    const Value& value = arguments.positional[i];
    if (!value.is_number() || value.is_float())
      return base::InvalidArgumentError(
          fmt::format("'{}' object cannot be interpreted as an integer", value.type_name()));
    bounds[count == 1 ? 1 : i] = value.as_int();
  }
  const auto [start, stop, step] = bounds;
  if (step == 0) return base::InvalidArgumentError("range() arg 3 must not be zero");
  List out;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<std::int64_t>(out.size()) == kMaxRange)
      return base::ResourceExhaustedError(
          fmt::format("Range too big. The sandbox blocks ranges larger than {}.", kMaxRange));
    out.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return Value(std::move(out));
}

void SetKey(Dict& dict, const std::string& key, Value value) {
  for (auto& [existing, current] : dict) {
    if (existing != key) continue;
    current = std::move(value);
    return;
  }
  dict.emplace_back(key, std::move(value));
}

/// namespace(a=1) and dict(a=1), also with a dict or pairs to begin from.
StatusOr<Dict> MakeDict(const Arguments& arguments) {
  Dict out;
  if (!arguments.positional.empty() && arguments.positional[0].is_dict()) {
    out = arguments.positional[0].as_dict();
  } else if (!arguments.positional.empty()) {
    HOLMES_ASSIGN_OR_RETURN(const List pairs, Iterate(arguments.positional[0]));
    for (const Value& pair : pairs) {
      const std::optional<std::string> key =
          pair.is_list() && pair.as_list().size() == 2 ? DictKey(pair.as_list()[0]) : std::nullopt;
      if (!key) return base::InvalidArgumentError("dict() needs a mapping or pairs");
      SetKey(out, *key, pair.as_list()[1]);
    }
  }
  for (const auto& [name, value] : arguments.named) SetKey(out, name, value);
  return out;
}

StatusOr<Value> StrftimeNow(const Arguments& arguments, const RenderOptions& options) {
  if (arguments.positional.size() != 1 || !arguments.positional[0].is_string())
    return base::InvalidArgumentError("strftime_now needs a format");
  const std::time_t now = options.now.value_or(std::time(nullptr));
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 1024> buffer{};
  const std::size_t length = std::strftime(
      buffer.data(), buffer.size(), arguments.positional[0].as_string().c_str(), &local);
  return Value(std::string(buffer.data(), length));
}

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

void Interpreter::AddGlobals() {
  globals_.Set("range", Function(Range));
  globals_.Set("namespace", Function([](const Arguments& arguments) -> StatusOr<Value> {
                 HOLMES_ASSIGN_OR_RETURN(Dict dict, MakeDict(arguments));
                 return Value::Namespace(std::move(dict));
               }));
  globals_.Set("dict", Function([](const Arguments& arguments) -> StatusOr<Value> {
                 HOLMES_ASSIGN_OR_RETURN(Dict dict, MakeDict(arguments));
                 return Value(std::move(dict));
               }));
  globals_.Set(
      "raise_exception", Function([this](const Arguments& arguments) -> StatusOr<Value> {
        raised_ = true;
        const Value* message = FindArgument(arguments, 0, "message");
        return base::InvalidArgumentError(
            message != nullptr ? message->ToString() : "the chat template refuses these messages");
      }));
  globals_.Set("strftime_now", Function([this](const Arguments& arguments) {
                 return StrftimeNow(arguments, budget_.options());
               }));
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

Status Interpreter::TooDeep() const {
  return base::ResourceExhaustedError(
      fmt::format("the chat template is nested more than {} levels deep", kMaxEvaluationDepth));
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

Value Interpreter::LoopVariable(const std::shared_ptr<const List>& items, std::size_t index) const {
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
  for (std::size_t i = 0; i < items->size(); ++i) {
    HOLMES_RETURN_IF_ERROR(budget_.Spend(kTurnSteps));
    Scope local(&scope);
    local.Set("loop", LoopVariable(items, i));
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
  if (arguments.positional.size() > stmt.parameters.size()) {
    status = base::InvalidArgumentError(fmt::format(
        "macro '{}' takes not more than {} argument(s)", stmt.text, stmt.parameters.size()));
  }
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
  for (const auto& [name, value] : arguments.named) {
    if (name == "caller") local.Set(name, value);
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

StatusOr<Value> Interpreter::Evaluate(const ast::Expr& expr, Scope& scope) {
  HOLMES_RETURN_IF_ERROR(budget_.Step());
  if (depth_ >= kMaxEvaluationDepth) return TooDeep();
  ++depth_;
  StatusOr<Value> out = EvaluateNode(expr, scope);
  --depth_;
  if (!out.ok()) return AtLine(out.status(), expr.line);
  // What the variables hold is there already; only what is made needs a look.
  if (expr.kind != ExprKind::kConst && expr.kind != ExprKind::kName)
    HOLMES_RETURN_IF_ERROR(budget_.CheckValue(*out));
  return out;
}

StatusOr<Value> Interpreter::EvaluateNode(const ast::Expr& expr, Scope& scope) {
  switch (expr.kind) {
    case ExprKind::kConst:
      return expr.value;
    case ExprKind::kName: {
      const Value* found = scope.Find(expr.name);
      return found != nullptr ? *found : Value(Undefined{expr.name});
    }
    case ExprKind::kCall:
      return EvaluateCall(expr, scope);
    case ExprKind::kCompare:
      return EvaluateCompare(expr, scope);
    case ExprKind::kDict:
      return EvaluateDict(expr, scope);
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      HOLMES_ASSIGN_OR_RETURN(Value left, Evaluate(*expr.args[0], scope));
      if (left.Truthy() != (expr.kind == ExprKind::kAnd)) return left;
      return Evaluate(*expr.args[1], scope);
    }
    case ExprKind::kIf: {
      HOLMES_ASSIGN_OR_RETURN(const Value condition, Evaluate(*expr.args[0], scope));
      if (condition.Truthy()) return Evaluate(*expr.args[1], scope);
      if (expr.args[2] == nullptr) return Value(Undefined{"the inline if without else"});
      return Evaluate(*expr.args[2], scope);
    }
    case ExprKind::kTuple:
    case ExprKind::kList: {
      List out;
      for (const auto& item : expr.args) {
        HOLMES_ASSIGN_OR_RETURN(Value value, Evaluate(*item, scope));
        out.push_back(std::move(value));
      }
      if (expr.kind == ExprKind::kTuple) return Value::Tuple(std::move(out));
      return Value(std::move(out));
    }
    case ExprKind::kFilter: {
      Value input;
      if (expr.args[0] == nullptr) {
        input = *block_text_;
      } else {
        HOLMES_ASSIGN_OR_RETURN(input, Evaluate(*expr.args[0], scope));
      }
      HOLMES_ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(expr, scope));
      return ApplyFilter(expr.name, input, arguments, budget_);
    }
    default:
      break;
  }
  // The others evaluate their operands in order first.
  std::vector<Value> operands;
  for (const auto& operand : expr.args) {
    if (operand == nullptr) {
      operands.emplace_back();
      continue;
    }
    HOLMES_ASSIGN_OR_RETURN(Value value, Evaluate(*operand, scope));
    operands.push_back(std::move(value));
  }
  switch (expr.kind) {
    case ExprKind::kGetAttr:
      return GetAttribute(operands[0], expr.name);
    case ExprKind::kGetItem:
      if (operands[0].is_string()) HOLMES_RETURN_IF_ERROR(budget_.SpendOn(operands[0]));
      return GetItem(operands[0], operands[1]);
    case ExprKind::kSlice:
      HOLMES_RETURN_IF_ERROR(budget_.SpendOn(operands[0]));
      return GetSlice(operands[0], operands[1], operands[2], operands[3]);
    case ExprKind::kNot:
      return Value(!operands[0].Truthy());
    case ExprKind::kNegate:
      if (operands[0].is_float()) return Value(-operands[0].as_double());
      return ApplyBinary("-", Value(0), operands[0], budget_);
    case ExprKind::kPlus:
      return ApplyBinary("+", Value(0), operands[0], budget_);
    case ExprKind::kBinary:
      HOLMES_RETURN_IF_ERROR(budget_.SpendOn(operands[0]));
      HOLMES_RETURN_IF_ERROR(budget_.SpendOn(operands[1]));
      return ApplyBinary(expr.name, operands[0], operands[1], budget_);
    case ExprKind::kTest: {
      const Arguments arguments{{operands.begin() + 1, operands.end()}, {}};
      HOLMES_ASSIGN_OR_RETURN(const bool holds, ApplyTest(expr.name, operands[0], arguments));
      return Value(holds);
    }
    default:
      break;
  }
  return base::InternalError("an expression of an unknown kind");
}

StatusOr<Value> Interpreter::GetAttribute(const Value& object, const std::string& name) const {
  if (object.is_undefined())
    return base::InvalidArgumentError(fmt::format("'{}' is undefined", object.undefined_name()));
  const Value* found = object.Find(name);
  if (found != nullptr) return *found;
  return Value(Undefined{fmt::format("{} object' has no attribute '{}", object.type_name(), name)});
}

StatusOr<Value> Interpreter::EvaluateDict(const ast::Expr& expr, Scope& scope) {
  Dict out;
  for (std::size_t i = 0; i < expr.args.size(); i += 2) {
    HOLMES_ASSIGN_OR_RETURN(const Value key, Evaluate(*expr.args[i], scope));
    HOLMES_ASSIGN_OR_RETURN(Value value, Evaluate(*expr.args[i + 1], scope));
    const std::optional<std::string> name = DictKey(key);
    if (!name || key.is_bool())
      return base::InvalidArgumentError(fmt::format(
          "keys of type '{}' are not supported; strings, numbers and none are", key.type_name()));
    SetKey(out, *name, std::move(value));
  }
  return Value(std::move(out));
}

StatusOr<Value> Interpreter::EvaluateCompare(const ast::Expr& expr, Scope& scope) {
  HOLMES_ASSIGN_OR_RETURN(Value left, Evaluate(*expr.args[0], scope));
  for (std::size_t i = 0; i < expr.ops.size(); ++i) {
    HOLMES_ASSIGN_OR_RETURN(Value right, Evaluate(*expr.args[i + 1], scope));
    const bool containers = !left.is_string() && !right.is_string();
    HOLMES_RETURN_IF_ERROR(budget_.SpendOn(right));
    if (containers && left.depth() > 0 && right.depth() > 0) {
      HOLMES_RETURN_IF_ERROR(budget_.SpendDeeply(right));
    }
    HOLMES_ASSIGN_OR_RETURN(const bool holds, ApplyCompare(expr.ops[i], left, right));
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

StatusOr<Arguments> Interpreter::EvaluateArguments(const ast::Expr& expr, Scope& scope) {
  Arguments out;
  for (std::size_t i = 1; i < expr.args.size(); ++i) {
    HOLMES_ASSIGN_OR_RETURN(Value value, Evaluate(*expr.args[i], scope));
    out.positional.push_back(std::move(value));
  }
  for (const auto& [name, argument] : expr.named) {
    HOLMES_ASSIGN_OR_RETURN(Value value, Evaluate(*argument, scope));
    out.named.emplace_back(name, std::move(value));
  }
  return out;
}

StatusOr<Value> Interpreter::EvaluateCall(const ast::Expr& expr, Scope& scope) {
  const ast::Expr& callee = *expr.args[0];
  if (callee.kind == ExprKind::kGetAttr) {
    HOLMES_ASSIGN_OR_RETURN(const Value object, Evaluate(*callee.args[0], scope));
    if (object.is_undefined())
      return base::InvalidArgumentError(fmt::format("'{}' is undefined", object.undefined_name()));
    HOLMES_ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(expr, scope));
    const Value* attribute = object.Find(callee.name);
    if (attribute != nullptr && attribute->is_function())
      return attribute->as_function()(arguments);
    HOLMES_RETURN_IF_ERROR(budget_.SpendOn(object));
    HOLMES_ASSIGN_OR_RETURN(std::optional<Value> result,
                            CallMethod(object, callee.name, arguments, budget_));
    if (result) {
      HOLMES_RETURN_IF_ERROR(budget_.SpendOn(*result));
      return *std::move(result);
    }
    return base::InvalidArgumentError(
        fmt::format("'{} object' has no method '{}'", object.type_name(), callee.name));
  }
  HOLMES_ASSIGN_OR_RETURN(const Value function, Evaluate(callee, scope));
  HOLMES_ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(expr, scope));
  if (function.is_undefined())
    return base::InvalidArgumentError(fmt::format("'{}' is undefined", function.undefined_name()));
  if (!function.is_function())
    return base::InvalidArgumentError(
        fmt::format("'{}' object is not callable", function.type_name()));
  HOLMES_ASSIGN_OR_RETURN(Value result, function.as_function()(arguments));
  HOLMES_RETURN_IF_ERROR(budget_.SpendOn(result));
  return result;
}

}  // namespace holmes::text
