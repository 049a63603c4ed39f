#include "nibble/chat/objects.h"

#include <fmt/format.h>

#include "nibble/chat/operators.h"
#include "nibble/chat/python_text.h"

namespace nibble::jinja {
namespace {

class GlobalFunction final : public Object {
 public:
  explicit GlobalFunction(const Native& native) : native_(native) {}
  std::string_view type_name() const override { return "function"; }
  bool is_callable() const override { return true; }
  Value call(Run& run, Arguments&& arguments) override {
    return invoke(run, native_, Value{None{}}, std::move(arguments));
  }

 private:
  const Native& native_;
};

}  // namespace

Value Namespace::attribute(Run&, std::string_view name) {
  const auto found = places_.find(name);
  return found == places_.end() ? Value{Missing{}} : attributes_[found->second].second;
}

void Namespace::set(Run& run, const std::string& name, Value value) {
  if (name.starts_with('_')) {
    fail(fmt::format("a namespace holds no attributes that begin with an underscore, such as '{}'", name));
  }
  run.budget.work(name.size());
  const auto [at, is_new] = places_.try_emplace(name, attributes_.size());
  if (is_new) {
    run.budget.reserve(sizeof(Value) + 2 * name.size() + 128);
    attributes_.emplace_back(name, std::move(value));
  } else {
    attributes_[at->second].second = std::move(value);
  }
}

void Namespace::repr(Run& run, TextBuilder& out) {
  const Deeper deeper(run);
  out.add("<Namespace {");
  bool first = true;
  for (const auto& [name, value] : attributes_) {
    if (!std::exchange(first, false)) out.add(", ");
    append_repr(run, out, Value{make_text(run.budget, name)});
    out.add(": ");
    append_repr(run, out, value);
  }
  out.add("}>");
}

Value global_function(const Native& native) { return Value{ObjectPtr(std::make_shared<GlobalFunction>(native))}; }

}  // namespace nibble::jinja
