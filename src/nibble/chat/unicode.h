// Characters as Python's `str` sees them: code points, their classes and their cases.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nibble::jinja {

// The code point at `*offset`, which moves behind it. The text is valid UTF-8.
char32_t next_code_point(std::string_view text, size_t* offset);
// The offset where the code point before `offset` begins.
size_t previous_offset(std::string_view text, size_t offset);
void append_utf8(std::string* out, char32_t code_point);
bool is_valid_utf8(std::string_view text);
// With U+FFFD for every byte that is none.
std::string valid_utf8(std::string_view text);

bool is_space(char32_t c);
bool is_printable(char32_t c);
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
bool is_alnum(char32_t c);
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_title(char32_t c);
bool is_cased(char32_t c);
bool is_identifier_start(char32_t c);
bool is_identifier_part(char32_t c);
// 0 to 9, -1 if it is no decimal digit of any script.
int decimal_value(char32_t c);

enum class Case { kUpper, kLower, kTitle, kFold };
// The full mapping, one or more code points, as UTF-8. `text` and `offset` say where it stands: a capital sigma at the
// end of a word has a small letter of its own.
void append_case(std::string* out, Case to, std::string_view text, size_t offset);

}  // namespace nibble::jinja
