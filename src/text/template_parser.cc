#include "text/template_parser.h"

#include <fmt/format.h>

#include <charconv>
#include <initializer_list>

namespace holmes::text {
namespace {

using ast::Body;
using ast::Expr;
using ast::ExprKind;
using ast::ExprPtr;
using ast::Stmt;
using ast::StmtKind;

constexpr int kMaxHeight = 400;  // of an expression's tree: bounds the interpreter's stack
constexpr int kMaxDepth = 100;   // of nested expressions and blocks: bounds the parser's own stack

class Parser {
 public:
  explicit Parser(std::vector<TemplateToken> tokens) : tokens_(std::move(tokens)) {}

  StatusOr<std::unique_ptr<ast::Tree>> Run() {
    auto tree = std::make_unique<ast::Tree>();
    HOLMES_RETURN_IF_ERROR(ParseBody(tree->root, {}));
    return tree;
  }

 private:
  struct Depth {
    explicit Depth(int& depth) : depth_(depth) { ++depth_; }
    ~Depth() { --depth_; }
    int& depth_;
  };

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

  ExprPtr Make(ExprKind kind) const {
    auto out = std::make_unique<Expr>();
    out->kind = kind;
    out->line = Now().line;
    return out;
  }
  /// Sets the node's height. Errors: too high a tree, which would need too much stack later.
  Status Measure(Expr& node) const {
    for (const ExprPtr& part : node.args) {
      if (part != nullptr) node.height = std::max(node.height, part->height + 1);
    }
    for (const auto& [name, part] : node.named)
      node.height = std::max(node.height, part->height + 1);
    if (node.height <= kMaxHeight) return OkStatus();
    return Error(fmt::format("an expression chains more than {} operations", kMaxHeight));
  }
  StatusOr<ExprPtr> Measured(ExprPtr node) const {
    HOLMES_RETURN_IF_ERROR(Measure(*node));
    return node;
  }
  StatusOr<ExprPtr> With(ExprPtr node, ExprPtr a, ExprPtr b = nullptr) const {
    node->args.push_back(std::move(a));
    if (b != nullptr) node->args.push_back(std::move(b));
    return Measured(std::move(node));
  }
  std::unique_ptr<Stmt> MakeStmt(StmtKind kind) const {
    auto out = std::make_unique<Stmt>();
    out->kind = kind;
    out->line = Now().line;
    return out;
  }

  /// Statements up to a block that begins with one of `ends`; that block's name is left as the
  /// current token.
  Status ParseBody(Body& body, std::initializer_list<std::string_view> ends) {
    const Depth depth(depth_);
    if (depth_ > kMaxDepth) return Error(fmt::format("nested more than {} levels deep", kMaxDepth));
    while (Now().kind != TokenKind::kEnd) {
      if (Now().kind == TokenKind::kText) {
        auto text = MakeStmt(StmtKind::kText);
        text->text = Now().text;
        body.push_back(std::move(text));
        Skip();
      } else if (Now().kind == TokenKind::kOutputBegin) {
        auto output = MakeStmt(StmtKind::kOutput);
        Skip();
        HOLMES_ASSIGN_OR_RETURN(output->expr, Tuple());
        if (Now().kind != TokenKind::kOutputEnd)
          return Error(fmt::format("the tag's end is expected, {} found", Found()));
        Skip();
        body.push_back(std::move(output));
      } else {
        Skip();  // block begin
        for (const std::string_view end : ends) {
          if (IsName(end)) return OkStatus();
        }
        HOLMES_RETURN_IF_ERROR(ParseStatement(body));
      }
    }
    if (ends.size() > 0)
      return Error(fmt::format("a block is not closed: '{}' is missing", *(ends.end() - 1)));
    return OkStatus();
  }

