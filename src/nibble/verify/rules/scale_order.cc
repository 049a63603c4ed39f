// Scales rounded up to powers of two *after* the codes were made with the unrounded ones: every value is too large, by
// up to two. The trace it leaves: the scales are powers of two and yet the largest code of nearly every block is the
// largest there is. In the right order the block maxima spread over a factor of two, so that only some blocks reach the
// top code.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "nibble/verify/code_stats.h"
#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "scale-order";

// How sure one must be. With 8-bit floats a block reaches the top code in the right order with a chance of at most 0.35
// (rules that let it saturate included), with 4-bit ones of at most 0.8.
struct Proof {
  uint64_t blocks;
  double share;
};
Proof proof_for(Element element) { return element_bits(element) == 8 ? Proof{16, 0.9} : Proof{64, 0.97}; }

// The largest finite magnitude code: 0x7E, 0x7B, 7.
uint8_t top_code(Element element) {
  Format format;
  format.element = element;
  const std::vector<float> values = code_values(format);
  size_t top = 0;
  for (size_t c = 0; c < values.size() / 2; ++c) {
    if (std::isfinite(values[c])) top = c;
  }
  return static_cast<uint8_t>(top);
}

struct Tally {
  uint64_t full = 0, blocks = 0;  // blocks of zeros are left out
  size_t first = 0, weights = 0;
};

bool proved(const Tally& tally, Element element) {
  const Proof proof = proof_for(element);
  return tally.blocks >= proof.blocks &&
         static_cast<double>(tally.full) >= proof.share * static_cast<double>(tally.blocks);
}

bool is_float_element(Element element) {
  return element == Element::kE2M1 || element == Element::kE4M3 || element == Element::kE5M2;
}

Finding order_finding(const VerifyContext& context, const Tally& tally, Element element) {
  const std::string share = percent_text(tally.full, tally.blocks);
  const std::string where =
      tally.weights > 1 ? fmt::format(" (over {} weights, this is the first)", tally.weights) : "";
  return part_finding(
      context, tally.first, PartKind::kScales, Severity::kError, kName,
      fmt::format(
          "all scales are powers of two, and yet {} of {} blocks ({}){} reach the largest code 0x{:02X}: the scales "
          "were rounded after the codes were made, and values are up to twice too large. Quantize again, "
          "rounding the scale first",
          tally.full, tally.blocks, share, where, top_code(element)),
      {{"share", share},
       {"full_blocks", std::to_string(tally.full)},
       {"blocks", std::to_string(tally.blocks)},
       {"weights", std::to_string(tally.weights)}});
}

void check(const VerifyContext& context, Findings* findings) {
  const auto& weights = context.model->table.weights();
  std::map<Element, Tally> small;  // weights with too few blocks to prove anything alone are judged together
  for (size_t w = 0; w < weights.size(); ++w) {
    const WeightStats& stats = context.scan->weights[w];
    const Element element = weights[w].format.element;
    if ((*context.proved)[w] || weights[w].format.is_dense() || !is_float_element(element) ||
        weights[w].format.two_level)
      continue;
    if (stats.blocks == 0 || stats.scales.good == 0 || stats.scales.powers_of_two != stats.scales.good) continue;
    const Tally tally = {stats.block_max_histogram[top_code(element)], stats.blocks - stats.block_max_histogram[0], w,
                         1};
    if (tally.blocks >= proof_for(element).blocks) {
      if (proved(tally, element)) findings->push_back(order_finding(context, tally, element));
      continue;
    }
    Tally& sum = small[element];
    if (sum.weights == 0) sum.first = w;
    sum.full += tally.full;
    sum.blocks += tally.blocks;
    ++sum.weights;
  }
  for (const auto& [element, tally] : small) {
    if (proved(tally, element)) findings->push_back(order_finding(context, tally, element));
  }
}

}  // namespace

extern const Rule kScaleOrder = {kName, "power-of-two scales rounded after the codes were made", check};

}  // namespace nibble
