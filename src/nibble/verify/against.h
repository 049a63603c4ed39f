// The checkpoint's matrices beside those of BASE: how far they are apart, and how far they should be. What they should
// be is measured, not looked up: a sample of the base's own rows is quantized with the rule that the manifest records,
// or else the format's default rule, and if that does not explain the error with every rule of the format. The rule
// `against` judges the rows.
#pragma once

#include <vector>

#include "nibble/numerics/quantizer.h"
#include "nibble/verify/matrix_map.h"
#include "nibble/verify/rule.h"

namespace nibble {

// One row per matrix that has a partner in BASE, in the checkpoint's order; matrices without one are left to the rule.
// All rows are compared, a sample with --quick. Reads in parallel; the sums do not depend on the number of threads.
std::vector<AgainstRow> compare_with_base(const VerifyContext& context);

// The largest relative error that its format explains, and whether `row` is beyond it or could not be compared.
double explained_error(const AgainstRow& row);
bool is_worse_than_explained(const AgainstRow& row);

struct Expected {
  double rel_rmse = 0;
  double change = 0;  // what the recorded change of a second-level scale adds by itself
};

// How rows are quantized: as the manifest says, or as somebody may have done.
struct Rounding {
  NamedRule rule;  // rule.rule is null: the format's default
  BitExact bit_exact = BitExact::kNone;
  std::string name(const Format& format) const;  // "nv.two_level, bit-exact with compressed-tensors"
};

// Errors of `rows` (count, K) of weights in `type`, quantized into `format`, given another second-level scale if one is
// recorded, and decoded again; nullopt if this format is only read, never written, or not written so.
std::optional<Expected> expected_errors(const Format& format, const std::vector<float>& rows, uint64_t count,
                                        float amax, const SecondScaleChange* recorded = nullptr,
                                        const Rounding& rounding = {}, Element type = Element::kBF16);

}  // namespace nibble
