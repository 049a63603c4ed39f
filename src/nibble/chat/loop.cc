#include "nibble/chat/loop.h"

#include <fmt/format.h>

#include <array>

#include "nibble/chat/operators.h"

namespace nibble::jinja {
namespace {

Value cycle_values(Call& call) { return call.self.object<Loop>()->cycle(call); }
Value changed(Call& call) {
  return boolean(call.self.object<Loop>()->is_changed(call.run, std::move(call.arguments.positional)));
}
constexpr std::array<Native, 2> kMethods = {{{"cycle", "*", cycle_values}, {"changed", "*", changed}}};

}  // namespace

bool Loop::next(Run& run, Value* out) {
  Value value = std::exchange(after_, Value{Missing{}});
  if (value.is<Missing>() && !source_->next(run, &value)) return false;
  ++index0_;
  before_ = std::exchange(current_, value);
  *out = std::move(value);
  return true;
}

void Loop::finish() {
  source_ = nullptr;
  before_ = current_ = after_ = last_changed_ = Value{Missing{}};
}

bool Loop::peek(Run& run) {
  if (!after_.is<Missing>()) return true;
  return source_ != nullptr && source_->next(run, &after_);
}

std::optional<int64_t> Loop::length(Run& run) {
  if (length_ || source_ == nullptr) return length_.value_or(index0_ + 1);
  Values rest;
  for (Value each; source_->next(run, &each);) rest.push_back(std::move(each));
  length_ = static_cast<int64_t>(rest.size()) + index0_ + 1 + (after_.is<Missing>() ? 0 : 1);
  source_ = jinja::iterate(run, make_list(run.budget, std::move(rest)));
  return length_;
}

Value Loop::neighbour(const char* which, const Value& value, bool is_there) const {
  return is_there ? value : undefined(fmt::format("there is no {} item", which));
}

Value Loop::attribute(Run& run, std::string_view name) {
  if (name == "index") return integer(index0_ + 1);
  if (name == "index0") return integer(index0_);
  if (name == "first") return boolean(index0_ == 0);
  if (name == "last") return boolean(!peek(run));
  if (name == "length") return integer(*length(run));
  if (name == "revindex") return integer(*length(run) - index0_);
  if (name == "revindex0") return integer(*length(run) - index0_ - 1);
  if (name == "previtem") return neighbour("previous", before_, index0_ > 0);
  if (name == "nextitem") {
    const bool is_there = peek(run);
    return neighbour("next", after_, is_there);
  }
  if (name == "depth") return integer(1);
  if (name == "depth0") return integer(0);
  const Native* method = find_native(kMethods, name);
  return method == nullptr ? Value{Missing{}} : bind_method(run, Value{shared_from_this()}, *method);
}

Value Loop::cycle(Call& call) const {
  const Values& choices = call.arguments.positional;
  if (choices.empty()) fail("no items for cycling given");
  return choices[static_cast<size_t>(index0_) % choices.size()];
}

bool Loop::is_changed(Run& run, Values values) {
  Value given = make_list(run.budget, std::move(values), List::Kind::kTuple);
  if (!last_changed_.is<Missing>() && equal(run, last_changed_, given)) return false;
  last_changed_ = std::move(given);
  return true;
}

}  // namespace nibble::jinja
