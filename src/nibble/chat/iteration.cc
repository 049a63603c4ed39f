#include <fmt/format.h>

#include "nibble/chat/operators.h"
#include "nibble/chat/unicode.h"

namespace nibble::jinja {
namespace {

class ListIterator final : public Iterator {
 public:
  explicit ListIterator(ListPtr list) : list_(std::move(list)) {}
  bool next(Run& run, Value* out) override {
    run.budget.step();
    if (at_ == list_->items.size()) return false;
    *out = list_->items[at_++];
    return true;
  }

 private:
  ListPtr list_;
  size_t at_ = 0;
};

class KeyIterator final : public Iterator {
 public:
  explicit KeyIterator(DictPtr dict) : dict_(std::move(dict)) {}
  bool next(Run& run, Value* out) override {
    run.budget.step();
    if (at_ == dict_->entries.size()) return false;
    *out = dict_->entries[at_++].first;
    return true;
  }

 private:
  DictPtr dict_;
  size_t at_ = 0;
};

class CharacterIterator final : public Iterator {
 public:
  explicit CharacterIterator(TextPtr text) : text_(std::move(text)) {}
  bool next(Run& run, Value* out) override {
    run.budget.step();
    if (at_ == text_->size()) return false;
    const size_t begin = at_;
    next_code_point(text_->bytes(), &at_);
    TextBuilder builder(run.budget);
    builder.add(*text_, begin, at_);
    *out = Value{builder.finish()};
    return true;
  }

 private:
  TextPtr text_;
  size_t at_ = 0;
};

class RangeIterator final : public Iterator {
 public:
  explicit RangeIterator(Range range) : range_(range), count_(range.count()) {}
  bool next(Run& run, Value* out) override {
    run.budget.step();
    if (at_ == count_) return false;
    *out = integer(range_.at(at_++));
    return true;
  }

 private:
  Range range_;
  int64_t count_;
  int64_t at_ = 0;
};

class NoIterator final : public Iterator {
 public:
  bool next(Run&, Value*) override { return false; }
};

IteratorPtr holding(Run& run, const Value& value, IteratorPtr iterator) {
  iterator->hold(run.budget, value);
  return iterator;
}

}  // namespace

IteratorPtr try_iterate(Run& run, const Value& value) {
  if (const ListPtr* list = value.get<ListPtr>()) return holding(run, value, std::make_shared<ListIterator>(*list));
  if (const DictPtr* dict = value.get<DictPtr>()) return holding(run, value, std::make_shared<KeyIterator>(*dict));
  if (const TextPtr* text = value.get<TextPtr>()) return std::make_shared<CharacterIterator>(*text);
  if (const Range* range = value.get<Range>()) return std::make_shared<RangeIterator>(*range);
  if (value.is<Undefined>()) return std::make_shared<NoIterator>();
  if (const ObjectPtr* object = value.get<ObjectPtr>()) return (*object)->iterate(run);
  return nullptr;
}

IteratorPtr iterate(Run& run, const Value& value) {
  IteratorPtr iterator = try_iterate(run, value);
  if (iterator == nullptr) fail(fmt::format("'{}' object is not iterable", type_name(value)));
  return iterator;
}

std::optional<int64_t> try_length(Run& run, const Value& value) {
  if (const Text* text = value.text()) return static_cast<int64_t>(text->length());
  if (const ListPtr* list = value.get<ListPtr>()) return static_cast<int64_t>((*list)->items.size());
  if (const DictPtr* dict = value.get<DictPtr>()) return static_cast<int64_t>((*dict)->entries.size());
  if (const Range* range = value.get<Range>()) return range->count();
  if (value.is<Undefined>()) return 0;
  if (const ObjectPtr* object = value.get<ObjectPtr>()) return (*object)->length(run);
  return std::nullopt;
}

Values to_list(Run& run, const Value& value) {
  const IteratorPtr iterator = iterate(run, value);
  Values items;
  Value each;
  while (iterator->next(run, &each)) items.push_back(std::move(each));
  return items;
}

}  // namespace nibble::jinja
