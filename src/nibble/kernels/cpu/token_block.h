// Activations of some tokens side by side, in the order in which a kernel reads them, so that it walks one pointer
// where it would need one or three for each token. Copied once for a panel's row groups, which all read them again.
//
// A block has L lanes, a token each; lanes beyond the block's tokens repeat the last one. For each run of columns:
//
//   INT8      (columns / 4, L) words of four codes;  (L) sums to start from;  (L) scales;  with minima (L) products of
//             scale and sum. The sums are Int8Activations::corrections, with zero points its sums.
//   BF16      (columns / 2, L) words of two values
//   float32   (columns, L) values times a power of two;  with minima (L) sums of the run
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "nibble/kernels/panel.h"

namespace nibble {

struct TokenBlock {
  uint64_t first = 0, count = 0;  // tokens of the task
  uint64_t lanes = 0;             // 1, 2 or a multiple of 4
  const std::byte* data = nullptr;
};

// 1, 2, or the next multiple of 4, at most `widest`, which is one.
uint64_t block_lanes(uint64_t tokens, uint64_t widest);

// Bytes of a run and lane.
uint64_t int8_run_bytes(const WeightLayout& layout);
uint64_t f32_run_bytes(const WeightLayout& layout);
uint64_t bf16_run_bytes(const WeightLayout& layout);

// `out`: lanes · runs · bytes of a run, aligned to 64.
void interleave_int8(const PanelTask& task, const TokenBlock& block, std::byte* out);
void interleave_bf16(const PanelTask& task, const TokenBlock& block, std::byte* out);
void interleave_f32(const PanelTask& task, const TokenBlock& block, float factor, std::byte* out);

// Memory of this thread that the blocks of a panel lie in, `bytes` of any content; valid until the next call.
std::byte* token_block_memory(uint64_t bytes);

struct BlockShape {
  uint64_t widest = 0;     // lanes of a block at most; a multiple of 4
  uint64_t run_bytes = 0;  // of a lane
  bool filled = false;     // every block has that many lanes
  bool one_copied = true;  // whether one token alone is copied too, or read where it lies
};

// Cuts the task's tokens into blocks and calls multiply(blocks) for as many at a time as stay in the second-level
// cache: a kernel walks the task's row groups and multiplies each by all of these blocks, so that weights come from
// memory once and activations are copied once for all row groups.
//
//   interleave(task, block, std::byte* out)      multiply(std::span<const TokenBlock>)
template <class Interleave, class Multiply>
void for_token_blocks(const PanelTask& task, const BlockShape& shape, const Interleave& interleave,
                      const Multiply& multiply) {
  constexpr uint64_t kCacheBytes = uint64_t{768} << 10, kMostBlocks = 64;
  const WeightLayout& layout = task.weights->layout;
  const uint64_t widest = shape.widest, lane_bytes = layout.padded_k() / layout.run_cols() * shape.run_bytes;
  const uint64_t block_bytes = (lane_bytes * widest + 63) / 64 * 64;
  const uint64_t held = std::clamp<uint64_t>(kCacheBytes / std::max<uint64_t>(1, block_bytes), 1, kMostBlocks);
  TokenBlock blocks[kMostBlocks];
  for (uint64_t begin = 0; begin < task.tokens; begin += held * widest) {
    const uint64_t end = std::min(task.tokens, begin + held * widest);
    std::byte* memory = token_block_memory(held * block_bytes);
    uint64_t count = 0;
    for (uint64_t first = begin; first < end; first += widest) {
      TokenBlock& block = blocks[count++];
      block.first = first;
      block.count = std::min(widest, end - first);
      block.lanes = shape.filled ? widest : block_lanes(block.count, widest);
      block.data = memory;
      if (block.lanes > 1 || shape.one_copied) interleave(task, block, memory);
      memory += block_bytes;
    }
    multiply(std::span<const TokenBlock>(blocks, count));
  }
}

// Calls one(group) for all row groups of a task, or pair(group, other) for two side by side. The others are the task's
// second half, so that both walk on without a gap through memory that is being asked for ahead.
template <class Pair, class One>
void for_pairs_of_groups(const PanelTask& task, const Pair& pair, const One& one) {
  const uint64_t half = (task.group_end - task.group_begin) / 2;
  for (uint64_t i = 0; i < half; ++i) pair(task.group_begin + i, task.group_begin + half + i);
  for (uint64_t group = task.group_begin + 2 * half; group < task.group_end; ++group) one(group);
}

}  // namespace nibble
