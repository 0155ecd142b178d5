#include "text/template_expression_parser.h"

#include <fmt/format.h>

#include <charconv>

#include "text/template_parser.h"

namespace holmes::text {

using ast::Expr;
using ast::ExprKind;
using ast::ExprPtr;

namespace {

constexpr int kMaxHeight = 400;  // of an expression's tree: bounds the interpreter's stack

}  // namespace

ExprPtr ExpressionParser::Make(ExprKind kind) const {
  auto out = std::make_unique<Expr>();
  out->kind = kind;
  out->line = Now().line;
  return out;
}

Status ExpressionParser::Measure(Expr& node) const {
  for (const ExprPtr& part : node.args) {
    if (part != nullptr) node.height = std::max(node.height, part->height + 1);
  }
  for (const auto& [name, part] : node.named) node.height = std::max(node.height, part->height + 1);
  if (node.height <= kMaxHeight) return OkStatus();
  return Error(fmt::format("an expression chains more than {} operations", kMaxHeight));
}

StatusOr<ExprPtr> ExpressionParser::Measured(ExprPtr node) const {
  HOLMES_RETURN_IF_ERROR(Measure(*node));
  return node;
}

StatusOr<ExprPtr> ExpressionParser::With(ExprPtr node, ExprPtr a, ExprPtr b) const {
  node->args.push_back(std::move(a));
  if (b != nullptr) node->args.push_back(std::move(b));
  return Measured(std::move(node));
}

StatusOr<ExprPtr> ExpressionParser::TupleOf(Rule rule) {
  HOLMES_ASSIGN_OR_RETURN(ExprPtr first, (this->*rule)());
  if (!IsOp(",")) return first;
  HOLMES_ASSIGN_OR_RETURN(ExprPtr out, With(Make(ExprKind::kTuple), std::move(first)));
  while (TakeOp(",")) {
    const bool ends =
        Now().kind == TokenKind::kBlockEnd || Now().kind == TokenKind::kOutputEnd || IsOp(")");
    if (ends) break;
    HOLMES_ASSIGN_OR_RETURN(ExprPtr next, (this->*rule)());
    out->args.push_back(std::move(next));
  }
  return Measured(std::move(out));
}

StatusOr<ExprPtr> ExpressionParser::Tuple() { return TupleOf(&ExpressionParser::Expression); }

StatusOr<ExprPtr> ExpressionParser::Expression() {
  const Depth depth(depth_);
  if (depth_ > kMaxDepth) return Error(fmt::format("nested more than {} levels deep", kMaxDepth));
  HOLMES_ASSIGN_OR_RETURN(ExprPtr out, Or());
  while (TakeName("if")) {
    ExprPtr node = Make(ExprKind::kIf);
    HOLMES_ASSIGN_OR_RETURN(ExprPtr condition, Or());
    ExprPtr otherwise;
    if (TakeName("else")) {
      HOLMES_ASSIGN_OR_RETURN(otherwise, Expression());
    }
    node->args.push_back(std::move(condition));
    node->args.push_back(std::move(out));
    node->args.push_back(std::move(otherwise));
    HOLMES_ASSIGN_OR_RETURN(out, Measured(std::move(node)));
  }
  return out;
}

StatusOr<ExprPtr> ExpressionParser::Or() {
  HOLMES_ASSIGN_OR_RETURN(ExprPtr out, And());
  while (IsName("or")) {
    ExprPtr node = Make(ExprKind::kOr);
    Skip();
    HOLMES_ASSIGN_OR_RETURN(ExprPtr right, And());
    HOLMES_ASSIGN_OR_RETURN(out, With(std::move(node), std::move(out), std::move(right)));
  }
  return out;
}

StatusOr<ExprPtr> ExpressionParser::And() {
  HOLMES_ASSIGN_OR_RETURN(ExprPtr out, Not());
  while (IsName("and")) {
    ExprPtr node = Make(ExprKind::kAnd);
    Skip();
    HOLMES_ASSIGN_OR_RETURN(ExprPtr right, Not());
    HOLMES_ASSIGN_OR_RETURN(out, With(std::move(node), std::move(out), std::move(right)));
  }
  return out;
}

StatusOr<ExprPtr> ExpressionParser::Not() {
  if (!IsName("not")) return Compare();
  const Depth depth(depth_);
  if (depth_ > kMaxDepth) return Error(fmt::format("nested more than {} levels deep", kMaxDepth));
  ExprPtr node = Make(ExprKind::kNot);
  Skip();
  HOLMES_ASSIGN_OR_RETURN(ExprPtr inner, Not());
  return With(std::move(node), std::move(inner));
}

StatusOr<ExprPtr> ExpressionParser::Compare() {
  HOLMES_ASSIGN_OR_RETURN(ExprPtr out, Sum());
  ExprPtr node;
  while (true) {
    std::string op;
    for (const std::string_view candidate : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (IsOp(candidate)) op = candidate;
    }
    if (op.empty() && IsName("in")) op = "in";
    if (op.empty() && IsName("not") && Next().kind == TokenKind::kName && Next().text == "in") {
      op = "not in";
      Skip();
    }
    if (op.empty()) break;
    if (node == nullptr) {
      HOLMES_ASSIGN_OR_RETURN(node, With(Make(ExprKind::kCompare), std::move(out)));
    }
    Skip();
    node->ops.push_back(op);
    HOLMES_ASSIGN_OR_RETURN(ExprPtr right, Sum());
    node->args.push_back(std::move(right));
  }
  return node == nullptr ? StatusOr<ExprPtr>(std::move(out)) : Measured(std::move(node));
}

StatusOr<ExprPtr> ExpressionParser::Binary(Rule operand,
                                           std::initializer_list<std::string_view> ops) {
  HOLMES_ASSIGN_OR_RETURN(ExprPtr out, (this->*operand)());
  while (true) {
    std::string_view found;
    for (const std::string_view op : ops) {
      if (IsOp(op)) found = op;
    }
    if (found.empty()) return out;
    ExprPtr node = Make(ExprKind::kBinary);
    node->name = found;
    Skip();
    HOLMES_ASSIGN_OR_RETURN(ExprPtr right, (this->*operand)());
    HOLMES_ASSIGN_OR_RETURN(out, With(std::move(node), std::move(out), std::move(right)));
  }
}

StatusOr<ExprPtr> ExpressionParser::Sum() { return Binary(&ExpressionParser::Concat, {"+", "-"}); }

StatusOr<ExprPtr> ExpressionParser::Concat() { return Binary(&ExpressionParser::Product, {"~"}); }

StatusOr<ExprPtr> ExpressionParser::Product() {
  return Binary(&ExpressionParser::Power, {"*", "/", "//", "%"});
}

StatusOr<ExprPtr> ExpressionParser::Power() {
  return Binary(&ExpressionParser::FilteredUnary, {"**"});
}

StatusOr<ExprPtr> ExpressionParser::FilteredUnary() { return Unary(true); }

StatusOr<ExprPtr> ExpressionParser::Unary(bool filters) {
  const Depth depth(depth_);
  if (depth_ > kMaxDepth) return Error(fmt::format("nested more than {} levels deep", kMaxDepth));
  ExprPtr out;
  if (IsOp("-") || IsOp("+")) {
    out = Make(IsOp("-") ? ExprKind::kNegate : ExprKind::kPlus);
    Skip();
    HOLMES_ASSIGN_OR_RETURN(ExprPtr inner, Unary(false));
    HOLMES_ASSIGN_OR_RETURN(out, With(std::move(out), std::move(inner)));
  } else {
    HOLMES_ASSIGN_OR_RETURN(out, Primary());
  }
  HOLMES_ASSIGN_OR_RETURN(out, Postfix(std::move(out)));
  return filters ? FiltersAndTests(std::move(out)) : StatusOr<ExprPtr>(std::move(out));
}

StatusOr<ExprPtr> ExpressionParser::Primary() {
  ExprPtr out = Make(ExprKind::kConst);
  const TemplateToken token = Now();
  switch (token.kind) {
    case TokenKind::kName: {
      Skip();
      if (token.text == "true" || token.text == "True")
        out->value = true;
      else if (token.text == "false" || token.text == "False")
        out->value = false;
      else if (token.text != "none" && token.text != "None") {
        out->kind = ExprKind::kName;
        out->name = token.text;
        varargs_ = varargs_ || token.text == "varargs";
        kwargs_ = kwargs_ || token.text == "kwargs";
        caller_ = caller_ || token.text == "caller";
      }
      return out;
    }
    case TokenKind::kString: {
      std::string text;
      for (; Now().kind == TokenKind::kString; Skip()) text += Now().text;
      out->value = std::move(text);
      return out;
    }
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return NumberOf(token, std::move(out));
    case TokenKind::kOperator:
      if (token.text == "(") return Parenthesis();
      if (token.text == "[") return ListLiteral();
      if (token.text == "{") return DictLiteral();
      break;
    default:
      break;
  }
  return Error(fmt::format("an expression is expected, {} found", Found()));
}

StatusOr<ExprPtr> ExpressionParser::NumberOf(const TemplateToken& token, ExprPtr out) {
  const char* begin = token.text.data();
  const char* end = begin + token.text.size();
  if (token.kind == TokenKind::kInteger) {
    std::int64_t value = 0;
    if (std::from_chars(begin, end, value).ec != std::errc())
      return Error(fmt::format("the number {} is too large", token.text));
    out->value = value;
  } else {
    double value = 0;
    if (std::from_chars(begin, end, value).ec != std::errc())
      return Error(fmt::format("the number {} is out of range", token.text));
    out->value = value;
  }
  Skip();
  return out;
}

StatusOr<ExprPtr> ExpressionParser::Parenthesis() {
  Skip();
  if (TakeOp(")")) return Make(ExprKind::kTuple);
  HOLMES_ASSIGN_OR_RETURN(ExprPtr out, Tuple());
  HOLMES_RETURN_IF_ERROR(ExpectOp(")"));
  return out;
}

StatusOr<ExprPtr> ExpressionParser::ListLiteral() {
  ExprPtr out = Make(ExprKind::kList);
  Skip();
  while (!IsOp("]")) {
    if (!out->args.empty()) HOLMES_RETURN_IF_ERROR(ExpectOp(","));
    if (IsOp("]")) break;
    HOLMES_ASSIGN_OR_RETURN(ExprPtr item, Expression());
    out->args.push_back(std::move(item));
  }
  Skip();
  return Measured(std::move(out));
}

StatusOr<ExprPtr> ExpressionParser::DictLiteral() {
  ExprPtr out = Make(ExprKind::kDict);
  Skip();
  while (!IsOp("}")) {
    if (!out->args.empty()) HOLMES_RETURN_IF_ERROR(ExpectOp(","));
    if (IsOp("}")) break;
    HOLMES_ASSIGN_OR_RETURN(ExprPtr key, Expression());
    HOLMES_RETURN_IF_ERROR(ExpectOp(":"));
    HOLMES_ASSIGN_OR_RETURN(ExprPtr value, Expression());
    out->args.push_back(std::move(key));
    out->args.push_back(std::move(value));
  }
  Skip();
  return Measured(std::move(out));
}

StatusOr<ExprPtr> ExpressionParser::Postfix(ExprPtr out) {
  while (true) {
    if (TakeOp(".")) {
      const bool index = Now().kind == TokenKind::kInteger;
      ExprPtr node = Make(index ? ExprKind::kGetItem : ExprKind::kGetAttr);
      if (index) {
        HOLMES_ASSIGN_OR_RETURN(ExprPtr number, Primary());
        HOLMES_ASSIGN_OR_RETURN(out, With(std::move(node), std::move(out), std::move(number)));
      } else {
        HOLMES_ASSIGN_OR_RETURN(node->name, Identifier());
        HOLMES_ASSIGN_OR_RETURN(out, With(std::move(node), std::move(out)));
      }
    } else if (IsOp("[")) {
      HOLMES_ASSIGN_OR_RETURN(out, Subscript(std::move(out)));
    } else if (IsOp("(")) {
      HOLMES_ASSIGN_OR_RETURN(out, Call(std::move(out)));
    } else {
      return out;
    }
  }
}

StatusOr<ExprPtr> ExpressionParser::Subscript(ExprPtr object) {
  ExprPtr node = Make(ExprKind::kGetItem);
  Skip();
  std::vector<ExprPtr> parts(1);
  while (!IsOp("]")) {
    if (TakeOp(":")) {
      parts.emplace_back();
      continue;
    }
    HOLMES_ASSIGN_OR_RETURN(parts.back(), Expression());
    if (!IsOp(":") && !IsOp("]")) return Error(fmt::format("']' is expected, {} found", Found()));
  }
  Skip();
  if (parts.size() > 3 || (parts.size() == 1 && parts[0] == nullptr))
    return Error("the subscript is not an index or a slice");
  node->args.push_back(std::move(object));
  if (parts.size() > 1) {
    node->kind = ExprKind::kSlice;
    parts.resize(3);
  }
  for (ExprPtr& part : parts) node->args.push_back(std::move(part));
  return Measured(std::move(node));
}

Status ExpressionParser::CallArguments(Expr& node) {
  HOLMES_RETURN_IF_ERROR(ExpectOp("("));
  bool first = true;
  while (!IsOp(")")) {
    if (!first) HOLMES_RETURN_IF_ERROR(ExpectOp(","));
    first = false;
    if (IsOp(")")) break;
    if (IsOp("*") || IsOp("**"))
      return base::UnimplementedError(
          fmt::format("template line {}: spread arguments are not supported", Now().line));
    if (Now().kind == TokenKind::kName && Next().kind == TokenKind::kOperator &&
        Next().text == "=") {
      HOLMES_ASSIGN_OR_RETURN(std::string name, Identifier());
      Skip();
      HOLMES_ASSIGN_OR_RETURN(ExprPtr value, Expression());
      node.named.emplace_back(std::move(name), std::move(value));
    } else {
      HOLMES_ASSIGN_OR_RETURN(ExprPtr value, Expression());
      node.args.push_back(std::move(value));
    }
  }
  return ExpectOp(")");
}

StatusOr<ExprPtr> ExpressionParser::Call(ExprPtr callee) {
  HOLMES_ASSIGN_OR_RETURN(ExprPtr node, With(Make(ExprKind::kCall), std::move(callee)));
  HOLMES_RETURN_IF_ERROR(CallArguments(*node));
  return Measured(std::move(node));
}

StatusOr<ExprPtr> ExpressionParser::OneFilter(ExprPtr input) {
  ExprPtr node = Make(ExprKind::kFilter);
  node->args.push_back(std::move(input));
  HOLMES_ASSIGN_OR_RETURN(node->name, Identifier());
  if (IsOp("(")) HOLMES_RETURN_IF_ERROR(CallArguments(*node));
  return Measured(std::move(node));
}

StatusOr<ExprPtr> ExpressionParser::Filters(ExprPtr out) {
  while (TakeOp("|")) {
    HOLMES_ASSIGN_OR_RETURN(out, OneFilter(std::move(out)));
  }
  return out;
}

StatusOr<ExprPtr> ExpressionParser::FiltersAndTests(ExprPtr out) {
  while (true) {
    if (IsOp("|")) {
      HOLMES_ASSIGN_OR_RETURN(out, Filters(std::move(out)));
    } else if (IsName("is")) {
      HOLMES_ASSIGN_OR_RETURN(out, Test(std::move(out)));
    } else if (IsOp("(")) {
      HOLMES_ASSIGN_OR_RETURN(out, Call(std::move(out)));
    } else {
      return out;
    }
  }
}

StatusOr<ExprPtr> ExpressionParser::Test(ExprPtr input) {
  Skip();
  const bool negated = TakeName("not");
  ExprPtr node = Make(ExprKind::kTest);
  node->args.push_back(std::move(input));
  HOLMES_ASSIGN_OR_RETURN(node->name, Identifier());
  if (!IsKnownTest(node->name))
    return base::UnimplementedError(
        fmt::format("template line {}: the test '{}' is not supported", node->line, node->name));
  const bool bare = Now().kind == TokenKind::kName && !IsName("else") && !IsName("or") &&
                    !IsName("and") && !IsName("if") && !IsName("is") && !IsName("not") &&
                    !IsName("in");
  const bool literal = Now().kind == TokenKind::kString || Now().kind == TokenKind::kInteger ||
                       Now().kind == TokenKind::kFloat || IsOp("[") || IsOp("{");
  if (IsOp("(")) {
    HOLMES_RETURN_IF_ERROR(CallArguments(*node));
  } else if (bare || literal) {
    HOLMES_ASSIGN_OR_RETURN(ExprPtr argument, Primary());
    HOLMES_ASSIGN_OR_RETURN(argument, Postfix(std::move(argument)));
    node->args.push_back(std::move(argument));
  }
  HOLMES_RETURN_IF_ERROR(Measure(*node));
  if (!negated) return node;
  return With(Make(ExprKind::kNot), std::move(node));
}

}  // namespace holmes::text