  Status ParseStatement(Body& body) {
    if (Now().kind != TokenKind::kName)
      return Error(fmt::format("a statement is expected, {} found", Found()));
    if (IsName("if")) return ParseIf(body);
    if (IsName("for")) return ParseFor(body);
    if (IsName("set")) return ParseSet(body);
    if (IsName("macro")) return ParseMacro(body);
    if (IsName("call")) return ParseCallBlock(body);
    if (IsName("filter")) return ParseFilterBlock(body);
    if (IsName("generation")) return ParseGeneration(body);
    if (IsName("break") || IsName("continue")) {
      body.push_back(MakeStmt(IsName("break") ? StmtKind::kBreak : StmtKind::kContinue));
      if (loops_ == 0) return Error(fmt::format("{} outside a loop", Found()));
      Skip();
      return ExpectBlockEnd();
    }
    return base::UnimplementedError(
        fmt::format("template line {}: the statement {} is not supported", Now().line, Found()));
  }

  Status ParseIf(Body& body) {
    auto out = MakeStmt(StmtKind::kIf);
    do {
      Skip();  // if, elif
      HOLMES_ASSIGN_OR_RETURN(ExprPtr condition, Tuple());
      out->conditions.push_back(std::move(condition));
      HOLMES_RETURN_IF_ERROR(ExpectBlockEnd());
      HOLMES_RETURN_IF_ERROR(ParseBody(out->bodies.emplace_back(), {"elif", "else", "endif"}));
    } while (IsName("elif"));
    if (TakeName("else")) {
      out->conditions.push_back(nullptr);
      HOLMES_RETURN_IF_ERROR(ExpectBlockEnd());
      HOLMES_RETURN_IF_ERROR(ParseBody(out->bodies.emplace_back(), {"endif"}));
    }
    HOLMES_RETURN_IF_ERROR(ExpectName("endif"));
    body.push_back(std::move(out));
    return ExpectBlockEnd();
  }

  /// name or name, name ... (also in parentheses)
  Status ParseTargets(std::vector<ExprPtr>& targets, bool attributes) {
    const bool parentheses = TakeOp("(");
    do {
      if (parentheses && IsOp(")")) break;
      ExprPtr name = Make(ExprKind::kName);
      HOLMES_ASSIGN_OR_RETURN(name->name, Identifier());
      if (attributes && TakeOp(".")) {
        ExprPtr attribute = Make(ExprKind::kGetAttr);
        HOLMES_ASSIGN_OR_RETURN(attribute->name, Identifier());
        HOLMES_ASSIGN_OR_RETURN(name, With(std::move(attribute), std::move(name)));
      }
      targets.push_back(std::move(name));
    } while (TakeOp(","));
    return parentheses ? ExpectOp(")") : OkStatus();
  }

  Status ParseFor(Body& body) {
    auto out = MakeStmt(StmtKind::kFor);
    Skip();
    HOLMES_RETURN_IF_ERROR(ParseTargets(out->targets, false));
    HOLMES_RETURN_IF_ERROR(ExpectName("in"));
    HOLMES_ASSIGN_OR_RETURN(out->expr, TupleOf(&Parser::Or));
    if (TakeName("if")) {
      HOLMES_ASSIGN_OR_RETURN(out->condition, Expression());
    }
    if (IsName("recursive"))
      return base::UnimplementedError(
          fmt::format("template line {}: recursive loops are not supported", Now().line));
    HOLMES_RETURN_IF_ERROR(ExpectBlockEnd());
    ++loops_;
    const Status inner = ParseBody(out->bodies.emplace_back(), {"else", "endfor"});
    --loops_;
    HOLMES_RETURN_IF_ERROR(inner);
    if (TakeName("else")) {
      HOLMES_RETURN_IF_ERROR(ExpectBlockEnd());
      HOLMES_RETURN_IF_ERROR(ParseBody(out->bodies.emplace_back(), {"endfor"}));
    }
    HOLMES_RETURN_IF_ERROR(ExpectName("endfor"));
    body.push_back(std::move(out));
    return ExpectBlockEnd();
  }

  Status ParseSet(Body& body) {
    auto out = MakeStmt(StmtKind::kSet);
    Skip();
    HOLMES_RETURN_IF_ERROR(ParseTargets(out->targets, true));
    if (TakeOp("=")) {
      HOLMES_ASSIGN_OR_RETURN(out->expr, Tuple());
      body.push_back(std::move(out));
      return ExpectBlockEnd();
    }
    out->kind = StmtKind::kSetBlock;
    if (IsOp("|")) {
      HOLMES_ASSIGN_OR_RETURN(out->expr, Filters(nullptr));
    }
    HOLMES_RETURN_IF_ERROR(ExpectBlockEnd());
    HOLMES_RETURN_IF_ERROR(ParseBody(out->bodies.emplace_back(), {"endset"}));
    Skip();
    body.push_back(std::move(out));
    return ExpectBlockEnd();
  }

