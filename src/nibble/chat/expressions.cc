#include <fmt/format.h>

#include "nibble/chat/interpreter.h"
#include "nibble/chat/interpreter_guards.h"
#include "nibble/chat/python_text.h"

namespace nibble::jinja {

Value Interpreter::eval(const Expr& expr) {
  const LevelGuard guard(*this);
  at_ = expr.at;
  return eval_kind(expr);
}

Value Interpreter::eval_kind(const Expr& expr) {
  const auto child = [this, &expr](size_t i) { return eval(*expr.children[i]); };
  switch (expr.kind) {
    case ExprKind::kConstant: return expr.constant;
    case ExprKind::kName: return name(expr);
    case ExprKind::kTuple:
    case ExprKind::kList: return items(expr);
    case ExprKind::kDict: return dict(expr);
    case ExprKind::kAttribute: {
      const Value value = child(0);
      at_ = expr.at;
      return attribute_of(*this, value, expr.name);
    }
    case ExprKind::kItem: return item(expr);
    case ExprKind::kSlice: return slice(expr);
    case ExprKind::kCall: return call_expr(expr, Value{Missing{}});
    case ExprKind::kFilter:
    case ExprKind::kTest: {
      const Value subject = child(0);
      Arguments given = arguments(expr.call);
      at_ = expr.at;
      return invoke(*this, *expr.native, subject, std::move(given));
    }
    case ExprKind::kNot: return boolean(!truth(*this, child(0)));
    case ExprKind::kNegate: return negate(child(0));
    case ExprKind::kPlus: return plus(child(0));
    case ExprKind::kBinary: {
      const Value left = child(0);
      const Value right = child(1);
      at_ = expr.at;
      return binary(*this, expr.binary, left, right);
    }
    case ExprKind::kConcat: return concatenation(expr);
    case ExprKind::kCompare: return comparison(expr);
    case ExprKind::kAnd: {
      Value left = child(0);
      return truth(*this, left) ? child(1) : left;
    }
    case ExprKind::kOr: {
      Value left = child(0);
      return truth(*this, left) ? left : child(1);
    }
    case ExprKind::kCondition: return condition(expr);
  }
  return Value{None{}};
}

Value Interpreter::name(const Expr& expr) {
  const Value& value = place(expr.reference);
  return value.is<Missing>() ? undefined(fmt::format("'{}' is undefined", expr.name)) : value;
}

Value Interpreter::items(const Expr& expr) {
  Values values;
  values.reserve(expr.children.size());
  for (const ExprPtr& child : expr.children) values.push_back(eval(*child));
  return make_list(budget, std::move(values), expr.kind == ExprKind::kTuple ? List::Kind::kTuple : List::Kind::kList);
}

Value Interpreter::dict(const Expr& expr) {
  DictBuilder made(*this);
  for (size_t i = 0; i < expr.children.size(); i += 2) {
    const Value key = eval(*expr.children[i]);
    made.set(key, eval(*expr.children[i + 1]));
  }
  return made.finish();
}

Value Interpreter::item(const Expr& expr) {
  const Value value = eval(*expr.children[0]);
  const Value key = eval(*expr.children[1]);
  at_ = expr.at;
  return item_of(*this, value, key);
}

Value Interpreter::slice(const Expr& expr) {
  const Value value = eval(*expr.children[0]);
  const Value start = eval(*expr.children[1]);
  const Value stop = eval(*expr.children[2]);
  const Value step = eval(*expr.children[3]);
  at_ = expr.at;
  // Jinja computes output that is constant beforehand, and there slices as it takes items.
  const bool has_length = value.is<TextPtr>() || value.is<ListPtr>() || value.is<Range>() || value.is<Undefined>();
  if (is_constant_output_ && !has_length) return undefined("the value cannot be sliced");
  return slice_of(*this, value, start, stop, step);
}

Value Interpreter::concatenation(const Expr& expr) {
  // All values come before any text, since evaluating may fail.
  Values values;
  for (const ExprPtr& child : expr.children) values.push_back(eval(*child));
  at_ = expr.at;
  TextBuilder text(budget);
  for (const Value& value : values) append_text(*this, text, value);
  return Value{text.finish()};
}

Value Interpreter::comparison(const Expr& expr) {
  Value left = eval(*expr.children.front());
  for (size_t i = 0; i < expr.comparisons.size(); ++i) {
    Value right = eval(*expr.children[i + 1]);
    at_ = expr.at;
    if (!compare(*this, expr.comparisons[i], left, right)) return boolean(false);
    left = std::move(right);
  }
  return boolean(true);
}

Value Interpreter::condition(const Expr& expr) {
  if (truth(*this, eval(*expr.children[1]))) return eval(*expr.children[0]);
  if (expr.children.size() > 2) return eval(*expr.children[2]);
  return undefined("the inline if-expression evaluated to false and no else section was defined.");
}

Arguments Interpreter::arguments(const CallArguments& call) {
  Arguments out;
  for (const ExprPtr& argument : call.positional) out.positional.push_back(eval(*argument));
  for (const auto& [key, argument] : call.named) out.named.emplace_back(key, eval(*argument));
  if (call.more_positional != nullptr) {
    for (Value& value : to_list(*this, eval(*call.more_positional))) out.positional.push_back(std::move(value));
  }
  if (call.more_named == nullptr) return out;
  const Value named = eval(*call.more_named);
  const DictPtr* dict = named.get<DictPtr>();
  if (dict == nullptr) fail(fmt::format("argument after ** must be a mapping, not {}", type_name(named)));
  for (const auto& [key, value] : (*dict)->entries) {
    if (key.text() == nullptr) fail("keywords must be strings");
    for (const auto& each : out.named) {
      budget.step();
      if (each.first == key.text()->bytes()) fail(fmt::format("the argument '{}' is given twice", each.first));
    }
    out.named.emplace_back(key.text()->bytes(), value);
  }
  return out;
}

Value Interpreter::call_expr(const Expr& expr, Value caller) {
  const Value callee = eval(*expr.children.front());
  Arguments given = arguments(expr.call);
  if (!caller.is<Missing>()) given.named.emplace_back("caller", std::move(caller));
  at_ = expr.at;
  return call(callee, std::move(given));
}

Value Interpreter::filter_text(const Expr* expr, Value text) {
  if (expr == nullptr) return text;
  const LevelGuard guard(*this);
  const Value subject = filter_text(expr->children.empty() ? nullptr : expr->children.front().get(), std::move(text));
  Arguments given = arguments(expr->call);
  at_ = expr->at;
  return invoke(*this, *expr->native, subject, std::move(given));
}

}  // namespace nibble::jinja
