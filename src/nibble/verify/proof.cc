#include "nibble/verify/proof.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "nibble/verify/against.h"
#include "nibble/verify/rule.h"

namespace nibble {
namespace {

// Errors of the weights' own size are what faults leave, also where a rule that does no better would explain them.
constexpr double kLikeBase = 0.5;

Proof proof_of(const AgainstRow& row) {
  // Equal to a BASE of the same format proves a copy, and nothing of what was copied.
  if (!row.rounded || is_worse_than_explained(row) || row.rel_rmse >= kLikeBase) return Proof::kNone;
  return row.near_a_rule ? Proof::kNear : Proof::kLike;
}

// A weight of several matrices is what the worst of them is.
void add_compared(const VerifyContext& context, std::vector<Proof>* proofs) {
  std::vector<bool> seen(proofs->size());
  for (const AgainstRow& row : *context.against) {
    Proof& proof = (*proofs)[row.weight];
    const Proof found = proof_of(row);
    proof = seen[row.weight] ? std::min(proof, found) : found;
    seen[row.weight] = true;
  }
}

void add_recorded(const VerifyContext& context, std::vector<Proof>* proofs) {
  const auto& files = context.checkpoint->files();
  std::vector<bool> same(files.size());
  for (size_t f = 0; f < std::min(files.size(), context.scan->sha256.size()); ++f) {
    const RecordedFile* record = context.manifest->find(files[f].name);
    same[f] = record != nullptr && record->sha256 == context.scan->sha256[f];
  }
  std::unordered_set<std::string_view> rounded;
  for (const RecordedTensor& tensor : context.manifest->tensors) {
    if (!tensor.rule.empty()) rounded.insert(tensor.name);
  }
  const auto& weights = context.model->table.weights();
  for (size_t w = 0; w < weights.size(); ++w) {
    if (!rounded.contains(weights[w].name)) continue;
    const auto as_recorded = [&](const Part& part) {
      return static_cast<bool>(same[context.checkpoint->tensors()[part.tensor].file]);
    };
    if (std::ranges::all_of(weights[w].parts, as_recorded)) (*proofs)[w] = Proof::kRecorded;
  }
}

}  // namespace

std::vector<Proof> proofs_of_weights(const VerifyContext& context) {
  std::vector<Proof> proofs(context.model->table.weights().size());
  if (context.base != nullptr) add_compared(context, &proofs);
  if (context.manifest != nullptr) add_recorded(context, &proofs);
  return proofs;
}

}  // namespace nibble
