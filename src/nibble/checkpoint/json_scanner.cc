#include "nibble/checkpoint/json_scanner.h"

#include <bit>
#include <charconv>
#include <cstring>

#include "nibble/base/error.h"
#include "nibble/base/json.h"
#include "nibble/base/json_non_finite.h"

namespace nibble {
namespace {

constexpr uint64_t kOnes = 0x0101010101010101u;
constexpr uint64_t kHighs = 0x8080808080808080u;

// The high bit of the first byte that a plain string cannot just pass over (a quote, a backslash, a control character,
// a byte of 0x80 and more) is exact; bits above it may be false, as always with borrows.
constexpr uint64_t special_bytes(uint64_t eight) {
  const auto zero_bytes = [](uint64_t x) { return (x - kOnes) & ~x; };
  return (zero_bytes(eight ^ (kOnes * '"')) | zero_bytes(eight ^ (kOnes * '\\')) | (eight - kOnes * 0x20) | eight) &
         kHighs;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Length of the UTF-8 sequence at the front of `text` by the letter of the standard (no overlong forms, no surrogates,
// nothing above U+10FFFF); 0 if there is none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return follows(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const unsigned low = lead == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = lead == 0xED ? 0x9F : 0xBF;
    return byte(1) >= low && byte(1) <= high && follows(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const unsigned low = lead == 0xF0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xF4 ? 0x8F : 0xBF;
    return byte(1) >= low && byte(1) <= high && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

void append_utf8(std::string* out, uint32_t code) {
  const auto put = [out](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

}  // namespace

void JsonScanner::fail(const char* expected) const {
  throw Error("not valid JSON")
      .file(source_)
      .value("byte", at_ - begin_)
      .value("expected", expected)
      .way_out("fetch the file again");
}

JsonKind JsonScanner::peek() {
  skip_space();
  if (at_ == end_) fail("a value");
  switch (*at_) {
    case '{': return JsonKind::kObject;
    case '[': return JsonKind::kArray;
    case '"': return JsonKind::kString;
    case 't':
    case 'f': return JsonKind::kBool;
    case 'n': return JsonKind::kNull;
    default:
      if (*at_ != '-' && !is_digit(*at_) && non_finite_word().empty()) fail("a value");
      return JsonKind::kNumber;
  }
}

void JsonScanner::enter(char open, const char* what) {
  expect(open, what);
  if (++depth_ > kMaxJsonDepth) {
    throw Error("JSON is nested too deeply")
        .file(source_)
        .value("byte", at_ - begin_)
        .value("limit", kMaxJsonDepth)
        .way_out("check that this is the right file");
  }
}

std::string_view JsonScanner::string() {
  expect('"', "a string");
  const char* const start = at_;
  for (;;) {
    while (end_ - at_ >= 8) {
      uint64_t eight = 0;
      std::memcpy(&eight, at_, 8);
      const uint64_t special = special_bytes(eight);
      at_ += special == 0 ? 8 : std::countr_zero(special) / 8;
      if (special != 0) break;
    }
    if (at_ == end_) fail("the end of a string");
    const char c = *at_;
    if (c == '"') return {start, static_cast<size_t>(at_++ - start)};
    if (c == '\\') break;
    check_utf8();
  }
  unescaped_.assign(start, at_);
  while (at_ < end_ && *at_ != '"') {
    if (*at_ == '\\') {
      unescape();
    } else {
      const char* const from = at_;
      check_utf8();
      unescaped_.append(from, at_);
    }
  }
  expect('"', "the end of a string");
  return unescaped_;
}

// Steps over one character as it is.
void JsonScanner::check_utf8() {
  if (static_cast<unsigned char>(*at_) < 0x20) fail("an escape instead of a control character");
  const size_t length = utf8_length({at_, static_cast<size_t>(end_ - at_)});
  if (length == 0) fail("UTF-8");
  at_ += length;
}

void JsonScanner::unescape() {
  if (++at_ == end_) fail("an escape");
  switch (*at_++) {
    case '"': unescaped_ += '"'; return;
    case '\\': unescaped_ += '\\'; return;
    case '/': unescaped_ += '/'; return;
    case 'b': unescaped_ += '\b'; return;
    case 'f': unescaped_ += '\f'; return;
    case 'n': unescaped_ += '\n'; return;
    case 'r': unescaped_ += '\r'; return;
    case 't': unescaped_ += '\t'; return;
    case 'u': append_utf8(&unescaped_, code_point()); return;
    default: --at_; fail("an escape");
  }
}

uint32_t JsonScanner::hex4() {
  uint32_t code = 0;
  if (end_ - at_ < 4) fail("four hexadecimal digits");
  for (int i = 0; i < 4; ++i) {
    const char c = at_[i];
    const bool letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (!letter && !is_digit(c)) fail("four hexadecimal digits");
    code = code << 4 | (letter ? static_cast<uint32_t>(c & 0x0F) + 9 : static_cast<uint32_t>(c - '0'));
  }
  at_ += 4;
  return code;
}

uint32_t JsonScanner::code_point() {
  const uint32_t first = hex4();
  if (first < 0xD800 || first > 0xDFFF) return first;
  if (first > 0xDBFF || end_ - at_ < 2 || at_[0] != '\\' || at_[1] != 'u') fail("a pair of surrogates");
  at_ += 2;
  const uint32_t second = hex4();
  if (second < 0xDC00 || second > 0xDFFF) fail("a pair of surrogates");
  return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
}

void JsonScanner::digits() {
  if (at_ == end_ || !is_digit(*at_)) fail("a digit");
  while (at_ < end_ && is_digit(*at_)) ++at_;
}

// NaN, Infinity or -Infinity here, if they are accepted; else "".
std::string_view JsonScanner::non_finite_word() const {
  if (!non_finite_) return {};
  return nibble::non_finite_word({at_, static_cast<size_t>(end_ - at_)});
}

std::string_view JsonScanner::number() {
  skip_space();
  const char* const start = at_;
  if (const std::string_view word = non_finite_word(); !word.empty()) {
    at_ += word.size();
    return word;
  }
  if (at_ < end_ && *at_ == '-') ++at_;
  if (at_ < end_ && *at_ == '0') {
    ++at_;
  } else {
    digits();
  }
  if (at_ < end_ && *at_ == '.') {
    ++at_;
    digits();
  }
  if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    if (at_ < end_ && (*at_ == '+' || *at_ == '-')) ++at_;
    digits();
  }
  return {start, static_cast<size_t>(at_ - start)};
}

void JsonScanner::literal(std::string_view word) {
  if (static_cast<size_t>(end_ - at_) < word.size() || std::string_view(at_, word.size()) != word) fail("a value");
  at_ += word.size();
}

std::string_view JsonScanner::skip() {
  const JsonKind kind = peek();
  const char* const start = at_;
  switch (kind) {
    case JsonKind::kObject: object([this](std::string_view) { skip(); }); break;
    case JsonKind::kArray: array([this] { skip(); }); break;
    case JsonKind::kString: string(); break;
    case JsonKind::kNumber: number(); break;
    case JsonKind::kBool: literal(*at_ == 't' ? "true" : "false"); break;
    case JsonKind::kNull: literal("null"); break;
  }
  return {start, static_cast<size_t>(at_ - start)};
}

void JsonScanner::end() {
  skip_space();
  if (at_ != end_) fail("the end of the text");
}

std::optional<uint64_t> whole_number(std::string_view number) {
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (code != std::errc() || end != number.data() + number.size()) return std::nullopt;
  return value;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

void append_json_string(std::string* out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out->push_back('"');
  for (const char c : text) {
    switch (c) {
      case '"': *out += "\\\""; break;
      case '\\': *out += "\\\\"; break;
      case '\b': *out += "\\b"; break;
      case '\f': *out += "\\f"; break;
      case '\n': *out += "\\n"; break;
      case '\r': *out += "\\r"; break;
      case '\t': *out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          *out += "\\u00";
          out->push_back(kHex[c >> 4]);
          out->push_back(kHex[c & 15]);
        } else {
          out->push_back(c);
        }
    }
  }
  out->push_back('"');
}

}  // namespace nibble