  Status ParseParameters(std::vector<ast::Parameter>& out) {
    HOLMES_RETURN_IF_ERROR(ExpectOp("("));
    while (!IsOp(")")) {
      if (!out.empty()) HOLMES_RETURN_IF_ERROR(ExpectOp(","));
      if (IsOp(")")) break;
      ast::Parameter parameter;
      HOLMES_ASSIGN_OR_RETURN(parameter.name, Identifier());
      if (TakeOp("=")) {
        HOLMES_ASSIGN_OR_RETURN(parameter.fallback, Expression());
      }
      out.push_back(std::move(parameter));
    }
    return ExpectOp(")");
  }

  /// The inside of a macro or call block, where an outer loop's break has no meaning.
  Status ParseFunctionBody(Stmt& out, std::string_view end) {
    HOLMES_RETURN_IF_ERROR(ExpectBlockEnd());
    const int loops = std::exchange(loops_, 0);
    const Status status = ParseBody(out.bodies.emplace_back(), {end});
    loops_ = loops;
    HOLMES_RETURN_IF_ERROR(status);
    Skip();
    return ExpectBlockEnd();
  }

  Status ParseMacro(Body& body) {
    auto out = MakeStmt(StmtKind::kMacro);
    Skip();
    HOLMES_ASSIGN_OR_RETURN(out->text, Identifier());
    HOLMES_RETURN_IF_ERROR(ParseParameters(out->parameters));
    HOLMES_RETURN_IF_ERROR(ParseFunctionBody(*out, "endmacro"));
    body.push_back(std::move(out));
    return OkStatus();
  }

  Status ParseCallBlock(Body& body) {
    auto out = MakeStmt(StmtKind::kCallBlock);
    Skip();
    if (IsOp("(")) HOLMES_RETURN_IF_ERROR(ParseParameters(out->parameters));
    HOLMES_ASSIGN_OR_RETURN(out->expr, Expression());
    if (out->expr->kind != ExprKind::kCall) return Error("a call block needs a call");
    HOLMES_RETURN_IF_ERROR(ParseFunctionBody(*out, "endcall"));
    body.push_back(std::move(out));
    return OkStatus();
  }

  Status ParseFilterBlock(Body& body) {
    auto out = MakeStmt(StmtKind::kFilterBlock);
    Skip();
    HOLMES_ASSIGN_OR_RETURN(out->expr, OneFilter(nullptr));
    HOLMES_ASSIGN_OR_RETURN(out->expr, Filters(std::move(out->expr)));
    HOLMES_RETURN_IF_ERROR(ExpectBlockEnd());
    HOLMES_RETURN_IF_ERROR(ParseBody(out->bodies.emplace_back(), {"endfilter"}));
    Skip();
    body.push_back(std::move(out));
    return ExpectBlockEnd();
  }

  /// transformers' marker of what an assistant says: its inside renders as it is.
  Status ParseGeneration(Body& body) {
    Skip();
    HOLMES_RETURN_IF_ERROR(ExpectBlockEnd());
    HOLMES_RETURN_IF_ERROR(ParseBody(body, {"endgeneration"}));
    Skip();
    return ExpectBlockEnd();
  }

  // Expressions, loosest binding first.
  using Rule = StatusOr<ExprPtr> (Parser::*)();

