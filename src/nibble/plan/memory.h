// What the fullest GPU of a layout holds while it serves, term by term. With several stages all terms are of the one
// whose sum is largest: the most weights of one and the largest cache of another lie on no GPU together.
//
//   weights        of its stage (ledger/sharding.h), by role; MTP layers only if tokens are drafted. The last of
//   several
//                  stages has an embedding of its own if the head is tied to it or its MTP layers draft; copies of
//                  embedding and head that a file holds beside them are not held
//   kv             ceil(concurrency / dp) sequences of `context` tokens: heads shared out where there are enough, the
//                  indexer's keys on every GPU; the MTP layers' once more if tokens are drafted
//   activations    for T = max(sequences, kPrefillChunk) tokens, drafted ones among them, in 16 bits: four streams of
//                  width H, the widest of the attention's and the MLPs' intermediates, top-k inputs and intermediates
//                  of the routed tokens; and on the last stage float32 logits of kLogitRows tokens
//   workspace      split attention's partial sums, 32 parts a sequence, in float32; 64 MiB of the matrix library's
//   communication  TP: two buffers of T x H in 16 bits, and 32 MiB of the library's own a peer (at most 8 peers);
//                  EP: send and receive buffers of the T tokens' top-k copies, 16 bits
//   graphs         captured CUDA graphs: 0.3 to 1 GB, by experience; the upper end counts
//   reserve        what of --reserve the terms above leave free: together they fill it, or they overflow it
//
// Their sum is what the GPU must have. At load time `repack` bytes more are needed for a moment, before the cache is
// laid out.
#pragma once

#include <array>
#include <cstdint>

#include "nibble/hardware/device.h"
#include "nibble/ledger/layout.h"
#include "nibble/ledger/weight_groups.h"
#include "nibble/plan/request.h"
#include "nibble/plan/subject.h"

namespace nibble {

inline constexpr uint64_t kPrefillChunk = 8192;  // tokens
inline constexpr uint64_t kLogitRows = 1024;     // or as many as a step samples, if that is more
inline constexpr uint64_t kRepackChunk = uint64_t{64} << 20;

struct MemoryPlan {
  std::array<uint64_t, static_cast<size_t>(Role::kUnknown) + 1> by_role{};
  uint64_t weights = 0, kv = 0, activations = 0, workspace = 0, communication = 0, graphs_low = 0, graphs = 0,
           reserve = 0;
  uint64_t repack = 0;         // nibble's: one chunk
  uint64_t largest_stack = 0;  // what engines need that repack a layer's stack at once
  uint64_t capacity = 0;

  uint64_t total() const { return weights + kv + activations + workspace + communication + graphs + reserve; }
  bool fits() const { return total() <= capacity; }
};

MemoryPlan plan_memory(const Subject& subject, const WeightGroups& weights, const Layout& layout, const Device& device,
                       const PlanRequest& request);

// The most sequences of request.context tokens that fit beside everything else; 0 if none does.
uint64_t most_sequences(const Subject& subject, const WeightGroups& weights, const Layout& layout, const Device& device,
                        const PlanRequest& request);

}  // namespace nibble
