// Do scales go with their codes as multipliers do? A scale is made from the largest element of its block, and the codes
// are what remains: among blocks of one row, which are about as large as each other, a larger scale comes with smaller
// codes. Where the stored numbers are the reciprocals it comes with larger ones.
#pragma once

#include <cstddef>

namespace nibble {

struct VerifyContext;

// z value of the correlation between logarithms of scales and of root mean squares of codes, from differences of
// neighbouring blocks in a sample of the weight's rows. Negative: as multipliers. 0: there are no such blocks, or they
// cannot be read. Blocks that are mostly zeros are left out: whatever is not zero in them makes scale and codes larger.
double scale_relation(const VerifyContext& context, size_t weight);

}  // namespace nibble
