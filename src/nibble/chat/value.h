// The values that a template works with. Containers are immutable and shared; only namespaces change.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "nibble/chat/text.h"

namespace nibble::jinja {

// Python's integers have no end. These hold what JSON files do (64 bits of either sign); results beyond are refused.
__extension__ typedef __int128 Integer;  // NOLINT(modernize-use-using): __extension__ takes no alias

class Run;
class Object;
struct List;
struct Dict;
struct Value;

struct Missing {};  // no value at all: an argument that was not given, a name before its assignment
struct None {};
// Prints as nothing; whatever needs a value throws `why`.
struct Undefined {
  std::shared_ptr<const std::string> why;
};
struct Range {
  int64_t start = 0, stop = 0, step = 1;
  int64_t count() const;
  int64_t at(int64_t index) const { return start + index * step; }
};

using ListPtr = std::shared_ptr<const List>;
using DictPtr = std::shared_ptr<const Dict>;
using ObjectPtr = std::shared_ptr<Object>;
using Values = std::vector<Value>;

struct Value {
  std::variant<Missing, Undefined, None, bool, Integer, double, TextPtr, ListPtr, DictPtr, Range, ObjectPtr> v;

  template <typename T>
  const T* get() const {
    return std::get_if<T>(&v);
  }
  template <typename T>
  bool is() const {
    return std::holds_alternative<T>(v);
  }
  // The text of a string, null for anything else.
  const Text* text() const {
    const TextPtr* found = get<TextPtr>();
    return found == nullptr ? nullptr : found->get();
  }
  template <typename T>
  std::shared_ptr<T> object() const {
    const ObjectPtr* found = get<ObjectPtr>();
    return found == nullptr ? nullptr : std::dynamic_pointer_cast<T>(*found);
  }
};

struct List {
  enum class Kind : uint8_t { kList, kTuple, kGroup };  // a group is a tuple with the names `grouper` and `list`
  Values items;
  Kind kind = Kind::kList;
  uint32_t depth = 1;
  Lease lease;

  bool is_tuple() const { return kind != Kind::kList; }
};

struct Dict {
  std::vector<std::pair<Value, Value>> entries;        // in order of insertion
  std::unordered_map<std::string_view, size_t> texts;  // places of the keys that are strings
  std::vector<size_t> others;                          // places of all other keys
  uint32_t depth = 1;
  Lease lease;

  const Value* find(std::string_view key) const;
};

// Arguments as they stand in a call.
struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

// Gives one value after the other; `next` is false at the end.
class Iterator;
using IteratorPtr = std::shared_ptr<Iterator>;

// Everything else that has attributes, can be called or iterated.
class Object : public std::enable_shared_from_this<Object> {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  virtual std::string_view type_name() const = 0;
  virtual bool is_callable() const { return false; }
  virtual Value call(Run& run, Arguments&& arguments);
  // Missing: it has none of this name.
  virtual Value attribute(Run& run, std::string_view name);
  virtual IteratorPtr iterate(Run& run);
  virtual std::optional<int64_t> length(Run& run);
  virtual void repr(Run& run, TextBuilder& out);

  // Counts the values that this keeps: towards how deep values nest, which is what destroying them takes of the stack.
  void hold(Budget& budget, const Value& value);
  uint32_t depth() const { return depth_; }

 private:
  uint32_t depth_ = 1;
};

class Iterator : public Object {
 public:
  virtual bool next(Run& run, Value* out) = 0;
  std::string_view type_name() const override { return "generator"; }
  IteratorPtr iterate(Run&) override { return std::static_pointer_cast<Iterator>(shared_from_this()); }
};

uint32_t depth_of(const Value& value);
Value undefined(std::string why);
inline Value integer(int64_t number) { return Value{Integer{number}}; }
inline Value boolean(bool yes) { return Value{yes}; }

// Containers: depth and memory are counted, and checked.
Value make_list(Budget& budget, Values items, List::Kind kind = List::Kind::kList);
class DictBuilder {
 public:
  explicit DictBuilder(Run& run);
  // As Python: a key that is there keeps its place. Throws for keys that cannot be hashed.
  void set(const Value& key, Value value);
  void set(const TextPtr& key, Value value);
  void add_all(const Dict& other);
  // Adds a key without a value; false if it was there.
  bool add(const Value& key);
  Value finish();

 private:
  Run& run_;
  std::shared_ptr<Dict> dict_;
};

// As Python names it: "str", "NoneType", "Undefined".
std::string_view type_name(const Value& value);

}  // namespace nibble::jinja
