#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "nibble/base/error.h"
#include "nibble/chat/calls.h"
#include "nibble/chat/operators.h"
#include "nibble/chat/unicode.h"

namespace nibble::jinja {
namespace {

// What would change a list or a dict: the sandbox gives these to no template.
constexpr std::array<std::string_view, 8> kListChanges = {"append", "clear", "pop",    "reverse",
                                                          "insert", "sort",  "extend", "remove"};
constexpr std::array<std::string_view, 5> kDictChanges = {"clear", "pop", "popitem", "setdefault", "update"};

std::string described(const Value& value) {
  return value.is<None>() ? "None" : fmt::format("{} object", type_name(value));
}

Value no_attribute(const Value& value, std::string_view name) {
  return undefined(fmt::format("'{}' has no attribute '{}'", described(value), name));
}

Value unsafe(const Value& value, std::string_view name) {
  return undefined(fmt::format("access to attribute '{}' of '{}' object is unsafe", name, type_name(value)));
}

// A method or another attribute of the type itself; Missing if it has none of this name.
Value own_attribute(Run& run, const Value& value, std::string_view name) {
  if (name.starts_with("__") && name.ends_with("__")) return unsafe(value, name);
  if (const ObjectPtr* object = value.get<ObjectPtr>()) return (*object)->attribute(run, name);
  const Native* method = nullptr;
  if (value.is<TextPtr>()) {
    method = find_native(string_methods(), name);
  } else if (value.is<DictPtr>()) {
    if (std::ranges::find(kDictChanges, name) != kDictChanges.end()) return unsafe(value, name);
    method = find_native(dict_methods(), name);
  } else if (const ListPtr* list = value.get<ListPtr>()) {
    if ((*list)->kind == List::Kind::kGroup) {
      if (name == "grouper") return (*list)->items[0];
      if (name == "list") return (*list)->items[1];
    }
    if (!(*list)->is_tuple() && std::ranges::find(kListChanges, name) != kListChanges.end()) {
      return unsafe(value, name);
    }
    method = find_native(list_methods(), name);
    if (method != nullptr && name == "copy" && (*list)->is_tuple()) method = nullptr;
  }
  return method == nullptr ? Value{Missing{}} : bind_method(run, value, *method);
}

// The place of `index` in a sequence of `count`; nullopt outside.
std::optional<size_t> place(const Value& key, size_t count) {
  Integer storage = 0;
  const Integer* index = as_integer(key, &storage);
  if (index == nullptr) return std::nullopt;
  const Integer at = *index < 0 ? *index + static_cast<Integer>(count) : *index;
  if (at < 0 || at >= static_cast<Integer>(count)) return std::nullopt;
  return static_cast<size_t>(at);
}

// What `value[key]` is without a look at attributes; Missing if there is nothing.
Value own_item(Run& run, const Value& value, const Value& key) {
  if (const DictPtr* dict = value.get<DictPtr>()) {
    const Value* found = find_key(run, **dict, key);
    return found == nullptr ? Value{Missing{}} : *found;
  }
  if (const ListPtr* list = value.get<ListPtr>()) {
    const auto at = place(key, (*list)->items.size());
    return at ? (*list)->items[*at] : Value{Missing{}};
  }
  if (const TextPtr* text = value.get<TextPtr>()) {
    const auto at = place(key, (*text)->length());
    if (!at) return Value{Missing{}};
    if (!(*text)->is_ascii()) run.budget.work((*text)->size());
    const size_t begin = (*text)->offset_of(*at);
    size_t end = begin;
    next_code_point((*text)->bytes(), &end);
    return Value{cut(run.budget, *text, begin, end)};
  }
  if (const Range* range = value.get<Range>()) {
    const auto at = place(key, static_cast<size_t>(range->count()));
    return at ? integer(range->at(static_cast<int64_t>(*at))) : Value{Missing{}};
  }
  return Value{Missing{}};
}

struct Slice {
  int64_t start = 0, step = 1, count = 0;
};

Slice resolve(int64_t length, const Value& start, const Value& stop, const Value& step) {
  Slice out;
  const auto bound = [length, &out](const Value& value, int64_t otherwise) {
    if (value.is<None>()) return otherwise;
    int64_t at = index_argument(value);
    if (at < 0) at += length;
    return out.step > 0 ? std::clamp<int64_t>(at, 0, length) : std::clamp<int64_t>(at, -1, length - 1);
  };
  if (!step.is<None>()) out.step = std::clamp<int64_t>(index_argument(step), -INT64_MAX, INT64_MAX);
  if (out.step == 0) fail("slice step cannot be zero");
  out.start = bound(start, out.step > 0 ? 0 : length - 1);
  out.count = Range{out.start, bound(stop, out.step > 0 ? length : -1), out.step}.count();
  return out;
}

Value slice_text(Run& run, const TextPtr& text, const Slice& slice) {
  const auto at = [&slice](int64_t i) { return static_cast<size_t>(slice.start + i * slice.step); };
  run.budget.work(text->size());
  if (slice.count == 0) return Value{cut(run.budget, text, 0, 0)};
  if (slice.step == 1) {
    const size_t begin = text->offset_of(at(0));
    return Value{cut(run.budget, text, begin, text->offset_of(at(slice.count)))};
  }
  std::vector<size_t> offsets;  // of every code point, and the end
  run.budget.step(text->length() / 16);
  for (size_t offset = 0; offset < text->size(); next_code_point(text->bytes(), &offset)) offsets.push_back(offset);
  offsets.push_back(text->size());
  TextBuilder out(run.budget);
  for (int64_t i = 0; i < slice.count; ++i) out.add(*text, offsets[at(i)], offsets[at(i) + 1]);
  return Value{out.finish(text->is_markup())};
}

Value slice_range(const Range& range, const Slice& slice) {
  const Integer step = Integer{range.step} * slice.step;
  const Integer start = range.start + Integer{range.step} * slice.start;
  const Integer stop = start + step * slice.count;
  const auto fits = [](Integer number) { return number >= INT64_MIN && number <= INT64_MAX; };
  if (!fits(step) || !fits(start) || !fits(stop)) fail("the bounds of a range do not fit 64 bits");
  return Value{Range{static_cast<int64_t>(start), static_cast<int64_t>(stop), static_cast<int64_t>(step)}};
}

}  // namespace

Value attribute_of(Run& run, const Value& value, std::string_view name) {
  if (value.is<Undefined>()) fail_undefined(value);
  Value found = own_attribute(run, value, name);
  if (!found.is<Missing>()) return found;
  if (const DictPtr* dict = value.get<DictPtr>()) {
    if (const Value* item = (*dict)->find(name)) return *item;
  }
  return no_attribute(value, name);
}

Value item_of(Run& run, const Value& value, const Value& key) {
  if (value.is<Undefined>()) fail_undefined(value);
  Value found = own_item(run, value, key);
  if (!found.is<Missing>()) return found;
  if (const Text* name = key.text()) {
    found = own_attribute(run, value, name->bytes());
    return found.is<Missing>() ? no_attribute(value, name->bytes()) : found;
  }
  return undefined(fmt::format("{} has no such element", described(value)));
}

Value slice_of(Run& run, const Value& value, const Value& start, const Value& stop, const Value& step) {
  if (value.is<Undefined>()) fail_undefined(value);
  const auto length = try_length(run, value);
  if (!length || value.is<DictPtr>() || value.is<ObjectPtr>()) {
    fail(fmt::format("a '{}' object cannot be sliced", type_name(value)));
  }
  const Slice slice = resolve(*length, start, stop, step);
  if (const TextPtr* text = value.get<TextPtr>()) return slice_text(run, *text, slice);
  if (const Range* range = value.get<Range>()) return slice_range(*range, slice);
  const ListPtr& list = *value.get<ListPtr>();
  run.budget.step(static_cast<uint64_t>(slice.count) / 4);
  Values items;
  for (int64_t i = 0; i < slice.count; ++i) {
    items.push_back(list->items[static_cast<size_t>(slice.start + i * slice.step)]);
  }
  return make_list(run.budget, std::move(items), list->is_tuple() ? List::Kind::kTuple : List::Kind::kList);
}

}  // namespace nibble::jinja
