#include "nibble/kernels/cpu/token_block.h"

#include <cstring>

#include "nibble/base/check.h"
#include "nibble/kernels/activations.h"
#include "nibble/kernels/cpu/interleave_words.h"

namespace nibble {
namespace {

constexpr uint64_t kWord = kWordBytes;
constexpr uint64_t kMostLanes = 16;

// `words` words from where each lane's token is, which moves on.
void place(const std::byte** from, uint64_t words, uint64_t lanes, std::byte* out) {
  interleave_words(from, words, lanes, out);
  for (uint64_t lane = 0; lane < lanes; ++lane) from[lane] += words * kWord;
}

// Where each lane's row of an array begins that has `row_bytes` a token.
void find_rows(const PanelTask& task, const TokenBlock& block, const void* array, uint64_t row_bytes,
               const std::byte** rows) {
  for (uint64_t lane = 0; lane < block.lanes; ++lane) {
    const uint64_t row = task.row_of(block.first + std::min(lane, block.count - 1));
    rows[lane] = static_cast<const std::byte*>(array) + row * row_bytes;
  }
}

}  // namespace

uint64_t block_lanes(uint64_t tokens, uint64_t widest) {
  return tokens <= 2 ? tokens : std::min(widest, (tokens + 3) / 4 * 4);
}

uint64_t int8_run_bytes(const WeightLayout& layout) {
  return layout.run_cols() + kWord * (layout.zero == ZeroPoint::kMin ? 3 : 2);
}

uint64_t f32_run_bytes(const WeightLayout& layout) {
  return kWord * (layout.run_cols() + (layout.zero == ZeroPoint::kMin ? 1 : 0));
}

uint64_t bf16_run_bytes(const WeightLayout& layout) { return 2 * layout.run_cols(); }

std::byte* token_block_memory(uint64_t bytes) {
  thread_local ActivationBuffer buffer;
  return buffer.get<std::byte>(bytes);
}

void interleave_int8(const PanelTask& task, const TokenBlock& block, std::byte* out) {
  const WeightLayout& layout = task.weights->layout;
  const Int8Activations& x = task.int8;
  const uint64_t lanes = block.lanes, words = layout.run_cols() / kWord;
  const std::byte *codes[kMostLanes], *starts[kMostLanes], *scales[kMostLanes];
  NIBBLE_CHECK(lanes <= kMostLanes);
  find_rows(task, block, x.codes, x.padded_k, codes);
  find_rows(task, block, layout.zero == ZeroPoint::kCode ? x.sums : x.corrections, x.groups * kWord, starts);
  find_rows(task, block, x.scales, x.groups * kWord, scales);
  for (uint64_t run = 0; run < x.groups; ++run) {
    place(codes, words, lanes, out);
    out += words * lanes * kWord;
    place(starts, 1, lanes, out);
    out += lanes * kWord;
    place(scales, 1, lanes, out);
    out += lanes * kWord;
    if (layout.zero != ZeroPoint::kMin) continue;
    for (uint64_t lane = 0; lane < lanes; ++lane, out += kWord) {
      const uint64_t at = task.row_of(block.first + std::min(lane, block.count - 1)) * x.groups + run;
      const float product = x.scales[at] * static_cast<float>(x.sums[at]);
      std::memcpy(out, &product, kWord);
    }
  }
}

void interleave_bf16(const PanelTask& task, const TokenBlock& block, std::byte* out) {
  const BF16Activations& x = task.bf16;
  const std::byte* values[kMostLanes];
  NIBBLE_CHECK(block.lanes <= kMostLanes);
  find_rows(task, block, x.values, x.padded_k * sizeof(uint16_t), values);
  place(values, x.padded_k / 2, block.lanes, out);
}

void interleave_f32(const PanelTask& task, const TokenBlock& block, float factor, std::byte* out) {
  const WeightLayout& layout = task.weights->layout;
  const F32Activations& x = task.f32;
  const uint64_t lanes = block.lanes, cols = layout.run_cols(), runs = layout.padded_k() / cols;
  const std::byte *values[kMostLanes], *sums[kMostLanes];
  NIBBLE_CHECK(lanes <= kMostLanes);
  find_rows(task, block, x.values, x.stride * sizeof(float), values);
  if (layout.zero == ZeroPoint::kMin) find_rows(task, block, x.run_sums, x.runs * sizeof(float), sums);
  for (uint64_t run = 0; run < runs; ++run) {
    place(values, cols, lanes, out);
    auto* scaled = reinterpret_cast<float*>(out);
    for (uint64_t i = 0; factor != 1 && i < cols * lanes; ++i) scaled[i] *= factor;
    out += cols * lanes * kWord;
    if (layout.zero != ZeroPoint::kMin) continue;
    place(sums, 1, lanes, out);
    out += lanes * kWord;
  }
}

}  // namespace nibble
