#include "nibble/chat/interpreter.h"

#include <fmt/format.h>

#include "nibble/base/error.h"
#include "nibble/chat/interpreter_guards.h"
#include "nibble/chat/objects.h"

namespace nibble::jinja {

Interpreter::Interpreter(const Template& made, const ChatLimits& limits, const ChatClock& now)
    : Run(limits, now), template_(made) {
  for (const Native& native : globals()) set_variable(std::string(native.name), global_function(native));
}

Interpreter::~Interpreter() {
  // Namespaces may hold themselves, and each other.
  for (const auto& each : namespaces) each->clear();
  for (const auto& frame : kept_) frame->slots.clear();
}

TextPtr Interpreter::render() {
  try {
    OutputGuard output(*this);
    FrameGuard frame(*this, nullptr);
    enter(template_.scope, frame.frame());
    block(template_.body);
    return *output.finish().get<TextPtr>();
  } catch (Error& error) {
    error.file(template_.name).value("line", at_.line).value("column", at_.column);
    throw;
  }
}

void Interpreter::enter(const Scope& scope, Frame& frame) {
  frame.slots.resize(scope.loads.size());
  for (size_t i = 0; i < scope.loads.size(); ++i) {
    const Load& load = scope.loads[i];
    if (load.kind == Load::Kind::kParameter) continue;
    Value& slot = frame.slots[i];
    slot = Value{Missing{}};
    if (load.kind == Load::Kind::kVariable) {
      const auto found = variables_.find(load.name);
      if (found != variables_.end()) slot = found->second;
    } else if (load.kind == Load::Kind::kAlias) {
      const Frame* from = frame.outer;
      for (uint32_t hops = load.source.hops; hops > 0; --hops) from = from->outer;
      slot = from->slots[load.source.slot];
    }
  }
}

Value& Interpreter::place(const Reference& reference) {
  Frame* frame = frame_;
  for (uint32_t hops = reference.hops; hops > 0; --hops) frame = frame->outer;
  return frame->slots[reference.slot];
}

void Interpreter::check_namespaces(const Target& target) {
  for (const Target& part : target.parts) check_namespaces(part);
  if (target.kind != Target::Kind::kAttribute) return;
  if (place(target.reference).object<Namespace>() == nullptr) {
    at_ = target.at;
    fail("cannot assign attribute on non-namespace object");
  }
}

void Interpreter::assign(const Target& target, Value value) {
  if (target.kind == Target::Kind::kName) {
    place(target.reference) = std::move(value);
    return;
  }
  at_ = target.at;
  if (target.kind == Target::Kind::kAttribute) {
    const auto space = place(target.reference).object<Namespace>();
    if (space == nullptr) fail("cannot assign attribute on non-namespace object");
    space->set(*this, target.attribute, std::move(value));
    return;
  }
  const IteratorPtr iterator = try_iterate(*this, value);
  if (iterator == nullptr) fail(fmt::format("cannot unpack non-iterable {} object", type_name(value)));
  Values parts;
  Value each;
  while (parts.size() <= target.parts.size() && iterator->next(*this, &each)) parts.push_back(std::move(each));
  if (parts.size() != target.parts.size()) {
    fail(fmt::format("{} values to unpack (expected {})",
                     parts.size() < target.parts.size() ? "not enough" : "too many", target.parts.size()));
  }
  for (size_t i = 0; i < parts.size(); ++i) assign(target.parts[i], std::move(parts[i]));
}

Value Interpreter::call(const Value& callee, Arguments given) {
  if (callee.is<Undefined>()) fail_undefined(callee);
  const ObjectPtr* object = callee.get<ObjectPtr>();
  if (object == nullptr) fail(fmt::format("'{}' object is not callable", type_name(callee)));
  return (*object)->call(*this, std::move(given));
}

}  // namespace nibble::jinja
