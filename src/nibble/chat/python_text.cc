#include "nibble/chat/python_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "nibble/chat/unicode.h"

namespace nibble::jinja {
namespace {

void append_escaped(TextBuilder& out, const Text& text, size_t begin, size_t end, char32_t c, char quote) {
  if (c == static_cast<char32_t>(quote) || c == '\\') {
    out.add("\\");
    out.add(text, begin, end);
  } else if (c == '\n') {
    out.add("\\n");
  } else if (c == '\r') {
    out.add("\\r");
  } else if (c == '\t') {
    out.add("\\t");
  } else {
    const auto code = static_cast<uint32_t>(c);
    out.add(code < 0x100     ? fmt::format("\\x{:02x}", code)
            : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                             : fmt::format("\\U{:08x}", code));
  }
}

void append_quoted(TextBuilder& out, const Text& text) {
  const std::string& bytes = text.bytes();
  const bool has_single = bytes.find('\'') != bytes.npos;
  const char quote = has_single && bytes.find('"') == bytes.npos ? '"' : '\'';
  if (text.is_markup()) out.add("Markup(");
  out.add({&quote, 1});
  size_t plain = 0;  // what has not been written yet begins here
  for (size_t at = 0; at < bytes.size();) {
    const size_t special = at;
    const char32_t c = next_code_point(bytes, &at);
    if (is_printable(c) && c != static_cast<char32_t>(quote) && c != '\\') continue;
    if (plain < special) out.add(text, plain, special);
    append_escaped(out, text, special, at, c, quote);
    plain = at;
  }
  if (plain < bytes.size()) out.add(text, plain, bytes.size());
  out.add({&quote, 1});
  if (text.is_markup()) out.add(")");
}

void append_list(Run& run, TextBuilder& out, const List& list) {
  out.add(list.is_tuple() ? "(" : "[");
  bool first = true;
  for (const Value& item : list.items) {
    if (!std::exchange(first, false)) out.add(", ");
    append_repr(run, out, item);
  }
  if (list.is_tuple() && list.items.size() == 1) out.add(",");
  out.add(list.is_tuple() ? ")" : "]");
}

void append_dict(Run& run, TextBuilder& out, const Dict& dict) {
  out.add("{");
  bool first = true;
  for (const auto& [key, value] : dict.entries) {
    if (!std::exchange(first, false)) out.add(", ");
    append_repr(run, out, key);
    out.add(": ");
    append_repr(run, out, value);
  }
  out.add("}");
}

std::string range_text(const Range& range) {
  if (range.step == 1) return fmt::format("range({}, {})", range.start, range.stop);
  return fmt::format("range({}, {}, {})", range.start, range.stop, range.step);
}

// The text without the spaces around, its digits as ASCII, `_` between digits left out; nullopt where `_` stands wrong.
std::optional<std::string> plain_number(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, &at);
    const int digit = c < 0x80 ? -1 : decimal_value(c);
    append_utf8(&out, digit >= 0 ? static_cast<char32_t>('0' + digit) : is_space(c) ? U' ' : c);
  }
  const size_t begin = out.find_first_not_of(' ');
  if (begin == out.npos) return std::nullopt;
  out = out.substr(begin, out.find_last_not_of(' ') + 1 - begin);
  const auto is_digit_at = [&out](size_t i) {
    return i < out.size() && std::isalnum(static_cast<unsigned char>(out[i])) != 0;
  };
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == '_' && (i == 0 || !is_digit_at(i - 1) || !is_digit_at(i + 1))) return std::nullopt;
  }
  std::erase(out, '_');
  return out;
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char small = static_cast<char>(c | 0x20);
  return small >= 'a' && small <= 'z' ? small - 'a' + 10 : 99;
}

// "0x" and its like: takes the prefix off where `base` allows it, and finds the base where it is 0.
bool take_prefix(std::string_view* digits, int* base) {
  int named = 0;
  if (digits->size() > 1 && digits->front() == '0') {
    const char letter = static_cast<char>((*digits)[1] | 0x20);
    named = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  }
  if (named != 0 && (*base == 0 || *base == named)) {
    *base = named;
    digits->remove_prefix(2);
    return true;
  }
  if (*base != 0) return true;
  *base = 10;
  return digits->empty() || digits->front() != '0' || digits->find_first_not_of('0') == digits->npos;
}

}  // namespace

std::string integer_text(Integer number) { return fmt::format("{}", number); }

std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::scientific).ptr;
  const std::string_view shortest(buffer, static_cast<size_t>(end - buffer));
  const size_t e = shortest.find('e');
  const int exponent = std::stoi(std::string(shortest.substr(e + 1)));
  if (exponent < -4 || exponent >= 16) return std::string(shortest);
  std::string digits;
  for (const char c : shortest.substr(0, e)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  std::string out = std::signbit(number) ? "-" : "";
  if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

void append_repr(Run& run, TextBuilder& out, const Value& value) {
  run.budget.step();
  const Deeper deeper(run);
  if (const Text* text = value.text()) return append_quoted(out, *text);
  if (const ListPtr* list = value.get<ListPtr>()) return append_list(run, out, **list);
  if (const DictPtr* dict = value.get<DictPtr>()) return append_dict(run, out, **dict);
  if (const ObjectPtr* object = value.get<ObjectPtr>()) return (*object)->repr(run, out);
  if (value.is<Undefined>()) return out.add("Undefined");
  append_text(run, out, value);
}

void append_text(Run& run, TextBuilder& out, const Value& value) {
  if (const Text* text = value.text()) return out.add(*text);
  if (value.is<Undefined>()) return;
  if (value.is<None>()) return out.add("None");
  if (const bool* yes = value.get<bool>()) return out.add(*yes ? "True" : "False");
  if (const Integer* number = value.get<Integer>()) return out.add(integer_text(*number));
  if (const double* number = value.get<double>()) return out.add(float_text(*number));
  if (const Range* range = value.get<Range>()) return out.add(range_text(*range));
  append_repr(run, out, value);
}

TextPtr to_text(Run& run, const Value& value) {
  if (const TextPtr* text = value.get<TextPtr>()) return as_markup(run.budget, *text, false);
  TextBuilder out(run.budget);
  append_text(run, out, value);
  return out.finish();
}

std::optional<Integer> read_integer(std::string_view text, int base, bool* too_large) {
  const auto plain = plain_number(text);
  if (!plain) return std::nullopt;
  std::string_view digits = *plain;
  const bool negative = digits.front() == '-';
  if (digits.front() == '-' || digits.front() == '+') digits.remove_prefix(1);
  if (!take_prefix(&digits, &base) || digits.empty()) return std::nullopt;
  Integer number = 0;
  for (const char c : digits) {
    const int digit = digit_of(c);
    if (digit >= base) return std::nullopt;
    if (__builtin_mul_overflow(number, Integer{base}, &number) ||
        __builtin_sub_overflow(number, Integer{digit}, &number)) {
      *too_large = true;
      number = 0;
    }
  }
  if (negative) return number;
  if (__builtin_sub_overflow(Integer{0}, number, &number)) *too_large = true;
  return number;
}

std::optional<double> read_float(std::string_view text) {
  const auto plain = plain_number(text);
  if (!plain) return std::nullopt;
  std::string_view digits = *plain;
  if (digits.front() == '+') digits.remove_prefix(1);
  // from_chars takes what Python does, and "nan(x)" besides.
  if (digits.empty() || digits.find('(') != digits.npos || digits.front() == '+') return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (end != digits.data() + digits.size() || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) number = std::strtod(plain->c_str(), nullptr);
  return number;
}

}  // namespace nibble::jinja
