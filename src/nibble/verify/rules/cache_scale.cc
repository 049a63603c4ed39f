// Scales of the KV cache: keys and values are divided by them. Zero and negative ones are written by exporters that saw
// no calibration data, and everything attends to nothing. NaN and infinity are non-finite's.
#include "nibble/models/leftovers.h"
#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "cache-scale";
constexpr uint64_t kMost = 65'536;  // one for each head at most

void check(const VerifyContext& context, Findings* findings) {
  const auto& weights = context.model->table.weights();
  for (size_t w = 0; w < weights.size(); ++w) {
    const Weight& weight = weights[w];
    if (weight.opaque || !weight.format.is_dense() || !is_cache_scale(weight.name) || weight.elements() > kMost ||
        context.scan->weights[w].failed)
      continue;
    uint64_t bad = 0;
    float first = 0;
    for (uint64_t s = 0; s < weight.slices(); ++s) {
      for (const float value : read_rows_f32(*context.checkpoint, weight, s, 0, weight.rows())) {
        if (value > 0 || value != value) continue;
        if (bad++ == 0) first = value;
      }
    }
    if (bad == 0) continue;
    findings->push_back(weight_finding(
        context, w, Severity::kError, kName,
        "a scale of the KV cache that is not above zero: keys and values are divided by it. Calibrate again, or remove "
        "the cache's scales",
        {{"bad", std::to_string(bad)}, {"of", std::to_string(weight.elements())}, {"first", short_number(first)}}));
  }
}

}  // namespace

extern const Rule kCacheScale = {kName, "scales of the KV cache that are not above zero", check};

}  // namespace nibble
