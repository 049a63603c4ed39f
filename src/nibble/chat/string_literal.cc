#include "nibble/chat/string_literal.h"

#include <fmt/format.h>

#include <cctype>
#include <optional>

#include "nibble/chat/unicode.h"

namespace nibble::jinja {
namespace {

char at(std::string_view text, size_t i) { return i < text.size() ? text[i] : '\0'; }
bool is_digit_at(std::string_view text, size_t i) { return at(text, i) >= '0' && at(text, i) <= '9'; }

// Digits from `begin`, `_` between them; where they end.
template <typename Belongs>
size_t skip_digits(std::string_view text, size_t begin, const Belongs& belongs) {
  size_t end = begin;
  while (belongs(at(text, end)) || (at(text, end) == '_' && end > begin && belongs(at(text, end + 1)))) ++end;
  return end;
}

bool is_decimal_digit(char c) { return c >= '0' && c <= '9'; }

// `count` hexadecimal digits from `begin`.
std::optional<char32_t> hex_value(std::string_view text, size_t begin, size_t count) {
  char32_t value = 0;
  for (size_t i = begin; i < begin + count; ++i) {
    const char c = at(text, i);
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0) return std::nullopt;
    value = value * 16 + static_cast<char32_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
  }
  return value;
}

class Unescaper {
 public:
  explicit Unescaper(std::string_view text) : text_(text) {}

  std::string run(std::string* problem) {
    while (at_ < text_.size() && problem_.empty()) {
      if (text_[at_] != '\\') {
        out_ += text_[at_++];
      } else {
        ++at_;
        escape();
      }
    }
    *problem = problem_;
    return std::move(out_);
  }

 private:
  void escape() {
    constexpr std::string_view kLetters = "\\'\"abfnrtv";
    constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
    const char c = at(text_, at_);
    const size_t letter = kLetters.find(c);
    if (letter != kLetters.npos) {
      out_ += kMeanings[letter];
      ++at_;
    } else if (c == '\n') {
      ++at_;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      hexadecimal(c == 'x' ? 2 : c == 'u' ? 4 : 8);
    } else if (c == 'N') {
      problem_ = "a character is written by its name (\\N), which is not supported";
    } else if (c >= '0' && c <= '7') {
      octal();
    } else {
      unknown();
    }
  }

  void hexadecimal(size_t count) {
    const auto value = hex_value(text_, at_ + 1, count);
    if (!value) {
      problem_ = fmt::format("a character is written with fewer than {} digits", count);
    } else if (*value > 0x10FFFF || (*value >= 0xD800 && *value < 0xE000)) {
      problem_ = "a string holds half a surrogate pair or no character at all";
    } else {
      append_utf8(&out_, *value);
    }
    at_ += 1 + count;
  }

  void octal() {
    char32_t value = 0;
    for (int i = 0; i < 3 && at(text_, at_) >= '0' && at(text_, at_) <= '7'; ++i) {
      value = value * 8 + static_cast<char32_t>(text_[at_++] - '0');
    }
    append_utf8(&out_, value);
  }

  // Stays as it is; beyond ASCII, Python's detour shows: the number of the character comes out.
  void unknown() {
    out_ += '\\';
    const char c = at(text_, at_);
    if (static_cast<unsigned char>(c) < 0x80) {
      if (at_ < text_.size()) out_ += text_[at_++];
      return;
    }
    const auto code = static_cast<uint32_t>(next_code_point(text_, &at_));
    out_ += code < 0x100     ? fmt::format("x{:02x}", code)
            : code < 0x10000 ? fmt::format("u{:04x}", code)
                             : fmt::format("U{:08x}", code);
  }

  std::string_view text_;
  std::string out_, problem_;
  size_t at_ = 0;
};

}  // namespace

size_t float_length(std::string_view text) {
  size_t end = skip_digits(text, 0, is_decimal_digit);
  const bool has_fraction = at(text, end) == '.' && is_digit_at(text, end + 1);
  if (has_fraction) end = skip_digits(text, end + 1, is_decimal_digit);
  if ((at(text, end) | 0x20) == 'e') {
    size_t digits = end + 1;
    if (at(text, digits) == '+' || at(text, digits) == '-') ++digits;
    if (is_digit_at(text, digits)) return skip_digits(text, digits, is_decimal_digit);
  }
  return has_fraction ? end : 0;
}

size_t integer_length(std::string_view text) {
  const char kind = static_cast<char>(at(text, 1) | 0x20);
  if (text.front() == '0' && (kind == 'x' || kind == 'o' || kind == 'b')) {
    const auto belongs = [kind](char c) {
      if (kind == 'x') return std::isxdigit(static_cast<unsigned char>(c)) != 0;
      return c >= '0' && c <= (kind == 'o' ? '7' : '1');
    };
    const size_t begin = at(text, 2) == '_' ? 3 : 2;
    const size_t end = skip_digits(text, begin, belongs);
    if (end > begin) return end;
  }
  if (text.front() == '0') return skip_digits(text, 0, [](char c) { return c == '0'; });
  return skip_digits(text, 0, is_decimal_digit);
}

std::string unescape(std::string_view text, std::string* problem) { return Unescaper(text).run(problem); }

}  // namespace nibble::jinja
