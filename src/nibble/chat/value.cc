#include "nibble/chat/value.h"

#include <fmt/format.h>

#include <algorithm>

#include "nibble/base/error.h"
#include "nibble/chat/operators.h"
#include "nibble/chat/run.h"

namespace nibble::jinja {
void fail(std::string message) {
  throw Error(std::move(message))
      .way_out("check that the conversation has what this template expects")
      .way_out("take the template from the model's own release");
}

void fail_undefined(const Value& value) {
  const auto* undefined = value.get<Undefined>();
  fail(undefined == nullptr || undefined->why == nullptr ? "the value is undefined" : *undefined->why);
}

uint32_t depth_of(const Value& value) {
  if (const ListPtr* list = value.get<ListPtr>()) return (*list)->depth;
  if (const DictPtr* dict = value.get<DictPtr>()) return (*dict)->depth;
  if (const ObjectPtr* object = value.get<ObjectPtr>()) return (*object)->depth();
  return 0;
}

int64_t Range::count() const {
  if (step > 0 ? start >= stop : start <= stop) return 0;
  const Integer distance = step > 0 ? Integer{stop} - start : Integer{start} - stop;
  const Integer stride = step > 0 ? Integer{step} : -Integer{step};
  return static_cast<int64_t>((distance - 1) / stride + 1);
}

const Value* Dict::find(std::string_view key) const {
  const auto found = texts.find(key);
  return found == texts.end() ? nullptr : &entries[found->second].second;
}

Value Object::call(Run&, Arguments&&) { fail(fmt::format("'{}' object is not callable", type_name())); }
Value Object::attribute(Run&, std::string_view) { return Value{Missing{}}; }
IteratorPtr Object::iterate(Run&) { return nullptr; }
std::optional<int64_t> Object::length(Run&) { return std::nullopt; }
void Object::hold(Budget& budget, const Value& value) {
  depth_ = std::max(depth_, depth_of(value) + 1);
  budget.check_depth(depth_);
}
void Object::repr(Run&, TextBuilder&) { fail(fmt::format("a '{}' object has no text of its own", type_name())); }

Value undefined(std::string why) { return Value{Undefined{std::make_shared<const std::string>(std::move(why))}}; }

Value make_list(Budget& budget, Values items, List::Kind kind) {
  auto list = std::make_shared<List>();
  list->lease = Lease(&budget);
  list->lease.grow(sizeof(List) + items.size() * sizeof(Value));
  budget.step(items.size() / 4);
  for (const Value& item : items) list->depth = std::max(list->depth, depth_of(item) + 1);
  budget.check_depth(list->depth);
  list->items = std::move(items);
  list->kind = kind;
  return Value{ListPtr(std::move(list))};
}

DictBuilder::DictBuilder(Run& run) : run_(run), dict_(std::make_shared<Dict>()) {
  dict_->lease = Lease(&run.budget);
  dict_->lease.grow(sizeof(Dict));
}

void DictBuilder::set(const TextPtr& key, Value value) {
  run_.budget.work(key->size());
  dict_->depth = std::max(dict_->depth, depth_of(value) + 1);
  run_.budget.check_depth(dict_->depth);
  const auto [at, is_new] = dict_->texts.try_emplace(key->bytes(), dict_->entries.size());
  if (!is_new) {
    dict_->entries[at->second].second = std::move(value);
    return;
  }
  dict_->lease.grow(2 * sizeof(Value) + 64);
  dict_->entries.emplace_back(Value{key}, std::move(value));
}

void DictBuilder::set(const Value& key, Value value) {
  if (const TextPtr* text = key.get<TextPtr>()) {
    set(*text, std::move(value));
    return;
  }
  check_hashable(run_, key);
  dict_->depth = std::max(dict_->depth, std::max(depth_of(value), depth_of(key)) + 1);
  run_.budget.check_depth(dict_->depth);
  for (const size_t place : dict_->others) {
    if (!equal(run_, dict_->entries[place].first, key)) continue;
    dict_->entries[place].second = std::move(value);
    return;
  }
  dict_->lease.grow(2 * sizeof(Value) + 16);
  dict_->others.push_back(dict_->entries.size());
  dict_->entries.emplace_back(key, std::move(value));
}

void DictBuilder::add_all(const Dict& other) {
  for (const auto& [key, value] : other.entries) {
    run_.budget.step();
    set(key, value);
  }
}

bool DictBuilder::add(const Value& key) {
  const size_t before = dict_->entries.size();
  set(key, Value{None{}});
  return dict_->entries.size() > before;
}

Value DictBuilder::finish() { return Value{DictPtr(std::move(dict_))}; }

std::string_view type_name(const Value& value) {
  struct Name {
    std::string_view operator()(const Missing&) const { return "missing"; }
    std::string_view operator()(const Undefined&) const { return "Undefined"; }
    std::string_view operator()(const None&) const { return "NoneType"; }
    std::string_view operator()(bool) const { return "bool"; }
    std::string_view operator()(Integer) const { return "int"; }
    std::string_view operator()(double) const { return "float"; }
    std::string_view operator()(const TextPtr& text) const { return text->is_markup() ? "Markup" : "str"; }
    std::string_view operator()(const ListPtr& list) const { return list->is_tuple() ? "tuple" : "list"; }
    std::string_view operator()(const DictPtr&) const { return "dict"; }
    std::string_view operator()(const Range&) const { return "range"; }
    std::string_view operator()(const ObjectPtr& object) const { return object->type_name(); }
  };
  return std::visit(Name{}, value.v);
}

}  // namespace nibble::jinja
