// The regular expressions of tokenizer.json are written for Oniguruma in Ruby's syntax; ICU runs them here. Where the
// two spell one thing differently the expression is rewritten, and what would silently mean something else is refused.
#pragma once

#include <string>
#include <string_view>

namespace nibble {

// `pattern` (UTF-8) for ICU with the flags UREGEX_MULTILINE and UREGEX_UNIX_LINES. Throws Error with `file`, naming the
// construct.
std::string icu_pattern(std::string_view pattern, const std::string& file);

// Characters of `text` as a pattern that matches them and nothing else.
std::string quoted_pattern(std::string_view text);

}  // namespace nibble
