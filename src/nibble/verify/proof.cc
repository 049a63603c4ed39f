#include "nibble/verify/proof.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "nibble/verify/against.h"

namespace nibble {
namespace {

void add_compared(const VerifyContext& context, std::vector<bool>* proved) {
  std::vector<bool> worse(proved->size());
  for (const AgainstRow& row : *context.against) {
    (*proved)[row.weight] = true;
    if (is_worse_than_explained(row)) worse[row.weight] = true;
  }
  for (size_t w = 0; w < worse.size(); ++w) {
    if (worse[w]) (*proved)[w] = false;
  }
}

void add_recorded(const VerifyContext& context, std::vector<bool>* proved) {
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
    if (std::ranges::all_of(weights[w].parts, as_recorded)) (*proved)[w] = true;
  }
}

}  // namespace

std::vector<bool> proved_weights(const VerifyContext& context) {
  std::vector<bool> proved(context.model->table.weights().size());
  if (context.base != nullptr) add_compared(context, &proved);
  if (context.manifest != nullptr) add_recorded(context, &proved);
  return proved;
}

}  // namespace nibble
