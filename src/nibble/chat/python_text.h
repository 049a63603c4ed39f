// How Python writes values: `str()`, `repr()`, and what `int()` and `float()` read.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "nibble/chat/run.h"

namespace nibble::jinja {

std::string integer_text(Integer number);
// The shortest decimals that read back as the same number.
std::string float_text(double number);

TextPtr to_text(Run& run, const Value& value);  // str()
void append_text(Run& run, TextBuilder& out, const Value& value);
void append_repr(Run& run, TextBuilder& out, const Value& value);  // repr()

// As int(text, base) and float(text) read it: spaces around, a sign, `_` between digits. nullopt: ValueError.
// `too_large`: it is a number, but not one that we hold.
std::optional<Integer> read_integer(std::string_view text, int base, bool* too_large);
std::optional<double> read_float(std::string_view text);

}  // namespace nibble::jinja
