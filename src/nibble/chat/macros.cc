#include <fmt/format.h>

#include <algorithm>

#include "nibble/chat/interpreter.h"
#include "nibble/chat/interpreter_guards.h"
#include "nibble/chat/python_text.h"

namespace nibble::jinja {
namespace {

class Macro final : public Object {
 public:
  Macro(Interpreter& interpreter, const Statement& statement, Frame* outer)
      : interpreter_(interpreter), statement_(statement), outer_(outer) {}
  std::string_view type_name() const override { return "Macro"; }
  bool is_callable() const override { return true; }
  Value call(Run&, Arguments&& arguments) override {
    return interpreter_.call_macro(statement_, outer_, std::move(arguments));
  }
  Value attribute(Run& run, std::string_view name) override {
    if (name == "name") {
      return statement_.name.empty() ? Value{None{}} : Value{make_text(run.budget, statement_.name, true)};
    }
    if (name == "arguments") {
      Values names;
      for (const Parameter& each : statement_.parameters) {
        names.push_back(Value{make_text(run.budget, each.name, true)});
      }
      return make_list(run.budget, std::move(names), List::Kind::kTuple);
    }
    if (name == "caller") return boolean(statement_.uses_caller);
    if (name == "catch_kwargs") return boolean(statement_.uses_kwargs);
    if (name == "catch_varargs") return boolean(statement_.uses_varargs);
    return Value{Missing{}};
  }
  void repr(Run&, TextBuilder& out) override {
    out.add(statement_.name.empty() ? "<Macro anonymous>" : fmt::format("<Macro '{}'>", statement_.name));
  }

 private:
  Interpreter& interpreter_;
  const Statement& statement_;
  Frame* outer_;
};

// Takes the argument `name` out of the named ones; Missing if it is not there.
Value take_named(Arguments& arguments, std::string_view name) {
  const auto found = std::ranges::find_if(arguments.named, [name](const auto& each) { return each.first == name; });
  if (found == arguments.named.end()) return Value{Missing{}};
  Value value = std::move(found->second);
  arguments.named.erase(found);
  return value;
}

std::string described(const Statement& macro) {
  return macro.name.empty() ? "the call block" : fmt::format("macro '{}'", macro.name);
}

}  // namespace

Value Interpreter::make_macro(const Statement& statement) {
  for (Frame* frame = frame_; frame != nullptr && !frame->is_kept; frame = frame->outer) {
    frame->is_kept = true;
    budget.reserve(sizeof(Frame) + frame->slots.size() * sizeof(Value));  // to the end
  }
  return Value{ObjectPtr(std::make_shared<Macro>(*this, statement, frame_))};
}

void Interpreter::call_block(const Statement& statement) {
  Value caller = make_macro(statement);
  const Value made = statement.call == nullptr ? call(caller, {}) : call_expr(*statement.call, std::move(caller));
  append_text(*this, *out_, made);
}

void Interpreter::bind_parameters(const Statement& macro, Arguments given) {
  const size_t count = macro.parameters.size();
  Values& slots = frame_->slots;
  for (size_t i = 0; i < count; ++i) {
    const Parameter& parameter = macro.parameters[i];
    slots[parameter.reference.slot] =
        i < given.positional.size() ? given.positional[i] : take_named(given, parameter.name);
  }
  const bool has_caller_parameter =
      std::ranges::any_of(macro.parameters, [](const Parameter& each) { return each.name == "caller"; });
  if (macro.uses_caller && !has_caller_parameter) {
    Value caller = take_named(given, "caller");
    const bool is_there = !caller.is<Missing>() && !caller.is<None>();
    slots[macro.caller.slot] = is_there ? std::move(caller) : undefined("No caller defined");
  }
  if (macro.uses_kwargs) {
    DictBuilder kwargs(*this);
    for (auto& [key, value] : given.named) kwargs.set(make_text(budget, key, true), std::move(value));
    slots[macro.kwargs.slot] = kwargs.finish();
  } else if (!given.named.empty()) {
    fail(fmt::format("{} takes no keyword argument '{}'", described(macro), given.named.front().first));
  }
  if (macro.uses_varargs) {
    const size_t used = std::min(count, given.positional.size());
    Values rest(given.positional.begin() + static_cast<std::ptrdiff_t>(used), given.positional.end());
    slots[macro.varargs.slot] = make_list(budget, std::move(rest), List::Kind::kTuple);
  } else if (given.positional.size() > count) {
    fail(fmt::format("{} takes not more than {} argument(s)", described(macro), count));
  }
}

Value Interpreter::call_macro(const Statement& macro, Frame* outer, Arguments given) {
  struct Level {
    uint32_t& level;
    ~Level() { --level; }
  } const level{++macro_level_};
  budget.check_depth(macro_level_);
  FrameGuard guard(*this, outer);
  guard.frame().slots.resize(macro.scopes.front().loads.size(), Value{Missing{}});
  bind_parameters(macro, std::move(given));
  enter(macro.scopes.front(), guard.frame());
  for (const Parameter& parameter : macro.parameters) {
    if (!guard.frame().slots[parameter.reference.slot].is<Missing>()) continue;
    Value value = parameter.otherwise != nullptr
                      ? eval(*parameter.otherwise)
                      : undefined(fmt::format("parameter '{}' was not provided", parameter.name));
    guard.frame().slots[parameter.reference.slot] = std::move(value);
  }
  OutputGuard output(*this);
  block(macro.blocks.front());
  return output.finish();
}

}  // namespace nibble::jinja
