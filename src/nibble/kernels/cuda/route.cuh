// The router and the work map of few tokens, by one block for itself: every block of the grid computes the same, which
// costs less than telling the others.
//
// No rounds of "take the largest": each would wait for a reduction over a warp, and eight of them cost 3 us. Ranks are
// counted instead, twice: of each logit among 32, where the first topk stay, and of those among all that stayed. Both
// counts are independent comparisons with broadcast reads. Equal logits: the lower id first.
#pragma once

#include "nibble/kernels/cuda/few_tokens_args.cuh"

namespace nibble {

inline constexpr uint32_t kMaxAssignments = kMoeTokensAtMost * kMoeTopKAtMost;

// In shared memory. Assignment a is the (a % topk)-th choice of token a / topk.
struct WorkMap {
  int32_t expert[kMaxAssignments];      // of assignment a, -1: none
  float weight[kMaxAssignments];        // of assignment a
  int32_t place[kMaxAssignments];       // of assignment a in the order of experts, -1: none
  uint32_t token[kMaxAssignments];      // at a place
  uint32_t slot[kMaxAssignments];       // at a place: of its expert
  uint32_t sorted[kMaxAssignments];     // at a place: twice the expert, plus 1 at its first
  uint32_t active[kMaxAssignments];     // the expert of slot s
  uint32_t first[kMaxAssignments + 1];  // place of slot s's first assignment
  uint32_t slots;
};

// Integers in the order of floats.
__device__ __forceinline__ uint32_t order_of(float value) {
  const uint32_t bits = __float_as_uint(value);
  return bits ^ ((bits & 0x80000000u) != 0 ? 0xFFFFFFFFu : 0x80000000u);
}

// What the router needs of shared memory between its steps.
struct RouteMemory {
  uint32_t keys[kMoeTokensAtMost * kMoeRoutedAtMost];                            // (T, routed)
  float values[kMoeTokensAtMost * kMoeRoutedAtMost];                             // what the weight is made of
  alignas(16) uint32_t chunk[32][32];                                            // of a warp
  uint32_t candidate[kMoeTokensAtMost][kMoeRoutedAtMost / 32 * kMoeTopKAtMost];  // keys
  uint32_t id[kMoeTokensAtMost][kMoeRoutedAtMost / 32 * kMoeTopKAtMost];
  float value[kMoeTokensAtMost][kMoeRoutedAtMost / 32 * kMoeTopKAtMost];
};

// Logits of all tokens as keys and as what weights are made of, by all threads: one wait for memory.
__device__ __forceinline__ void read_logits(const FewTokensArgs& args, RouteMemory* memory) {
  const bool sigmoid = args.router == MoeRouterKind::kSigmoidBias;
#pragma unroll 4
  for (uint32_t i = threadIdx.x; i < args.tokens * args.routed; i += blockDim.x) {
    float value = __ldg(args.logits + i), ranked = value;
    if (sigmoid) {
      value = __fdividef(1.0f, 1 + __expf(-value));
      ranked = value + __ldg(args.correction + i % args.routed);
    }
    memory->keys[i] = max(order_of(ranked), 1u);
    memory->values[i] = value;
  }
}

// The first topk of 32 experts of a token, by a warp.
__device__ __forceinline__ void keep_of_chunk(const FewTokensArgs& args, uint32_t token, uint32_t chunk,
                                              RouteMemory* memory) {
  const uint32_t lane = threadIdx.x % 32, expert = chunk * 32 + lane;
  const bool there = expert < args.routed;
  const uint32_t at = token * args.routed + expert;
  const uint32_t key = there ? memory->keys[at] : 0;
  uint32_t* keys = memory->chunk[threadIdx.x / 32];
  keys[lane] = key;
  __syncwarp();
  // Of lanes before this one, equal keys are above it too: they are compared with the next smaller key.
  const uint32_t smaller = key == 0 ? 0 : key - 1;
  uint32_t rank = key == 0 ? 32 : 0;
#pragma unroll
  for (uint32_t i = 0; i < 32; i += 4) {
    const uint4 four = *reinterpret_cast<const uint4*>(keys + i);
    rank += static_cast<uint32_t>(four.x > (i < lane ? smaller : key));
    rank += static_cast<uint32_t>(four.y > (i + 1 < lane ? smaller : key));
    rank += static_cast<uint32_t>(four.z > (i + 2 < lane ? smaller : key));
    rank += static_cast<uint32_t>(four.w > (i + 3 < lane ? smaller : key));
  }
  // A chunk may hold fewer experts than are chosen: what is not written stays below every key.
  if (lane < args.topk) memory->candidate[token][chunk * args.topk + lane] = 0;
  __syncwarp();
  if (rank < args.topk) {
    memory->candidate[token][chunk * args.topk + rank] = key;
    memory->id[token][chunk * args.topk + rank] = expert;
    memory->value[token][chunk * args.topk + rank] = there ? memory->values[at] : 0;
  }
  __syncwarp();
}

// The first topk of all that were kept, and their weights, by a warp.
__device__ __forceinline__ void choose(const FewTokensArgs& args, uint32_t token, RouteMemory* memory, WorkMap* map) {
  const uint32_t lane = threadIdx.x % 32, count = (args.routed + 31) / 32 * args.topk;
  const uint32_t* keys = memory->candidate[token];
#pragma unroll 1
  for (uint32_t i = lane; i < count; i += 32) {
    const uint32_t key = keys[i];
    if (key == 0) continue;
    uint32_t rank = 0;
    // Without branches: a short-circuited condition would cost ten times as much.
#pragma unroll 4
    for (uint32_t j = 0; j < count; ++j) {
      rank +=
          static_cast<uint32_t>(keys[j] > key) + (static_cast<uint32_t>(keys[j] == key) & static_cast<uint32_t>(j < i));
    }
    if (rank >= args.topk) continue;
    const int32_t id = static_cast<int32_t>(memory->id[token][i]) - static_cast<int32_t>(args.first_expert);
    map->expert[token * args.topk + rank] = id >= 0 && id < static_cast<int32_t>(args.experts) ? id : -1;
    map->weight[token * args.topk + rank] = memory->value[token][i];
  }
  __syncwarp();
  const bool sigmoid = args.router == MoeRouterKind::kSigmoidBias;
  float* weights = map->weight + token * args.topk;
  const float chosen = lane < args.topk ? weights[lane] : 0.0f, largest = weights[0];
  const float share = lane >= args.topk ? 0.0f : sigmoid ? chosen : __expf(chosen - largest);
  float sum = share;
#pragma unroll
  for (int step = 1; step < static_cast<int>(kMoeTopKAtMost); step *= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, step);
  __syncwarp();
  if (lane < args.topk) {
    weights[lane] = sigmoid ? __fdividef(share, sum + 1e-20f) * args.scaling : __fdividef(share, sum);
  }
}

// Ids and weights that the caller gave. An expert given twice to a token counts once, with the sum of its weights.
__device__ __forceinline__ void take_given(const FewTokensArgs& args, uint32_t token, WorkMap* map) {
  const uint32_t lane = threadIdx.x % 32, at = token * args.topk + lane;
  if (lane >= args.topk) return;
  const int32_t id = __ldg(args.ids + at);
  float sum = 0;
  bool first = true;
#pragma unroll 1
  for (uint32_t k = 0; k < args.topk; ++k) {
    if (__ldg(args.ids + token * args.topk + k) != id) continue;
    if (k < lane) first = false;
    sum += __ldg(args.given_weights + token * args.topk + k);
  }
  map->expert[at] = first && id >= 0 && id < static_cast<int32_t>(args.experts) ? id : -1;
  map->weight[at] = sum;
}

// After the routing and a barrier, with at least kMaxAssignments threads: fills the rest of the map. Ends with a
// barrier.
__device__ __forceinline__ void order_assignments(const FewTokensArgs& args, WorkMap* map) {
  const uint32_t count = args.tokens * args.topk, a = threadIdx.x;
  const int32_t expert = a < count ? map->expert[a] : -1;
  uint32_t place = 0, same = 0;
  if (expert >= 0) {
#pragma unroll 4
    for (uint32_t b = 0; b < count; ++b) {
      // -1 is the largest unsigned number.
      const uint32_t other = static_cast<uint32_t>(map->expert[b]), mine = static_cast<uint32_t>(expert);
      const uint32_t before = static_cast<uint32_t>(other == mine) & static_cast<uint32_t>(b < a);
      same += before;
      place += before + static_cast<uint32_t>(other < mine);
    }
    map->token[place] = a / args.topk;
    map->sorted[place] = static_cast<uint32_t>(expert) * 2 + (same == 0 ? 1 : 0);
  }
  if (a < count) map->place[a] = expert < 0 ? -1 : static_cast<int32_t>(place);
  const uint32_t valid = static_cast<uint32_t>(__syncthreads_count(expert >= 0 ? 1 : 0));
  if (threadIdx.x < 32) {
    uint32_t slots = 0;
    for (uint32_t base = 0; base < valid; base += 32) {
      const uint32_t at = base + threadIdx.x;
      const uint32_t entry = at < valid ? map->sorted[at] : 0;
      const uint32_t heads = __ballot_sync(0xFFFFFFFFu, entry & 1u);
      const uint32_t slot = slots + __popc(heads & ((1u << threadIdx.x) - 1));
      if (at < valid) map->slot[at] = slot - ((entry & 1u) != 0 ? 0 : 1);
      if ((entry & 1u) != 0) {
        map->active[slot] = entry / 2;
        map->first[slot] = at;
      }
      slots += __popc(heads);
    }
    if (threadIdx.x == 0) {
      map->slots = slots;
      map->first[slots] = valid;
    }
  }
  __syncthreads();
}

}  // namespace nibble
