// UTF-8 as text arrives: not necessarily whole, and cut anywhere. What is broken becomes U+FFFD, as many as Python's
// `bytes.decode("utf-8", errors="replace")` writes: one for each longest beginning of a character.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nibble {

enum class Utf8State : uint8_t {
  kWhole,   // a character
  kBroken,  // bytes that are the beginning of none, whatever follows them
  kCut,     // the text ends inside a character
};

struct Utf8Step {
  Utf8State state = Utf8State::kWhole;
  uint8_t bytes = 0;        // that it takes, at least one
  uint32_t code_point = 0;  // if it is whole
};

// The first character of a text that is not empty.
Utf8Step next_utf8(std::string_view text);

inline constexpr std::string_view kReplacement = "\xef\xbf\xbd";

std::string replace_broken_utf8(std::string_view text);

// Of text that is_utf8().
std::u16string utf16_of(std::string_view text);
void append_utf8(std::u16string_view text, std::string* out);

}  // namespace nibble
