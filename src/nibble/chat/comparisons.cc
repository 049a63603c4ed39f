#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "nibble/chat/operators.h"
#include "nibble/chat/string_tools.h"

namespace nibble::jinja {
namespace {

// Numbers on one scale: exact for all that JSON files hold.
std::optional<long double> as_number(const Value& value) {
  Integer storage = 0;
  if (const double* number = value.get<double>()) return *number;
  if (const Integer* whole = as_integer(value, &storage)) return static_cast<long double>(*whole);
  return std::nullopt;
}

bool equal_lists(Run& run, const List& left, const List& right) {
  if (left.is_tuple() != right.is_tuple() || left.items.size() != right.items.size()) return false;
  for (size_t i = 0; i < left.items.size(); ++i) {
    if (!equal(run, left.items[i], right.items[i])) return false;
  }
  return true;
}

bool equal_dicts(Run& run, const Dict& left, const Dict& right) {
  if (left.entries.size() != right.entries.size()) return false;
  for (const auto& [key, value] : left.entries) {
    const Value* other = find_key(run, right, key);
    if (other == nullptr || !equal(run, value, *other)) return false;
  }
  return true;
}

template <typename T>
bool ordered(Comparison comparison, const T& a, const T& b) {
  switch (comparison) {
    case Comparison::kLess: return a < b;
    case Comparison::kLessEqual: return a <= b;
    case Comparison::kGreater: return a > b;
    default: return a >= b;
  }
}

bool order(Run& run, Comparison comparison, const Value& left, const Value& right) {
  run.budget.step();
  if (left.is<Undefined>()) fail_undefined(left);
  if (right.is<Undefined>()) fail_undefined(right);
  const auto a = as_number(left);
  const auto b = as_number(right);
  if (a && b) return ordered(comparison, *a, *b);
  if (left.text() != nullptr && right.text() != nullptr) {
    run.budget.work(std::min(left.text()->size(), right.text()->size()));
    return ordered(comparison, left.text()->bytes(), right.text()->bytes());
  }
  const ListPtr* list = left.get<ListPtr>();
  const ListPtr* other = right.get<ListPtr>();
  if (list == nullptr || other == nullptr || (*list)->is_tuple() != (*other)->is_tuple()) {
    fail(fmt::format("'{}' and '{}' have no order", type_name(left), type_name(right)));
  }
  const size_t common = std::min((*list)->items.size(), (*other)->items.size());
  for (size_t i = 0; i < common; ++i) {
    const Value& x = (*list)->items[i];
    const Value& y = (*other)->items[i];
    if (!equal(run, x, y)) return order(run, comparison, x, y);
  }
  return ordered(comparison, (*list)->items.size(), (*other)->items.size());
}

bool contains_text(Run& run, const Text& text, const Value& item) {
  if (item.is<Undefined>() || item.text() == nullptr) {
    fail(fmt::format("'in <string>' requires string as left operand, not {}", type_name(item)));
  }
  return find_bytes(run, text.bytes(), item.text()->bytes()) != std::string_view::npos;
}

}  // namespace

bool equal(Run& run, const Value& left, const Value& right) {
  run.budget.step();
  const auto a = as_number(left);
  const auto b = as_number(right);
  if (a && b) return *a == *b;
  if (left.v.index() != right.v.index()) return false;
  if (const Text* text = left.text()) {
    if (text->size() != right.text()->size()) return false;
    run.budget.work(text->size());
    return text->bytes() == right.text()->bytes();
  }
  if (const ListPtr* list = left.get<ListPtr>()) {
    return *list == *right.get<ListPtr>() || equal_lists(run, **list, **right.get<ListPtr>());
  }
  if (const DictPtr* dict = left.get<DictPtr>()) {
    return *dict == *right.get<DictPtr>() || equal_dicts(run, **dict, **right.get<DictPtr>());
  }
  if (const Range* range = left.get<Range>()) {
    const Range& other = *right.get<Range>();
    const int64_t count = range->count();
    return count == other.count() &&
           (count == 0 || (range->start == other.start && (count == 1 || range->step == other.step)));
  }
  if (const ObjectPtr* object = left.get<ObjectPtr>()) return *object == *right.get<ObjectPtr>();
  return !left.is<bool>() && !left.is<double>();  // None and None, undefined and undefined
}

bool compare(Run& run, Comparison comparison, const Value& left, const Value& right) {
  switch (comparison) {
    case Comparison::kEqual: return equal(run, left, right);
    case Comparison::kNotEqual: return !equal(run, left, right);
    case Comparison::kIn: return contains(run, right, left);
    case Comparison::kNotIn: return !contains(run, right, left);
    default: return order(run, comparison, left, right);
  }
}

bool contains(Run& run, const Value& container, const Value& item) {
  if (const Text* text = container.text()) return contains_text(run, *text, item);
  if (const DictPtr* dict = container.get<DictPtr>()) {
    check_hashable(run, item);
    return find_key(run, **dict, item) != nullptr;
  }
  if (const ListPtr* list = container.get<ListPtr>()) {
    return std::ranges::any_of((*list)->items, [&](const Value& each) { return equal(run, each, item); });
  }
  const IteratorPtr iterator = try_iterate(run, container);
  if (iterator == nullptr) fail(fmt::format("argument of type '{}' is not iterable", type_name(container)));
  Value each;
  while (iterator->next(run, &each)) {
    if (equal(run, each, item)) return true;
  }
  return false;
}

void check_hashable(Run& run, const Value& value) {
  run.budget.step();
  const ListPtr* list = value.get<ListPtr>();
  if (value.is<DictPtr>() || (list != nullptr && !(*list)->is_tuple())) {
    fail(fmt::format("unhashable type: '{}'", type_name(value)));
  }
  if (list == nullptr) return;
  for (const Value& item : (*list)->items) check_hashable(run, item);
}

const Value* find_key(Run& run, const Dict& dict, const Value& key) {
  if (const Text* text = key.text()) {
    run.budget.work(text->size());
    return dict.find(text->bytes());
  }
  for (const size_t place : dict.others) {
    if (equal(run, dict.entries[place].first, key)) return &dict.entries[place].second;
  }
  return nullptr;
}

}  // namespace nibble::jinja