  StatusOr<ExprPtr> TupleOf(Rule rule) {
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
  StatusOr<ExprPtr> Tuple() { return TupleOf(&Parser::Expression); }

  StatusOr<ExprPtr> Expression() {
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

  StatusOr<ExprPtr> Or() {
    HOLMES_ASSIGN_OR_RETURN(ExprPtr out, And());
    while (IsName("or")) {
      ExprPtr node = Make(ExprKind::kOr);
      Skip();
      HOLMES_ASSIGN_OR_RETURN(ExprPtr right, And());
      HOLMES_ASSIGN_OR_RETURN(out, With(std::move(node), std::move(out), std::move(right)));
    }
    return out;
  }

  StatusOr<ExprPtr> And() {
    HOLMES_ASSIGN_OR_RETURN(ExprPtr out, Not());
    while (IsName("and")) {
      ExprPtr node = Make(ExprKind::kAnd);
      Skip();
      HOLMES_ASSIGN_OR_RETURN(ExprPtr right, Not());
      HOLMES_ASSIGN_OR_RETURN(out, With(std::move(node), std::move(out), std::move(right)));
    }
    return out;
  }

  StatusOr<ExprPtr> Not() {
    if (!IsName("not")) return Compare();
    const Depth depth(depth_);
    if (depth_ > kMaxDepth) return Error(fmt::format("nested more than {} levels deep", kMaxDepth));
    ExprPtr node = Make(ExprKind::kNot);
    Skip();
    HOLMES_ASSIGN_OR_RETURN(ExprPtr inner, Not());
    return With(std::move(node), std::move(inner));
  }

  StatusOr<ExprPtr> Compare() {
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

  StatusOr<ExprPtr> Binary(Rule operand, std::initializer_list<std::string_view> ops) {
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
  StatusOr<ExprPtr> Sum() { return Binary(&Parser::Concat, {"+", "-"}); }
  StatusOr<ExprPtr> Concat() { return Binary(&Parser::Product, {"~"}); }
  StatusOr<ExprPtr> Product() { return Binary(&Parser::Power, {"*", "/", "//", "%"}); }
  StatusOr<ExprPtr> Power() { return Binary(&Parser::FilteredUnary, {"**"}); }

  StatusOr<ExprPtr> FilteredUnary() { return Unary(true); }

  StatusOr<ExprPtr> Unary(bool filters) {
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

  StatusOr<ExprPtr> Primary() {
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

  StatusOr<ExprPtr> NumberOf(const TemplateToken& token, ExprPtr out) {
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

  StatusOr<ExprPtr> Parenthesis() {
    Skip();
    if (TakeOp(")")) return Make(ExprKind::kTuple);
    HOLMES_ASSIGN_OR_RETURN(ExprPtr out, Tuple());
    HOLMES_RETURN_IF_ERROR(ExpectOp(")"));
    return out;
  }

  StatusOr<ExprPtr> ListLiteral() {
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

  StatusOr<ExprPtr> DictLiteral() {
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

  StatusOr<ExprPtr> Postfix(ExprPtr out) {
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

  StatusOr<ExprPtr> Subscript(ExprPtr object) {
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

  Status CallArguments(Expr& node) {
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

  StatusOr<ExprPtr> Call(ExprPtr callee) {
    HOLMES_ASSIGN_OR_RETURN(ExprPtr node, With(Make(ExprKind::kCall), std::move(callee)));
    HOLMES_RETURN_IF_ERROR(CallArguments(*node));
    return Measured(std::move(node));
  }

  /// A filter's name and arguments; `input` null = the block's text, which the interpreter puts in.
  StatusOr<ExprPtr> OneFilter(ExprPtr input) {
    ExprPtr node = Make(ExprKind::kFilter);
    node->args.push_back(std::move(input));
    HOLMES_ASSIGN_OR_RETURN(node->name, Identifier());
    if (IsOp("(")) HOLMES_RETURN_IF_ERROR(CallArguments(*node));
    return Measured(std::move(node));
  }

  StatusOr<ExprPtr> Filters(ExprPtr out) {
    while (TakeOp("|")) {
      HOLMES_ASSIGN_OR_RETURN(out, OneFilter(std::move(out)));
    }
    return out;
  }

  StatusOr<ExprPtr> FiltersAndTests(ExprPtr out) {
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

  StatusOr<ExprPtr> Test(ExprPtr input) {
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

  std::vector<TemplateToken> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int loops_ = 0;
};

}  // namespace

StatusOr<std::unique_ptr<ast::Tree>> ParseTemplate(std::vector<TemplateToken> tokens) {
  return Parser(std::move(tokens)).Run();
}

}  // namespace holmes::text
