// The checkpoint's matrices beside those of BASE: how far they are apart, and how far they should be. What they should
// be is measured, not looked up: a sample of the base's own rows is quantized with the rule that the manifest records,
// or else the format's default rule, and if that does not explain the error with every rule of the format
// (expected_error.h). The rule `against` judges the rows.
#pragma once

#include <vector>

#include "nibble/verify/rule.h"

namespace nibble {

// One row per matrix that has a partner in BASE, in the checkpoint's order; matrices without one are left to the rule.
// All rows are compared; with --quick a sample, and all only where that looks worse than it should. Reads in parallel;
// the sums do not depend on the number of threads.
std::vector<AgainstRow> compare_with_base(const VerifyContext& context);

// The largest relative error that its format explains, and whether `row` is beyond it or could not be compared.
double explained_error(const AgainstRow& row);
bool is_worse_than_explained(const AgainstRow& row);

}  // namespace nibble
