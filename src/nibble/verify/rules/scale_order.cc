// Scales rounded to powers of two *after* the codes were made with the unrounded ones: every value is off by the same
// factor as its scale, up to two. The trace it leaves: the scales are powers of two and yet the largest code of nearly
// every block is the largest there is. In the right order the block maxima spread over a factor of two, so that only
// some blocks reach the top code.
//
// Weights of a bounded distribution (uniform, ternary, constant) have block maxima that do not spread, and reach the
// top code in every block where their bound lies right. But then top codes are common, and as many blocks would reach
// one if they fell where they like. Codes that were made with each block's own maximum have one top code per block that
// is there for certain, and few others: more blocks are full than their number explains. Only that is a proof.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "nibble/verify/code_stats.h"
#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "scale-order";

// How sure one must be. With 8-bit floats a block reaches the top code in the right order with a chance of at most 0.35
// (rules that let it saturate included), with 4-bit ones of at most 0.8, unless the weights are bounded. `misses`: so
// many blocks would have no top code if top codes fell where they like, of which one in four may be there.
struct Demand {
  uint64_t blocks;
  double share;
  double misses;
};
Demand demand_for(Element element) { return element_bits(element) == 8 ? Demand{16, 0.9, 4.5} : Demand{64, 0.97, 12}; }

// The largest finite magnitude code (0x7E, 0x7B, 7), and the first of the octave below it.
struct TopCodes {
  size_t top = 0, octave = 0;
};
TopCodes top_codes(Element element) {
  Format format;
  format.element = element;
  const std::vector<float> values = code_values(format);
  TopCodes codes;
  for (size_t c = 0; c < values.size() / 2; ++c) {
    if (std::isfinite(values[c])) codes.top = c;
  }
  while (values[codes.octave] < values[codes.top] / 2) ++codes.octave;
  return codes;
}

struct Tally {
  uint64_t full = 0, blocks = 0;  // blocks of zeros are left out
  uint64_t tops = 0, below = 0;   // elements with the top code, and in the octave below it
  double elements = 0;            // in those blocks
  double spread = 1;              // largest over smallest scale of one kind of weight of a layer, with tiles for blocks
  size_t first = 0, weights = 0;

  void add(const Tally& other) {
    if (weights == 0) first = other.first;
    full += other.full;
    blocks += other.blocks;
    tops += other.tops;
    below += other.below;
    elements += other.elements;
    weights += other.weights;
  }
};

// May its tiles be expected to have one bound, if any? Of what is fused each part may have its own, and what is unknown
// may be fused.
bool has_one_bound(const Format& format, const ParamSpec& param) {
  if (format.block_rows <= 1) return false;
  switch (param.projection) {
    case Projection::kGate:
    case Projection::kUp:
    case Projection::kDown:
    case Projection::kQ:
    case Projection::kK:
    case Projection::kV:
    case Projection::kO:
    case Projection::kQa:
    case Projection::kQb: return true;
    default: return false;
  }
}

Tally tally_of(const VerifyContext& context, size_t weight) {
  const WeightStats& stats = context.scan->weights[weight];
  const Format& format = context.model->table.weights()[weight].format;
  const TopCodes codes = top_codes(format.element);
  const auto& histogram = stats.code_histogram;
  const size_t half = histogram.size() / 2;
  Tally tally;
  tally.first = weight;
  tally.weights = 1;
  if (has_one_bound(format, context.model->params[weight])) tally.spread = stats.scales.max / stats.scales.min;
  tally.full = stats.block_max_histogram[codes.top];
  tally.blocks = stats.blocks - stats.block_max_histogram[0];
  for (size_t c = codes.octave; c <= codes.top; ++c)
    (c == codes.top ? tally.tops : tally.below) += histogram[c] + histogram[half + c];
  if (stats.blocks != 0)
    tally.elements =
        static_cast<double>(stats.elements) / static_cast<double>(stats.blocks) * static_cast<double>(tally.blocks);
  return tally;
}

struct Range {
  double least = 0, most = 0;

  void add(const ScaleStats& scales) {
    least = most == 0 ? scales.min : std::min(least, static_cast<double>(scales.min));
    most = std::max(most, static_cast<double>(scales.max));
  }
};

// How many blocks would have no top code if as many top codes fell where they like.
double expected_misses(const Tally& tally) {
  const double blocks = static_cast<double>(tally.blocks);
  const double chance = std::min(1.0, static_cast<double>(tally.tops) / tally.elements);
  return blocks * std::pow(1 - chance, tally.elements / blocks);
}

enum class Verdict : uint8_t { kGood, kUndecided, kProved };

