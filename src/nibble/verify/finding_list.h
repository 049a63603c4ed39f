// Order and length of a report: errors first, then by rule, file and tensor, digits inside names compared as numbers;
// at most 20 findings of one rule and severity, and one that says how many there were. What explains others comes
// before the rules' order (an unfinished run), and what others explain behind it (parameters without a tensor, whose
// file may be missing or damaged).
#pragma once

#include <cstddef>
#include <string_view>

#include "nibble/base/finding.h"

namespace nibble {

inline constexpr size_t kFindingsShown = 20;
inline constexpr std::string_view kUnfinishedRule = "unfinished-run";

void sort_and_group(Findings* findings);

// -1, 0, 1: "layers.2." before "layers.10.".
int compare_natural(std::string_view a, std::string_view b);

}  // namespace nibble
