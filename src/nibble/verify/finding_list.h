// Order and length of a report: errors first, then by rule, file and tensor, digits inside names compared as numbers;
// at most 20 findings of one rule and severity, and one that says how many there were.
#pragma once

#include <cstddef>

#include "nibble/base/finding.h"

namespace nibble {

inline constexpr size_t kFindingsShown = 20;

void sort_and_group(Findings* findings);

// -1, 0, 1: "layers.2." before "layers.10.".
int compare_natural(std::string_view a, std::string_view b);

}  // namespace nibble
