// How many parameters a model has, and how many of them one token meets.
//
// total   the text model: embeddings, head (once if tied), attention, norms, routers, all experts, dense layers;
// without
//         MTP layers, vision and memory tables that are looked up by row
// active  of the total, what is read to decode one token: top-k of E routed experts, everything else whole, the head (a
//         tied one too), but of the input embedding only one row, which is not counted
// routed  of the total, the routed experts with their biases
// Total and active are the published counts': ModelSpec::published_difference is added.
//
// mtp     the multi-token-prediction layers, without the copies of embedding and head that some files hold
#pragma once

#include <cstdint>
#include <span>

#include "nibble/models/family.h"

namespace nibble {

struct ParamCounts {
  uint64_t total = 0, active = 0, routed = 0, mtp = 0;
  friend bool operator==(const ParamCounts&, const ParamCounts&) = default;
};

// `params` as stacked_inventory() gives them. Error if a sum does not fit 64 bits.
ParamCounts count_params(const ModelSpec& spec, std::span<const ParamSpec> params);

}  // namespace nibble