// `cases`: of how many this is one. Of many good ones some have no block without a top code by chance.
Verdict judge(const Tally& tally, Element element, uint64_t cases) {
  const Demand demand = demand_for(element);
  if (tally.blocks < demand.blocks ||
      static_cast<double>(tally.full) < demand.share * static_cast<double>(tally.blocks))
    return Verdict::kGood;
  // Sparse weights of few values (one-hot rows) also have few top codes in many blocks; but nothing just below.
  const bool falls_off = tally.below >= tally.tops;
  const double missed = static_cast<double>(tally.blocks - tally.full);
  // Maxima of one kind of weight in one layer over octaves that all lie at one place of theirs: a bound that does that
  // would have to change by powers of two from tile to tile (rows, kinds and layers may have such bounds).
  if (falls_off && element_bits(element) == 8 && tally.spread >= 4) return Verdict::kProved;
  const double misses = demand.misses + std::log(static_cast<double>(cases)) + 4 * missed;
  return falls_off && expected_misses(tally) >= misses ? Verdict::kProved : Verdict::kUndecided;
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
          "were rounded after the codes were made, and values are off by up to a factor of two. Quantize again, "
          "rounding the scale first",
          tally.full, tally.blocks, share, where, top_codes(element).top),
      {{"share", share},
       {"full_blocks", std::to_string(tally.full)},
       {"blocks", std::to_string(tally.blocks)},
       {"expected_misses", short_number(expected_misses(tally))},
       {"weights", std::to_string(tally.weights)}});
}

// Nothing in the codes of bounded weights tells the right order from the wrong one.
Finding undecided_note(const VerifyContext& context, const Tally& tally, Element element) {
  const std::string share = percent_text(tally.full, tally.blocks);
  return part_finding(
      context, tally.first, PartKind::kScales, Severity::kNote, kName,
      fmt::format("all scales of {} weights (this is the first) are powers of two, and {} of their blocks reach the "
                  "largest code 0x{:02X}: so do good weights of a bounded distribution, and scales rounded after the "
                  "codes were made. `nibble verify --against BASE` tells which",
                  tally.weights, share, top_codes(element).top),
      {{"share", share},
       {"full_blocks", std::to_string(tally.full)},
       {"blocks", std::to_string(tally.blocks)},
       {"weights", std::to_string(tally.weights)}});
}

bool can_judge(const VerifyContext& context, size_t w) {
  const Format& format = context.model->table.weights()[w].format;
  const WeightStats& stats = context.scan->weights[w];
  if ((*context.proofs)[w] >= Proof::kNear || format.is_dense() || !is_float_element(format.element) ||
      format.two_level)
    return false;
  return stats.blocks != 0 && stats.scales.good != 0 && stats.scales.powers_of_two == stats.scales.good;
}

void check(const VerifyContext& context, Findings* findings) {
  const auto& weights = context.model->table.weights();
  // Weights that prove nothing alone are judged together: with too few blocks, or undecided.
  std::map<Element, Tally> small, undecided;
  // Scales by layer and kind of weight: good ones may have a bound each, which lie at one place of different octaves.
  std::map<std::tuple<bool, Element, int32_t, Projection>, Range> ranges;
  uint64_t cases = 0;
  for (size_t w = 0; w < weights.size(); ++w) cases += can_judge(context, w) ? 1u : 0u;
  for (size_t w = 0; w < weights.size(); ++w) {
    if (!can_judge(context, w)) continue;
    const Element element = weights[w].format.element;
    const Tally tally = tally_of(context, w);
    const Verdict verdict = judge(tally, element, cases);
    if (verdict == Verdict::kProved) findings->push_back(order_finding(context, tally, element));
    const bool few = tally.blocks < demand_for(element).blocks;
    if (verdict == Verdict::kUndecided) undecided[element].add(tally);
    if (few) small[element].add(tally);
    const ParamSpec& param = context.model->params[w];
    if (has_one_bound(weights[w].format, param) && (few || verdict == Verdict::kUndecided))
      ranges[{few, element, param.layer, param.projection}].add(context.scan->weights[w].scales);
  }
  for (const auto& [kind, range] : ranges) {
    Tally& joined = std::get<0>(kind) ? small[std::get<1>(kind)] : undecided[std::get<1>(kind)];
    joined.spread = std::max(joined.spread, range.most / range.least);
  }
  for (const auto* tallies : {&small, &undecided}) {
    for (const auto& [element, tally] : *tallies) {
      const Verdict verdict = judge(tally, element, 1);
      if (verdict == Verdict::kProved) findings->push_back(order_finding(context, tally, element));
      if (verdict == Verdict::kUndecided) findings->push_back(undecided_note(context, tally, element));
    }
  }
}

}  // namespace

extern const Rule kScaleOrder = {kName, "power-of-two scales rounded after the codes were made", check};

}  // namespace nibble
