// How a block's scale is chosen (FORMATS.md §2). A rule has a name that is stored with the weights; each is one file in
// numerics/rules/ and a row in scale_rule_list.cc. `mse.NAME` wraps any of them in a search (rules/mse.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "nibble/numerics/encoded.h"
#include "nibble/numerics/format.h"

namespace nibble {

// What a rule may look at of one block. `extreme` is the element of largest magnitude with its sign (first on ties).
struct BlockStats {
  float amax = 0;
  float min = 0, max = 0;  // both include 0
  float extreme = 0;
};

// A chosen scale, already rounded to the format's stored type (the one order: round the scale first, then quantize with
// the rounded scale).
struct BlockScale {
  uint32_t stored = 0;                   // bits of the stored type
  float value = 0;                       // what codes are multiplied by, before the second level
  uint8_t zero = 0;                      // ZeroPoint::kCode only
  int8_t clamp_low = 0, clamp_high = 0;  // integer elements only: signed range of q
};

// Which of BlockStats a rule reads. `amax` is always there.
enum class BlockStatsNeeded : uint8_t { kAmax, kMinMax, kExtreme };

// The same for many blocks. Arrays that the rule does not need may be null; `zero` is null without zero points.
struct BlockStatsArrays {
  const float* amax = nullptr;
  const float* min = nullptr;
  const float* max = nullptr;
  const float* extreme = nullptr;
};
struct BlockScaleArrays {
  uint32_t* stored = nullptr;
  float* value = nullptr;
  uint8_t* zero = nullptr;
};

struct ScaleRule {
  std::string_view name;     // "mx.even"
  std::string_view summary;  // one line for --help
  bool (*applies)(const Format& format);
  BlockStatsNeeded needs = BlockStatsNeeded::kAmax;
  int8_t clamp_low = 0, clamp_high = 0;  // as in BlockScale, the same for all blocks
  // Second-level (or whole-tensor) scale from the maximum magnitude over all matrices that share it. `level` is the
  // form that the file needs; kNone: the rule's own. null: no format of this rule has one.
  TensorScale (*tensor_scale)(const Format& format, float amax, SecondLevel level) = nullptr;
  BlockScale (*block_scale)(const Format& format, const BlockStats& stats, const TensorScale& tensor_scale) = nullptr;
  // What block_scale gives, for `count` blocks.
  void (*block_scales)(const Format& format, const BlockStatsArrays& stats, uint64_t count,
                       const TensorScale& tensor_scale, const BlockScaleArrays& out) = nullptr;
  // Candidates for a block beyond block_scale's (four-over-six): tried in order, smallest sum of squares wins, the
  // first on ties. null: none. Writes at most kMaxAlternatives into `out`, returns how many.
  int (*alternatives)(const Format& format, const BlockStats& stats, const TensorScale& tensor_scale,
                      BlockScale* out) = nullptr;
  bool powers_of_two = false;  // in a float type too: a search tries no other scales
};
inline constexpr int kMaxAlternatives = 7;

// The list: scale_rule_list.cc holds its rows and nothing else.
std::span<const ScaleRule* const> scale_rules();

// `name` may carry the prefix "mse.". Error naming the rules that apply to `format` if it is unknown or does not apply.
struct NamedRule {
  const ScaleRule* rule = nullptr;
  bool mse = false;
  std::string name() const;
};
NamedRule parse_rule(std::string_view name, const Format& format);
NamedRule default_rule(const Format& format);

}  // namespace nibble
