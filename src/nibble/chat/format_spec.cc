// `format(value, spec)`: Python's little language behind the colon.
#include <fmt/format.h>

#include "nibble/chat/number_format.h"
#include "nibble/chat/operators.h"
#include "nibble/chat/python_text.h"
#include "nibble/chat/string_tools.h"
#include "nibble/chat/unicode.h"

namespace nibble::jinja {
namespace {

bool is_align(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

int64_t take_number(Run& run, std::string_view* spec) {
  int64_t number = 0;
  while (!spec->empty() && spec->front() >= '0' && spec->front() <= '9') {
    number = number * 10 + (spec->front() - '0');
    run.budget.check_size(static_cast<uint64_t>(number));
    spec->remove_prefix(1);
  }
  return number;
}

bool take(std::string_view* spec, char c) {
  if (spec->empty() || spec->front() != c) return false;
  spec->remove_prefix(1);
  return true;
}

FieldSpec parse_spec(Run& run, std::string_view spec) {
  FieldSpec out;
  size_t first = 0;
  if (!spec.empty()) next_code_point(spec, &first);
  const bool has_fill = first < spec.size() && is_align(spec[first]);
  if (has_fill) {
    out.fill = spec.substr(0, first);
    out.align = spec[first];
    spec.remove_prefix(first + 1);
  } else if (!spec.empty() && is_align(spec.front())) {
    out.align = spec.front();
    spec.remove_prefix(1);
  }
  if (!spec.empty() && (spec.front() == '+' || spec.front() == '-' || spec.front() == ' ')) {
    out.sign = spec.front();
    spec.remove_prefix(1);
  }
  out.alternate = take(&spec, '#');
  out.zero = take(&spec, '0');
  if (out.zero && !has_fill) out.fill = "0";
  out.width = take_number(run, &spec);
  if (take(&spec, ',')) {
    out.grouping = ',';
  } else if (take(&spec, '_')) {
    out.grouping = '_';
  }
  if (take(&spec, '.')) {
    if (spec.empty() || spec.front() < '0' || spec.front() > '9') fail("Format specifier missing precision");
    out.precision = take_number(run, &spec);
  }
  if (spec.size() > 1) fail("Invalid format specifier");
  if (!spec.empty()) out.type = spec.front();
  return out;
}

void format_text(Run& run, TextBuilder& out, const TextPtr& text, const FieldSpec& spec) {
  if ((spec.type != 0 && spec.type != 's') || spec.sign != '-' || spec.alternate || spec.grouping != 0 ||
      spec.align == '=') {
    fail("the format specifier is none for strings");
  }
  add_padded(run, out, text, spec);
}

void format_number(Run& run, TextBuilder& out, const Value& value, FieldSpec spec) {
  constexpr std::string_view kFloat = "eEfFgG%";
  constexpr std::string_view kInteger = "dboxXn";
  Integer storage = 0;
  const Integer* whole = as_integer(value, &storage);
  if (whole != nullptr && (spec.type == 0 || kInteger.find(spec.type) != kInteger.npos)) {
    if (spec.precision >= 0) fail("Precision not allowed in integer format specifier");
    if (spec.grouping == ',' && spec.type != 0 && spec.type != 'd') fail("Cannot specify ',' with this type");
    return add_padded(out, format_integer(*whole, spec), spec);
  }
  if (whole != nullptr && spec.type == 'c') {
    if (*whole < 0 || *whole > 0x10FFFF || (*whole >= 0xD800 && *whole < 0xE000)) fail("%c arg not in range");
    std::string character;
    append_utf8(&character, static_cast<char32_t>(*whole));
    return add_padded(run, out, make_text(run.budget, character), spec);
  }
  if (spec.type != 0 && spec.type != 'n' && kFloat.find(spec.type) == kFloat.npos) {
    fail(fmt::format("Unknown format code '{}' for object of type '{}'", spec.type, type_name(value)));
  }
  const double number = whole != nullptr ? static_cast<double>(*whole) : *value.get<double>();
  add_padded(out, format_float(run, number, spec), spec);
}

}  // namespace

void append_formatted(Run& run, TextBuilder& out, const Value& value, std::string_view spec) {
  if (spec.empty()) return append_text(run, out, value);
  Integer storage = 0;
  if (const TextPtr* text = value.get<TextPtr>()) return format_text(run, out, *text, parse_spec(run, spec));
  if (as_integer(value, &storage) != nullptr || value.is<double>()) {
    return format_number(run, out, value, parse_spec(run, spec));
  }
  fail(fmt::format("unsupported format string passed to {}.__format__", type_name(value)));
}

}  // namespace nibble::jinja
