// A rule: one kind of fault, one file in rules/, a row in rule_list.cc, and a bad checkpoint in its test that it
// catches.
//
//   extern const Rule kEmptyNames = {"empty-names", "tensors without a name", [](const VerifyContext& c, Findings* f) {
//     …
//   }};
//
// A rule looks at headers, configuration and the statistics of weight_stats.h, reads more bytes only if it must, and
// never throws for what is in the checkpoint. It judges Format's fields (element, scale type, two_level …), never
// names.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "nibble/base/finding.h"
#include "nibble/checkpoint/checkpoint.h"
#include "nibble/models/model.h"
#include "nibble/verify/proof.h"
#include "nibble/verify/stored_manifest.h"
#include "nibble/verify/verify.h"
#include "nibble/verify/weight_stats.h"

namespace nibble {

struct VerifyContext {
  const VerifyOptions* options = nullptr;
  const Checkpoint* checkpoint = nullptr;
  const Model* model = nullptr;
  const ScanResult* scan = nullptr;          // scan->weights: one per model->table.weights()
  const StoredManifest* manifest = nullptr;  // null: none, or malformed (then that is a finding already)
  const Findings* reported = nullptr;        // what readers and models/ have found
  const Checkpoint* base = nullptr;          // --against, or null
  const Model* base_model = nullptr;
  const std::vector<AgainstRow>* against = nullptr;
  const std::vector<Proof>* proofs = nullptr;  // by weight: how little statistics have to add
};

struct Rule {
  std::string_view name;     // stable, kebab-case: "scale-direction"
  std::string_view summary;  // one line for the documentation
  void (*check)(const VerifyContext& context, Findings* findings);
};

// The list: rule_list.cc holds its rows and nothing else.
std::span<const Rule* const> rules();

}  // namespace nibble
