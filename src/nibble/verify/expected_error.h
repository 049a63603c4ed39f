// What error a format explains: rows of BASE are quantized as the manifest records, or as somebody may have done,
// decoded again and compared with what they were.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nibble/numerics/quantizer.h"
#include "nibble/verify/stored_manifest.h"

namespace nibble {

struct Expected {
  double rel_rmse = 0;
  double change = 0;  // what the recorded change of a second-level scale adds by itself
};

// How rows are quantized: as the manifest says, or as somebody may have done.
struct Rounding {
  NamedRule rule;  // rule.rule is null: the format's default
  BitExact bit_exact = BitExact::kNone;
  SecondLevel level = SecondLevel::kNone;        // how the second-level scale is stored; kNone: as the rule has it
  std::string name(const Format& format) const;  // "nv.two_level, bit-exact with compressed-tensors"
};

// Every way in which weights may have come into `format`. A search is never worse than its rule.
std::vector<Rounding> roundings_of(const Format& format);

ErrorSums difference(const std::vector<float>& base, const std::vector<float>& other);

// Errors of `rows` (count, K) of weights in `type`, quantized into `format`, given another second-level scale if one is
// recorded, and decoded again; nullopt if this format is only read, never written, or not written so. `amax`: over all
// matrices that share the second-level scale.
std::optional<Expected> expected_errors(const Format& format, const std::vector<float>& rows, uint64_t count,
                                        float amax, const SecondScaleChange* recorded = nullptr,
                                        const Rounding& rounding = {}, Element type = Element::kBF16);

}  // namespace nibble
