#include "nibble/chat/number_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "nibble/chat/python_text.h"

namespace nibble::jinja {
namespace {

constexpr int64_t kMostDigits = 100'000;

std::string digits_in_base(Integer number, unsigned base) {
  std::string digits;
  do {
    const auto digit = static_cast<unsigned>(number < 0 ? -(number % base) : number % base);
    digits += static_cast<char>(digit < 10 ? '0' + digit : 'a' + digit - 10);
    number /= base;
  } while (number != 0);
  std::ranges::reverse(digits);
  return digits;
}

std::string upper_case(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  }
  return text;
}

std::string sign_of(bool negative, char sign) {
  if (negative) return "-";
  return sign == '-' ? "" : std::string(1, sign);
}

// C's own formatting, which rounds as Python does.
std::string c_format(double number, char type, int precision, bool alternate) {
  const std::string pattern = fmt::format("%{}.*{}", alternate ? "#" : "", type);
  const int size = std::snprintf(nullptr, 0, pattern.c_str(), precision, number);
  std::string out(static_cast<size_t>(size) + 1, '\0');
  std::snprintf(out.data(), out.size(), pattern.c_str(), precision, number);
  out.pop_back();
  return out;
}

// Without a type: as `str`, or with a precision as "g" with a digit behind the point.
std::string general(double number, int precision) {
  if (precision < 0) return float_text(number);
  precision = std::max(precision, 1);
  const std::string scientific = c_format(number, 'e', precision - 1, false);
  const int exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
  if (exponent < -4 || exponent >= precision - 1) {
    std::string mantissa = scientific.substr(0, scientific.find('e'));
    if (mantissa.find('.') != mantissa.npos) {
      mantissa.erase(mantissa.find_last_not_of('0') + 1);
      if (mantissa.back() == '.') mantissa.pop_back();
    }
    return mantissa + scientific.substr(scientific.find('e'));
  }
  const std::string plain = c_format(number, 'g', precision, false);
  return plain.find('.') == plain.npos ? plain + ".0" : plain;
}

size_t leading_digits(const std::string& digits) {
  size_t count = 0;
  while (count < digits.size() && std::isxdigit(static_cast<unsigned char>(digits[count])) != 0) ++count;
  return count;
}

std::string grouped(const std::string& whole, char separator, size_t group) {
  std::string out;
  for (size_t i = 0; i < whole.size(); ++i) {
    if (i > 0 && (whole.size() - i) % group == 0) out += separator;
    out += whole[i];
  }
  return out;
}

}  // namespace

NumberText format_integer(Integer number, const FieldSpec& spec) {
  NumberText out{sign_of(number < 0, spec.sign), "", ""};
  switch (spec.type) {
    case 'x':
    case 'X': out.digits = digits_in_base(number, 16); break;
    case 'o': out.digits = digits_in_base(number, 8); break;
    case 'b': out.digits = digits_in_base(number, 2); break;
    default: out.digits = digits_in_base(number, 10);
  }
  if (spec.alternate && (spec.type == 'x' || spec.type == 'X' || spec.type == 'o' || spec.type == 'b')) {
    out.prefix = {'0', spec.type};
  }
  if (spec.type == 'X') out.digits = upper_case(out.digits);
  if (spec.precision > kMostDigits) fail("precision too large");
  const auto least = static_cast<size_t>(std::max<int64_t>(spec.precision, 0));
  if (out.digits.size() < least) out.digits.insert(0, least - out.digits.size(), '0');
  return out;
}

NumberText format_float(Run& run, double number, const FieldSpec& spec) {
  if (spec.precision > kMostDigits) fail("precision too large");
  const double size = spec.type == '%' ? std::fabs(number) * 100 : std::fabs(number);
  NumberText out{sign_of(std::signbit(number) && !std::isnan(number), spec.sign), "", ""};
  run.budget.work(static_cast<uint64_t>(std::max<int64_t>(spec.precision, 0)) * 16);
  const int precision = spec.precision < 0 ? 6 : static_cast<int>(spec.precision);
  const char lower = static_cast<char>(spec.type | 0x20);
  if (!std::isfinite(number)) {
    out.digits = std::isnan(number) ? "nan" : "inf";
  } else if (spec.type == 0) {
    out.digits = general(size, static_cast<int>(spec.precision));
  } else if (spec.type == '%') {
    out.digits = c_format(size, 'f', precision, spec.alternate);
  } else {
    out.digits = c_format(size, lower == 'n' ? 'g' : lower, precision, spec.alternate);
  }
  if (spec.type == '%') out.digits += '%';
  if (spec.type >= 'A' && spec.type <= 'Z') out.digits = upper_case(out.digits);
  return out;
}

void add_padded(TextBuilder& out, const NumberText& number, const FieldSpec& spec) {
  const char align = spec.align != 0 ? spec.align : spec.zero ? '=' : '>';
  const std::string& fill = spec.fill;
  const size_t whole = leading_digits(number.digits);
  std::string front = number.digits.substr(0, whole);
  const std::string rest = number.digits.substr(whole);
  const size_t around = number.sign.size() + number.prefix.size() + rest.size();
  const auto width = static_cast<size_t>(spec.width);
  const size_t group = spec.type == 'x' || spec.type == 'X' || spec.type == 'o' || spec.type == 'b' ? 4 : 3;
  if (spec.grouping != 0 && whole > 0) {
    if (align == '=' && fill == "0") {
      while (front.size() + (front.size() - 1) / group + around < width) front.insert(0, 1, '0');
    }
    front = grouped(front, spec.grouping, group);
  }
  const size_t size = front.size() + around;
  const size_t missing = width > size ? width - size : 0;
  const size_t left = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  const size_t right = align == '<' ? missing : align == '^' ? missing - left : 0;
  for (size_t i = 0; i < left; ++i) out.add(fill);
  out.add(number.sign + number.prefix);
  for (size_t i = 0; align == '=' && i < missing; ++i) out.add(fill);
  out.add(front + rest);
  for (size_t i = 0; i < right; ++i) out.add(fill);
}

void add_padded(Run& run, TextBuilder& out, const TextPtr& text, const FieldSpec& spec) {
  const auto length = static_cast<int64_t>(text->length());
  const int64_t kept = spec.precision < 0 ? length : std::min(spec.precision, length);
  const int64_t missing = std::max<int64_t>(spec.width - kept, 0);
  run.budget.step(static_cast<uint64_t>(missing) / 16);
  const int64_t left = spec.align == '>' ? missing : spec.align == '^' ? missing / 2 : 0;
  for (int64_t i = 0; i < left; ++i) out.add(spec.fill);
  out.add(*text, 0, text->offset_of(static_cast<size_t>(kept)));
  for (int64_t i = left; i < missing; ++i) out.add(spec.fill);
}

}  // namespace nibble::jinja
