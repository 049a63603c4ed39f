// The functions that every template knows: one row each.
#include <fmt/format.h>

#include <array>
#include <ctime>

#include "nibble/base/error.h"
#include "nibble/chat/calls.h"
#include "nibble/chat/objects.h"
#include "nibble/chat/operators.h"
#include "nibble/chat/python_text.h"
#include "nibble/chat/unicode.h"

namespace nibble::jinja {
namespace {

constexpr int64_t kLongestRange = 100'000;  // the sandbox's

class Cycler final : public Object {
 public:
  Cycler(Run& run, Values items) : items_(std::move(items)) {
    for (const Value& item : items_) hold(run.budget, item);
  }
  std::string_view type_name() const override { return "Cycler"; }
  Value attribute(Run& run, std::string_view name) override;
  Value next() {
    Value item = items_[at_];
    at_ = (at_ + 1) % items_.size();
    return item;
  }
  void reset() { at_ = 0; }

 private:
  Values items_;
  size_t at_ = 0;
};

class Joiner final : public Object {
 public:
  Joiner(Run& run, Value separator) : separator_(std::move(separator)) { hold(run.budget, separator_); }
  std::string_view type_name() const override { return "Joiner"; }
  bool is_callable() const override { return true; }
  Value call(Run& run, Arguments&&) override {
    return std::exchange(used_, true) ? separator_ : Value{make_text(run.budget, "")};
  }

 private:
  Value separator_;
  bool used_ = false;
};

Value cycler_next(Call& call) { return call.self.object<Cycler>()->next(); }
Value cycler_reset(Call& call) {
  call.self.object<Cycler>()->reset();
  return Value{None{}};
}
constexpr std::array<Native, 2> kCyclerMethods = {{{"next", "", cycler_next}, {"reset", "", cycler_reset}}};

Value make_range(Call& call) {
  const Values& given = call.arguments.positional;
  if (given.empty() || given.size() > 3 || !call.arguments.named.empty()) fail("range needs 1 to 3 numbers");
  Range range;
  if (given.size() == 1) {
    range.stop = index_argument(given[0]);
  } else {
    range.start = index_argument(given[0]);
    range.stop = index_argument(given[1]);
    if (given.size() == 3) range.step = index_argument(given[2]);
  }
  if (range.step == 0) fail("range() arg 3 must not be zero");
  if (range.count() > kLongestRange || range.count() < 0) {
    throw Error("the template asks for a range that is too long")
        .value("numbers", range.count())
        .value("limit", kLongestRange)
        .way_out("check the numbers in the conversation");
  }
  return Value{range};
}

void add_pairs(Run& run, const Value& source, DictBuilder* out) {
  if (const DictPtr* dict = source.get<DictPtr>()) return out->add_all(**dict);
  const IteratorPtr iterator = iterate(run, source);
  for (Value each; iterator->next(run, &each);) {
    const Values pair = to_list(run, each);
    if (pair.size() != 2) fail(fmt::format("a dict is made of pairs, and this has {} parts", pair.size()));
    out->set(pair[0], pair[1]);
  }
}

Value make_dict(Call& call) {
  if (call.arguments.positional.size() > 1) fail("dict expected at most 1 argument");
  DictBuilder out(call.run);
  for (const Value& source : call.arguments.positional) add_pairs(call.run, source, &out);
  for (const auto& [name, value] : call.arguments.named) out.set(make_text(call.run.budget, name, true), value);
  return out.finish();
}

Value make_namespace(Call& call) {
  const Value initial = make_dict(call);
  auto made = std::make_shared<Namespace>();
  call.run.budget.reserve(sizeof(Namespace) + 64);  // to the end
  call.run.namespaces.push_back(made);
  for (const auto& [key, value] : (*initial.get<DictPtr>())->entries) {
    if (key.text() == nullptr) fail("the names in a namespace must be strings");
    made->set(call.run, key.text()->bytes(), value);
  }
  return Value{ObjectPtr(std::move(made))};
}

Value make_cycler(Call& call) {
  if (call.arguments.positional.empty() || !call.arguments.named.empty()) {
    fail("at least one item has to be provided");
  }
  return Value{ObjectPtr(std::make_shared<Cycler>(call.run, std::move(call.arguments.positional)))};
}

Value make_joiner(Call& call) {
  return Value{ObjectPtr(
      std::make_shared<Joiner>(call.run, call.has(0) ? call.args[0] : Value{make_text(call.run.budget, ", ")}))};
}

Value raise_exception(Call& call) {
  throw Error(to_text(call.run, call.args[0])->bytes())
      .way_out("change the conversation: the template itself refuses it");
}

// Python's %f, %z and %Z for a time without a zone; the rest is C's.
std::string without_zones(std::string_view format) {
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    const char kind = format[++i];
    if (kind == 'f') {
      out += "000000";
    } else if (kind != 'z' && kind != 'Z') {
      out += {'%', kind};
    }
  }
  return out;
}

Value strftime_now(Call& call) {
  const std::string& given = call.text(0)->bytes();
  if (given.size() > 4096) fail("the format of the date is too long");
  if (given.find('\0') != given.npos) fail("embedded null character");
  const std::string format = without_zones(given);
  const time_t seconds = call.run.clock.seconds;
  tm parts{};
  if (format.empty() || gmtime_r(&seconds, &parts) == nullptr) return Value{make_text(call.run.budget, "")};
  std::string buffer(64 * 1024, '\0');
  buffer.resize(std::strftime(buffer.data(), buffer.size(), format.c_str(), &parts));
  return Value{make_text(call.run.budget, valid_utf8(buffer))};
}

}  // namespace

Value Cycler::attribute(Run& run, std::string_view name) {
  if (name == "current") return items_[at_];
  const Native* method = find_native(kCyclerMethods, name);
  return method == nullptr ? Value{Missing{}} : bind_method(run, Value{shared_from_this()}, *method);
}

std::span<const Native> globals() {
  static constexpr std::array<Native, 7> kGlobals = {{
      {"cycler", "*", make_cycler},
      {"dict", "*", make_dict},
      {"joiner", "sep?", make_joiner},
      {"namespace", "*", make_namespace},
      {"raise_exception", "message", raise_exception},
      {"range", "*", make_range},
      {"strftime_now", "format", strftime_now},
  }};
  return kGlobals;
}

}  // namespace nibble::jinja
