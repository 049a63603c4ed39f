// Numbers and strings in fields: what `%` and `format` share.
#pragma once

#include <cstdint>
#include <string>

#include "nibble/chat/run.h"

namespace nibble::jinja {

struct FieldSpec {
  std::string fill = " ";  // one character
  char align = 0;          // < > ^ =, 0: the type's own
  char sign = '-';         // - + or a space
  bool alternate = false;
  bool zero = false;
  int64_t width = 0;
  char grouping = 0;  // , or _
  int64_t precision = -1;
  char type = 0;
};

// Sign, prefix and digits, not yet padded.
struct NumberText {
  std::string sign, prefix, digits;
};
// `precision`: at least so many digits.
NumberText format_integer(Integer number, const FieldSpec& spec);
NumberText format_float(Run& run, double number, const FieldSpec& spec);
void add_padded(TextBuilder& out, const NumberText& number, const FieldSpec& spec);
void add_padded(Run& run, TextBuilder& out, const TextPtr& text, const FieldSpec& spec);

}  // namespace nibble::jinja
