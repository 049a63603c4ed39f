// NaN, Infinity and -Infinity in JSON: no number of the standard's, but Python's json writes and reads them, and so
// published configurations hold them (`"time_step_limit": [0.0, Infinity]`). The library below base/json.h knows only
// the standard; this is what stands around it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace nibble {

struct NonFinite {
  uint64_t number = 0;  // which of the text's numbers it is, from 0
  double value = 0;
};

// The text with 0 in their places, of the same length so that every byte keeps its offset; the text itself, untouched,
// if it has none. Only where a value may stand: inside strings and beside other characters they are left to the parser.
struct FiniteText {
  std::string replaced;
  std::vector<NonFinite> non_finite;  // empty: `replaced` is not set
};
FiniteText without_non_finite(std::string_view text);

// NaN, Infinity or -Infinity, if the text begins with it; else "".
std::string_view non_finite_word(std::string_view text);

// Two-space indentation as the library's own dump has it, with these three words where it writes null.
void append_json(std::string* out, const nlohmann::ordered_json& value);

}  // namespace nibble
