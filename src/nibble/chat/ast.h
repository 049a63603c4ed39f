// A parsed template. Names are resolved (scopes.h): each says in which frame and at which place its value is.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nibble/chat/calls.h"
#include "nibble/chat/lexer.h"
#include "nibble/chat/operators.h"
#include "nibble/chat/value.h"

namespace nibble::jinja {

// The place `slot` of the frame that stands `hops` frames outside.
struct Reference {
  uint32_t hops = 0, slot = 0;
};

enum class ExprKind : uint8_t {
  kConstant,
  kName,
  kTuple,
  kList,
  kDict,       // children: key, value, key, value …
  kAttribute,  // child.name
  kItem,       // child[child]
  kSlice,      // child[child:child:child], None for what is left out
  kCall,       // child(call)
  kFilter,     // child | native(call); without a child: of the text of a block
  kTest,       // child is native(call)
  kNot,
  kNegate,
  kPlus,
  kBinary,
  kConcat,
  kCompare,  // child comparison child comparison child …
  kAnd,
  kOr,
  kCondition,  // child if child else child; the last may be left out
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr more_positional, more_named;  // *args, **kwargs
};

struct Expr {
  ExprKind kind = ExprKind::kConstant;
  Position at;
  uint32_t depth = 1;
  bool is_constant = true;  // no name and no call is in it
  Value constant;
  std::string name;
  Reference reference;
  const Native* native = nullptr;
  Binary binary = Binary::kAdd;
  std::vector<Comparison> comparisons;
  std::vector<ExprPtr> children;
  CallArguments call;
};

// What is assigned to: a name, ns.name, or a tuple of such.
struct Target {
  enum class Kind : uint8_t { kName, kAttribute, kTuple };
  Kind kind = Kind::kName;
  Position at;
  std::string name, attribute;
  Reference reference;
  std::vector<Target> parts;
};

// What a frame does with a place when it is entered.
struct Load {
  enum class Kind : uint8_t { kParameter, kVariable, kAlias, kUndefined };
  Kind kind = Kind::kUndefined;
  std::string name;  // kVariable: of the template's variables
  Reference source;  // kAlias: from the frame outside, hops counted from there
};
struct Scope {
  std::vector<Load> loads;  // one per place
};

enum class StatementKind : uint8_t {
  kOutput,
  kFor,
  kIf,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kWith,
  kSet,
  kSetBlock,
  kBreak,
  kContinue,
};

struct Statement;
using Block = std::vector<std::unique_ptr<Statement>>;

struct Parameter {
  std::string name;
  Position at;
  ExprPtr otherwise;
  Reference reference;
};

struct Statement {
  StatementKind kind = StatementKind::kOutput;
  Position at;
  std::vector<ExprPtr> exprs;  // kOutput: all; kFor: iterated, test; kIf: tests; kWith: values; kSet: value
  std::vector<Target> targets;
  std::vector<Block> blocks;  // kIf: one per test, and what else; kFor: body, else; others: body
  std::vector<Scope> scopes;  // kFor: of body, else and test; others: of the body
  ExprPtr call;               // kCallBlock; kFilterBlock and kSetBlock: the filters, if any
  // Macros and call blocks:
  std::string name;
  Reference reference;
  std::vector<Parameter> parameters;
  bool uses_caller = false, uses_kwargs = false, uses_varargs = false;
  Reference caller, kwargs, varargs;
  // For loops:
  bool uses_loop = false, has_else = false;
  Reference loop;
};

struct Template {
  std::string name;
  Block body;
  Scope scope;
};

}  // namespace nibble::jinja
