#include "nibble/ledger/param_counts.h"

#include <algorithm>

#include "nibble/base/checked_math.h"
#include "nibble/base/error.h"
#include "nibble/models/stacked_inventory.h"

namespace nibble {
namespace {

void add(uint64_t elements, uint64_t* sum) {
  const auto next = checked_add(*sum, elements);
  if (!next)
    throw Error("the model has more parameters than 64 bits count")
        .way_out("take config.json from the same release as the weights");
  *sum = *next;
}

uint64_t elements_of(const ParamSpec& param) {
  const auto elements = checked_product(param.shape);
  if (!elements)
    throw Error("a parameter has more elements than 64 bits count")
        .tensor(param.name)
        .way_out("take config.json from the same release as the weights");
  return *elements;
}

}  // namespace

ParamCounts count_params(const ModelSpec& spec, std::span<const ParamSpec> params) {
  ParamCounts counts;
  for (const ParamSpec& param : params) {
    const uint64_t elements = elements_of(param);
    if (param.role == Role::kMtp) {
      if (param.counted) add(elements, &counts.mtp);
      continue;
    }
    // A tied head is no parameter of its own, but its matrix is read for every token.
    const bool tied_head = param.role == Role::kHead && param.layer < 0;
    if (param.counted) add(elements, &counts.total);
    if (is_expert_stack(param)) {
      add(elements, &counts.routed);
      add(elements / spec.experts * spec.experts_per_token, &counts.active);
    } else if ((param.counted || tied_head) && param.role != Role::kEmbedding) {
      add(elements, &counts.active);
    }
  }
  // As far as it goes: a hostile configuration cannot make a count negative.
  const auto differ = [&](uint64_t* count) {
    const auto difference =
        static_cast<uint64_t>(spec.published_difference < 0 ? -spec.published_difference : spec.published_difference);
    if (spec.published_difference >= 0) return add(difference, count);
    *count -= std::min(*count, difference);
  };
  differ(&counts.total);
  differ(&counts.active);
  return counts;
}

}  // namespace nibble
