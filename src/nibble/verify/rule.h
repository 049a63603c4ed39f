// A rule: one kind of fault, one file in rules/, a row in rule_list.cc, and a bad checkpoint in its test that it
// catches.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "nibble/base/finding.h"
#include "nibble/checkpoint/checkpoint.h"
#include "nibble/models/model.h"
#include "nibble/verify/verify.h"
#include "nibble/verify/weight_stats.h"

namespace nibble {

struct VerifyContext {
  const VerifyOptions* options = nullptr;
  const Checkpoint* checkpoint = nullptr;
  const Model* model = nullptr;
  const std::vector<WeightStats>* stats = nullptr;  // one per weight
  const Checkpoint* base = nullptr;                 // --against, or null
  const Model* base_model = nullptr;
  std::vector<AgainstRow>* against = nullptr;
};

struct Rule {
  std::string_view name;     // stable, kebab-case: "scale-direction"
  std::string_view summary;  // one line for the documentation
  void (*check)(const VerifyContext& context, Findings* findings);
};

// The list: rule_list.cc holds its rows and nothing else.
std::span<const Rule* const> rules();

}  // namespace nibble
