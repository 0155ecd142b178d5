/// The syntax tree of a template. Internal to text.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/value.h"

namespace holmes::text::ast {

struct Expr;
struct Stmt;
using ExprPtr = std::unique_ptr<Expr>;
using Body = std::vector<std::unique_ptr<Stmt>>;

enum class ExprKind {
  kConst,    // value
  kName,     // name
  kList,     // args
  kTuple,    // args
  kDict,     // args: key, value, key, value ...
  kGetAttr,  // args[0].name
  kGetItem,  // args[0][args[1]]
  kSlice,    // args[0][args[1]:args[2]:args[3]]; null = left out
  kCall,     // args[0](args[1..], named)
  kFilter,   // args[0] | name(args[1..], named)
  kTest,     // args[0] is name(args[1..])
  kNot,      // args[0]
  kNegate,   // args[0]
  kPlus,     // args[0]
  kAnd,      // args[0], args[1]
  kOr,
  kBinary,   // args[0] name args[1]: + - * / // % ** ~
  kCompare,  // args[0] ops[0] args[1] ops[1] args[2] ...
  kIf,       // args: condition, then, else (null = undefined)
};

struct Expr {
  ExprKind kind;
  int height = 1;  // levels of the tree below and with this node
  int line = 0;
  std::string name;
  Value value;
  std::vector<ExprPtr> args;
  std::vector<std::pair<std::string, ExprPtr>> named;
  std::vector<std::string> ops;
};

enum class StmtKind {
  kText,
  kOutput,
  kIf,
  kFor,
  kSet,
  kSetBlock,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kWith,  // a scope of its own: with, block, generation
  kBreak,
  kContinue
};

struct Parameter {
  std::string name;
  ExprPtr fallback;  // null = required (undefined when missing)
};

struct Stmt {
  StmtKind kind;
  int line = 0;
  std::string text;                 // kText; the name of a macro
  ExprPtr expr;                     // output, iterable, value, filter chain, call
  ExprPtr condition;                // kFor: filter
  std::vector<ExprPtr> conditions;  // kIf: one per branch, null = else; kWith: the targets' values
  std::vector<Body> bodies;      // kIf: one per branch; others: bodies[0], kFor's else in bodies[1]
  std::vector<ExprPtr> targets;  // kSet, kFor: kName or kGetAttr (of a namespace)
  std::vector<Parameter> parameters;
  // Of a macro or call block: which of these its inside names; it takes no such arguments else.
  bool uses_varargs = false;
  bool uses_kwargs = false;
  bool uses_caller = false;
};

struct Tree {
  Body root;
};

}  // namespace holmes::text::ast
