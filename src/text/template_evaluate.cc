// What expressions give.
#include <fmt/format.h>

#include "text/template_interpreter.h"

namespace holmes::text {
namespace {

using ast::ExprKind;

// Of expressions in each other, through macros too: bounds the stack.
constexpr int kMaxEvaluationDepth = 600;

}  // namespace

Status Interpreter::TooDeep() const {
  return base::ResourceExhaustedError(
      fmt::format("the chat template is nested more than {} levels deep", kMaxEvaluationDepth));
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
