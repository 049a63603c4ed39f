// What the groups of compressed-tensors declare of weights together, and as what a stored weight may be declared.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nibble/base/json.h"
#include "nibble/checkpoint/checkpoint.h"
#include "nibble/checkpoint/convention.h"

namespace nibble {

// The settings in config.json; null where there are none.
const Json* quantization_settings(const Checkpoint& checkpoint);
// Is the weight decoded, quantized, and in a layout that `method` (quant_method, lower case) means?
bool is_quantized_by(const Weight& weight, std::string_view method);
// Do loaders that go by the one format read the weight right: the same codes, kind of scales and number of them?
bool reads_alike(const Format& declared, const Weight& weight);

// A set is empty if some group leaves it open.
struct DeclaredScheme {
  std::set<std::string> formats, types, bits, strategies, symmetric, targets;
  std::set<int64_t> group_sizes;
  uint64_t groups = 0;      // that quantize weights
  bool understood = true;   // no presets, and no settings inside these
  bool no_targets = false;  // there are groups, and every list of targets is empty
};
DeclaredScheme declared_scheme(const Json& settings);

// Values of `format` and `strategy` under which loaders read the weight as it is stored; none: it is not judged. Where
// rows or matrices have one scale only several strategies come to the same.
std::set<std::string> formats_of(const Checkpoint& checkpoint, const Weight& weight);
using BlockSizes = std::vector<std::pair<uint64_t, uint64_t>>;  // (rows, columns)
std::set<std::string> strategies_of(const Weight& weight, const std::set<int64_t>& group_sizes,
                                    const BlockSizes& blocks);

// Are the scales those of blocks of one of these sizes?
bool has_blocks(const Weight& weight, const BlockSizes& blocks);

// May some target mean the module? In doubt it may: names have other prefixes in other programs, and classes that are
// not known here can hold anything.
class Targets {
 public:
  explicit Targets(const std::set<std::string>& targets);
  ~Targets();
  bool may_mean(std::string_view module) const;

 private:
  struct Expressions;
  const std::set<std::string>& targets_;
  std::unique_ptr<Expressions> expressions_;
};

}  // namespace nibble
