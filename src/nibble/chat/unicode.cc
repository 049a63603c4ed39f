#include "nibble/chat/unicode.h"

#include <unicode/uchar.h>
#include <unicode/ustring.h>

#include <cstdint>

namespace nibble::jinja {
namespace {

constexpr char32_t kCapitalSigma = 0x3A3, kSmallSigma = 0x3C3, kFinalSigma = 0x3C2;

UChar32 icu(char32_t c) { return static_cast<UChar32>(c); }

uint32_t category(char32_t c) { return U_GET_GC_MASK(icu(c)); }

bool is_ignorable(char32_t c) { return u_hasBinaryProperty(icu(c), UCHAR_CASE_IGNORABLE) != 0; }

int numeric_type(char32_t c) { return u_getIntPropertyValue(icu(c), UCHAR_NUMERIC_TYPE); }

bool ends_word(std::string_view text, size_t offset) {
  size_t at = offset;
  bool after_letter = false;
  while (at > 0) {
    at = previous_offset(text, at);
    size_t behind = at;
    const char32_t c = next_code_point(text, &behind);
    if (is_ignorable(c)) continue;
    after_letter = is_cased(c);
    break;
  }
  if (!after_letter) return false;
  next_code_point(text, &offset);
  while (offset < text.size()) {
    const char32_t c = next_code_point(text, &offset);
    if (!is_ignorable(c)) return !is_cased(c);
  }
  return true;
}

size_t valid_length(std::string_view text) {
  const auto byte = [text](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned second = byte(1);
  const bool bad = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
                   (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F);
  return bad ? 0 : length;
}

// UTF-16 as ICU has it.
void append_utf16(std::string* out, const UChar* text, int32_t length) {
  for (int32_t i = 0; i < length; ++i) {
    char32_t c = text[i];
    if (c >= 0xD800 && c < 0xDC00 && i + 1 < length) c = 0x10000 + ((c - 0xD800) << 10) + (text[++i] - 0xDC00U);
    append_utf8(out, c);
  }
}

void append_mapped(std::string* out, Case to, char32_t c) {
  UChar source[2] = {static_cast<UChar>(c), 0};
  int32_t length = 1;
  if (c >= 0x10000) {
    source[0] = static_cast<UChar>(0xD800 + ((c - 0x10000) >> 10));
    source[1] = static_cast<UChar>(0xDC00 + ((c - 0x10000) & 0x3FF));
    length = 2;
  }
  constexpr int32_t kRoom = 8;
  UChar mapped[kRoom] = {};
  UErrorCode error = U_ZERO_ERROR;
  int32_t count = 0;
  switch (to) {
    case Case::kUpper: count = u_strToUpper(mapped, kRoom, source, length, "", &error); break;
    case Case::kLower: count = u_strToLower(mapped, kRoom, source, length, "", &error); break;
    case Case::kTitle: count = u_strToTitle(mapped, kRoom, source, length, nullptr, "", &error); break;
    case Case::kFold: count = u_strFoldCase(mapped, kRoom, source, length, U_FOLD_CASE_DEFAULT, &error); break;
  }
  if (U_FAILURE(error) || count > kRoom) return append_utf8(out, c);
  append_utf16(out, mapped, count);
}

}  // namespace

char32_t next_code_point(std::string_view text, size_t* offset) {
  const auto lead = static_cast<unsigned char>(text[*offset]);
  if (lead < 0x80) {
    ++*offset;
    return lead;
  }
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  char32_t point = lead & (0xFFU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    point = (point << 6) | (static_cast<unsigned char>(text[*offset + i]) & 0x3FU);
  }
  *offset += length;
  return point;
}

size_t previous_offset(std::string_view text, size_t offset) {
  do {
    --offset;
  } while (offset > 0 && (static_cast<unsigned char>(text[offset]) & 0xC0) == 0x80);
  return offset;
}

void append_utf8(std::string* out, char32_t c) {
  const auto add = [out](char32_t byte) { *out += static_cast<char>(byte); };
  if (c < 0x80) return add(c);
  if (c < 0x800) {
    add(0xC0 | (c >> 6));
  } else {
    if (c < 0x10000) {
      add(0xE0 | (c >> 12));
    } else {
      add(0xF0 | (c >> 18));
      add(0x80 | ((c >> 12) & 0x3F));
    }
    add(0x80 | ((c >> 6) & 0x3F));
  }
  add(0x80 | (c & 0x3F));
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = valid_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = valid_length(text);
    out += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

bool is_space(char32_t c) {
  if (c < 0x80) return (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x20);
  return c == 0x85 || (category(c) & (U_GC_ZS_MASK | U_GC_ZL_MASK | U_GC_ZP_MASK)) != 0;
}

bool is_printable(char32_t c) {
  if (c < 0x7F) return c >= 0x20;
  return (category(c) & (U_GC_C_MASK | U_GC_Z_MASK)) == 0;
}

bool is_alpha(char32_t c) { return (category(c) & U_GC_L_MASK) != 0; }
bool is_decimal(char32_t c) { return numeric_type(c) == U_NT_DECIMAL; }
bool is_digit(char32_t c) { return is_decimal(c) || numeric_type(c) == U_NT_DIGIT; }
bool is_numeric(char32_t c) { return numeric_type(c) != U_NT_NONE; }
bool is_alnum(char32_t c) { return is_alpha(c) || is_numeric(c); }
bool is_upper(char32_t c) { return u_isUUppercase(icu(c)) != 0; }
bool is_lower(char32_t c) { return u_isULowercase(icu(c)) != 0; }
bool is_title(char32_t c) { return (category(c) & U_GC_LT_MASK) != 0; }
bool is_cased(char32_t c) { return u_hasBinaryProperty(icu(c), UCHAR_CASED) != 0; }
bool is_identifier_start(char32_t c) { return c == '_' || u_hasBinaryProperty(icu(c), UCHAR_XID_START) != 0; }
bool is_identifier_part(char32_t c) { return u_hasBinaryProperty(icu(c), UCHAR_XID_CONTINUE) != 0; }
int decimal_value(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9' ? static_cast<int>(c - '0') : -1;
  return u_charDigitValue(icu(c));
}

void append_case(std::string* out, Case to, std::string_view text, size_t offset) {
  const size_t begin = offset;
  const char32_t c = next_code_point(text, &offset);
  if (c < 0x80) {
    const bool up = to == Case::kUpper || to == Case::kTitle;
    if (up && c >= 'a' && c <= 'z') return append_utf8(out, c - 32);
    if (!up && c >= 'A' && c <= 'Z') return append_utf8(out, c + 32);
    return append_utf8(out, c);
  }
  if (to == Case::kLower && c == kCapitalSigma) {
    return append_utf8(out, ends_word(text, begin) ? kFinalSigma : kSmallSigma);
  }
  append_mapped(out, to, c);
}

}  // namespace nibble::jinja
