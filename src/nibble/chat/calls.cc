#include "nibble/chat/calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "nibble/base/strings.h"
#include "nibble/chat/operators.h"

namespace nibble::jinja {
namespace {

class BoundMethod final : public Object {
 public:
  BoundMethod(Run& run, Value self, const Native& native)
      : self_(std::move(self)), native_(native), lease_(&run.budget) {
    lease_.grow(sizeof(BoundMethod));
    hold(run.budget, self_);
  }
  std::string_view type_name() const override { return "builtin_function_or_method"; }
  bool is_callable() const override { return true; }
  Value call(Run& run, Arguments&& arguments) override { return invoke(run, native_, self_, std::move(arguments)); }

 private:
  Value self_;
  const Native& native_;
  Lease lease_;
};

struct Parameters {
  std::vector<std::string_view> names;
  size_t required = 0;
  bool by_position = false;
};

Parameters read_parameters(std::string_view text) {
  Parameters out;
  if (text.empty()) return out;
  for (std::string_view word : split(text, ' ')) {
    if (word == "/") {
      out.by_position = true;
      continue;
    }
    const bool optional = word.back() == '?';
    if (optional) word.remove_suffix(1);
    out.names.push_back(word);
    if (!optional) out.required = out.names.size();
  }
  return out;
}

Values bind(const Native& native, Arguments& given) {
  const Parameters parameters = read_parameters(native.parameters);
  const size_t count = parameters.names.size();
  if (given.positional.size() > count) {
    fail(fmt::format("{}() takes at most {} arguments ({} given)", native.name, count, given.positional.size()));
  }
  Values bound = std::move(given.positional);
  bound.resize(count, Value{Missing{}});
  for (auto& [name, value] : given.named) {
    const auto found = std::ranges::find(parameters.names, std::string_view(name));
    if (parameters.by_position || found == parameters.names.end()) {
      fail(fmt::format("{}() got an unexpected keyword argument '{}'", native.name, name));
    }
    Value& place = bound[static_cast<size_t>(found - parameters.names.begin())];
    if (!place.is<Missing>()) fail(fmt::format("{}() got multiple values for argument '{}'", native.name, name));
    place = std::move(value);
  }
  for (size_t i = 0; i < parameters.required; ++i) {
    if (bound[i].is<Missing>()) fail(fmt::format("{}() needs the argument '{}'", native.name, parameters.names[i]));
  }
  return bound;
}

}  // namespace

const TextPtr& Call::text(size_t i) const {
  const TextPtr* text = args[i].get<TextPtr>();
  if (text == nullptr) {
    if (args[i].is<Undefined>()) fail_undefined(args[i]);
    fail(fmt::format("argument {} must be str, not {}", i + 1, type_name(args[i])));
  }
  return *text;
}

const Text* Call::text_or_none(size_t i) const {
  if (!has(i) || args[i].is<None>()) return nullptr;
  return text(i).get();
}

int64_t Call::index(size_t i, int64_t otherwise) const { return has(i) ? index_argument(args[i]) : otherwise; }

bool Call::flag(size_t i, bool otherwise) const { return has(i) ? truth(run, args[i]) : otherwise; }

Value invoke(Run& run, const Native& native, const Value& self, Arguments arguments) {
  run.budget.step();
  if (native.parameters == "*") {
    Call call{run, self, {}, std::move(arguments)};
    return native.function(call);
  }
  Call call{run, self, bind(native, arguments), {}};
  return native.function(call);
}

const Native* find_native(std::span<const Native> table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &Native::name);
  return found == table.end() ? nullptr : &*found;
}

Value bind_method(Run& run, const Value& self, const Native& native) {
  return Value{ObjectPtr(std::make_shared<BoundMethod>(run, self, native))};
}

Value look_up(Run& run, const Value& item, const Value& path) {
  if (path.is<None>() || path.is<Missing>()) return item;
  const TextPtr* text = path.get<TextPtr>();
  if (text == nullptr) return item_of(run, item, path);
  Value found = item;
  for (const std::string_view part : split((*text)->bytes(), '.')) {
    run.budget.step();
    const bool is_number = !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    if (is_number && part.size() < 18) {
      found = item_of(run, found, integer(std::stoll(std::string(part))));
    } else {
      found = item_of(run, found, Value{make_text(run.budget, part)});
    }
  }
  return found;
}

Value apply_named(Run& run, std::span<const Native> table, const Value& name, const Value& item, Arguments arguments) {
  const Text* text = name.text();
  const Native* native = text == nullptr ? nullptr : find_native(table, text->bytes());
  if (native == nullptr) {
    fail(fmt::format("there is no {} named '{}'", table.data() == tests().data() ? "test" : "filter",
                     text == nullptr ? type_name(name) : std::string_view(text->bytes())));
  }
  return invoke(run, *native, item, std::move(arguments));
}

}  // namespace nibble::jinja
