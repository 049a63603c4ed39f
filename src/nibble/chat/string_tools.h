// What several string methods and filters stand on.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "nibble/chat/run.h"

namespace nibble::jinja {

// Linear in both texts, whatever they hold. npos: not there.
size_t find_bytes(Run& run, std::string_view text, std::string_view wanted, size_t from = 0);
size_t rfind_bytes(Run& run, std::string_view text, std::string_view wanted);

TextPtr concat(Run& run, const TextPtr& left, const TextPtr& right);
TextPtr repeat(Run& run, const TextPtr& text, const Value& count);
// HTML's special characters as entities; markup stays as it is.
TextPtr escape_text(Run& run, const Value& value);
// `count` below 0: all of them.
TextPtr replace_text(Run& run, const TextPtr& text, const TextPtr& from, const TextPtr& to, int64_t count);
// `chars` null: white space.
TextPtr strip_text(Run& run, const TextPtr& text, const Text* chars, bool left, bool right);
Values split_lines(Run& run, const TextPtr& text, bool keep_ends);

// `format % values`: `values` a tuple, a mapping or one value.
TextPtr format_percent(Run& run, const TextPtr& format, const Value& values);
// `format.format(...)`.
TextPtr format_braces(Run& run, const TextPtr& format, const Arguments& arguments);
// `format(value, spec)`.
void append_formatted(Run& run, TextBuilder& out, const Value& value, std::string_view spec);

}  // namespace nibble::jinja
