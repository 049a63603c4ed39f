// Numbers and strings as they are written in tags.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nibble::jinja {

// How many bytes at the beginning are a number of this kind; 0: none. `text` begins with a digit.
size_t float_length(std::string_view text);
size_t integer_length(std::string_view text);

// What a string between its quotes means. `problem` is filled if it means nothing.
std::string unescape(std::string_view text, std::string* problem);

}  // namespace nibble::jinja
