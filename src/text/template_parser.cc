#include "text/template_parser.h"

#include <fmt/format.h>

#include <initializer_list>
#include <utility>

#include "text/template_expression_parser.h"

namespace holmes::text {
namespace {

using ast::Body;
using ast::ExprKind;
using ast::ExprPtr;
using ast::Stmt;
using ast::StmtKind;

/// Tokens to statements.
class Parser : private ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  StatusOr<std::unique_ptr<ast::Tree>> Run() {
    auto tree = std::make_unique<ast::Tree>();
    HOLMES_RETURN_IF_ERROR(ParseBody(tree->root, {}));
    return tree;
  }

 private:
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
    if (IsName("with")) return ParseWith(body);
    if (IsName("block")) return ParsePlainScope(body, "endblock");
    if (IsName("generation")) return ParsePlainScope(body, "endgeneration");
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
      HOLMES_ASSIGN_OR_RETURN(name->name, TargetName());
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
    const bool varargs = std::exchange(varargs_, false);
    const bool kwargs = std::exchange(kwargs_, false);
    const bool caller = std::exchange(caller_, false);
    const Status status = ParseBody(out.bodies.emplace_back(), {end});
    loops_ = loops;
    out.uses_varargs = std::exchange(varargs_, varargs);
    out.uses_kwargs = std::exchange(kwargs_, kwargs);
    out.uses_caller = std::exchange(caller_, caller);
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

  /// with a = 1, b = 2: values that see the outside only.
  Status ParseWith(Body& body) {
    auto out = MakeStmt(StmtKind::kWith);
    Skip();
    while (Now().kind != TokenKind::kBlockEnd) {
      if (!out->targets.empty()) HOLMES_RETURN_IF_ERROR(ExpectOp(","));
      ExprPtr name = Make(ExprKind::kName);
      HOLMES_ASSIGN_OR_RETURN(name->name, TargetName());
      HOLMES_RETURN_IF_ERROR(ExpectOp("="));
      HOLMES_ASSIGN_OR_RETURN(ExprPtr value, Expression());
      out->targets.push_back(std::move(name));
      out->conditions.push_back(std::move(value));
    }
    return ParseScopeBody(body, std::move(out), "endwith");
  }

  /// A block of a template that none extends; transformers' marker of what an assistant says.
  Status ParsePlainScope(Body& body, std::string_view end) {
    auto out = MakeStmt(StmtKind::kWith);
    Skip();
    if (end == "endblock") {
      if (depth_ > 1)
        return base::UnimplementedError(fmt::format(
            "template line {}: a block inside another statement is not supported", out->line));
      HOLMES_ASSIGN_OR_RETURN(out->text, Identifier());
    }
    return ParseScopeBody(body, std::move(out), end);
  }

  Status ParseScopeBody(Body& body, std::unique_ptr<Stmt> out, std::string_view end) {
    HOLMES_RETURN_IF_ERROR(ExpectBlockEnd());
    HOLMES_RETURN_IF_ERROR(ParseBody(out->bodies.emplace_back(), {end}));
    Skip();
    if (!out->text.empty()) TakeName(out->text);
    body.push_back(std::move(out));
    return ExpectBlockEnd();
  }

  /// A name that may be assigned to.
  StatusOr<std::string> TargetName() {
    for (const std::string_view name : {"true", "false", "none", "True", "False", "None"}) {
      if (IsName(name)) return Error(fmt::format("cannot assign to '{}'", name));
    }
    return Identifier();
  }

  int loops_ = 0;
};

}  // namespace

StatusOr<std::unique_ptr<ast::Tree>> ParseTemplate(std::vector<TemplateToken> tokens) {
  return Parser(std::move(tokens)).Run();
}

}  // namespace holmes::text
