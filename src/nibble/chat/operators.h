// Python's operators on the template's values.
#pragma once

#include <string_view>

#include "nibble/chat/run.h"

namespace nibble::jinja {

enum class Binary { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
enum class Comparison { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };

bool truth(Run& run, const Value& value);
Value binary(Run& run, Binary operation, const Value& left, const Value& right);
Value negate(const Value& value);
Value plus(const Value& value);

bool equal(Run& run, const Value& left, const Value& right);
bool compare(Run& run, Comparison comparison, const Value& left, const Value& right);
bool contains(Run& run, const Value& container, const Value& item);
void check_hashable(Run& run, const Value& value);

// What Python takes as an integer: int and bool.
const Integer* as_integer(const Value& value, Integer* storage);
// An index or a count from an argument; fails with Python's words for what is none. Clamped to 64 bits.
int64_t index_argument(const Value& value);

// Iteration and length; null and nullopt: it has none.
IteratorPtr try_iterate(Run& run, const Value& value);
IteratorPtr iterate(Run& run, const Value& value);
std::optional<int64_t> try_length(Run& run, const Value& value);
Values to_list(Run& run, const Value& value);

// `value.name` and `value[key]`: undefined where there is nothing.
Value attribute_of(Run& run, const Value& value, std::string_view name);
Value item_of(Run& run, const Value& value, const Value& key);
// `value[start:stop:step]`; None for what is left out.
Value slice_of(Run& run, const Value& value, const Value& start, const Value& stop, const Value& step);
const Value* find_key(Run& run, const Dict& dict, const Value& key);

}  // namespace nibble::jinja
