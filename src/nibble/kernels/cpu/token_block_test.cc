#include "nibble/kernels/cpu/token_block.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "nibble/kernels/matrix_for_test.h"

namespace nibble {
namespace {

TEST(TokenBlock, lanes) {
  for (const auto& [tokens, lanes] : std::vector<std::pair<uint64_t, uint64_t>>{
           {1, 1}, {2, 2}, {3, 4}, {4, 4}, {5, 8}, {8, 8}, {9, 12}, {11, 12}, {12, 12}}) {
    EXPECT_EQ(block_lanes(tokens, 12), lanes) << tokens;
  }
  EXPECT_EQ(block_lanes(8, 8), 8U);
}

// A task of 27 tokens whose rows lie backwards among the activations.
struct Example {
  RngForTest rng{5};
  PackedForTest packed;
  std::vector<float> x;
  std::vector<uint32_t> rows;
  Int8Quantizer quantizer;
  F32Padder padder;
  PanelTask task;

  explicit Example(const char* format) : packed(format, 48, 96, &rng), x(27 * 96), rows(27) {
    for (float& value : x) value = rng.normal();
    for (uint32_t t = 0; t < 27; ++t) rows[t] = 26 - t;
    task.weights = &packed.matrix;
    task.group_end = 3;
    task.tokens = 27;
    task.rows = rows.data();
    if (packed.layout.has_integers()) task.int8 = quantizer.run(packed.layout, x.data(), 27, 96);
    task.f32 = padder.run(packed.layout, x.data(), 27, 96);
  }
};

// Every token is in one block.
TEST(TokenBlock, blocks_cover_the_task) {
  Example example("q4_1");
  std::vector<int> visits(27, 0);
  for_token_blocks(example.task, {12, int8_run_bytes(example.packed.layout)}, interleave_int8,
                   [&](std::span<const TokenBlock> blocks) {
                     for (const TokenBlock& block : blocks) {
                       EXPECT_EQ(block.lanes, block.first == 24 ? 4U : 12U);
                       EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data) % 64, 0U);
                       for (uint64_t t = 0; t < block.count; ++t) ++visits[block.first + t];
                     }
                   });
  EXPECT_EQ(visits, std::vector<int>(27, 1));
}

TEST(TokenBlock, pairs_cover_all_row_groups) {
  for (uint64_t end = 3; end < 9; ++end) {
    PanelTask task;
    task.group_begin = 3;
    task.group_end = end;
    std::vector<uint64_t> groups;
    for_pairs_of_groups(
        task,
        [&](uint64_t group, uint64_t other) {
          EXPECT_EQ(other - group, (end - 3) / 2);
          groups.insert(groups.end(), {group, other});
        },
        [&](uint64_t group) { groups.push_back(group); });
    std::sort(groups.begin(), groups.end());
    std::vector<uint64_t> wanted;
    for (uint64_t group = 3; group < end; ++group) wanted.push_back(group);
    EXPECT_EQ(groups, wanted);
  }
}

TEST(TokenBlock, words_of_int8_lie_side_by_side) {
  for (const char* format : {"int4-g32", "int4-g32-asym", "q4_1", "int4-g16"}) {
    SCOPED_TRACE(format);
    Example example(format);
    const WeightLayout& layout = example.packed.layout;
    const Int8Activations& x = example.task.int8;
    const uint64_t run = layout.run_cols(), lanes = 4;
    const TokenBlock block{20, 3, lanes, nullptr};
    std::vector<std::byte> out(lanes * x.groups * int8_run_bytes(layout));
    interleave_int8(example.task, block, out.data());
    const std::byte* at = out.data();
    const auto word = [&] {
      int32_t value = 0;
      std::memcpy(&value, at, 4);
      at += 4;
      return value;
    };
    const auto row_of = [&](uint64_t lane) { return 26 - (20 + std::min<uint64_t>(lane, 2)); };
    for (uint64_t r = 0; r < x.groups; ++r) {
      for (uint64_t w = 0; w < run / 4; ++w) {
        for (uint64_t lane = 0; lane < lanes; ++lane) {
          int32_t wanted = 0;
          std::memcpy(&wanted, x.codes + row_of(lane) * x.padded_k + r * run + 4 * w, 4);
          ASSERT_EQ(word(), wanted) << r << ", " << w << ", " << lane;
        }
      }
      const int32_t* starts = layout.zero == ZeroPoint::kCode ? x.sums : x.corrections;
      for (uint64_t lane = 0; lane < lanes; ++lane) ASSERT_EQ(word(), starts[row_of(lane) * x.groups + r]);
      for (uint64_t lane = 0; lane < lanes; ++lane) {
        ASSERT_EQ(bits_float(static_cast<uint32_t>(word())), x.scales[row_of(lane) * x.groups + r]);
      }
      for (uint64_t lane = 0; layout.zero == ZeroPoint::kMin && lane < lanes; ++lane) {
        const uint64_t index = row_of(lane) * x.groups + r;
        ASSERT_EQ(bits_float(static_cast<uint32_t>(word())), x.scales[index] * static_cast<float>(x.sums[index]));
      }
    }
    EXPECT_EQ(at, out.data() + out.size());
  }
}

void expect_floats_side_by_side(const Example& example, uint64_t lanes) {
  const WeightLayout& layout = example.packed.layout;
  const F32Activations& x = example.task.f32;
  const TokenBlock block{3, lanes, lanes, nullptr};
  std::vector<float> out(lanes * x.runs * f32_run_bytes(layout) / sizeof(float));
  interleave_f32(example.task, block, 0.5F, reinterpret_cast<std::byte*>(out.data()));
  const float* at = out.data();
  for (uint64_t run = 0; run < x.runs; ++run) {
    for (uint64_t i = 0; i < layout.run_cols() * lanes; ++i) {
      const uint64_t column = run * layout.run_cols() + i / lanes;
      ASSERT_EQ(*at++, x.row(26 - (3 + i % lanes))[column] / 2) << column << ", lane " << i % lanes;
    }
    for (uint64_t lane = 0; layout.zero == ZeroPoint::kMin && lane < lanes; ++lane) {
      ASSERT_EQ(*at++, x.run_sums[(26 - (3 + lane)) * x.runs + run]);
    }
  }
}

TEST(TokenBlock, floats_lie_side_by_side) {
  for (const char* format : {"bf16", "q4_1"}) {
    const Example example(format);
    for (const uint64_t lanes : std::vector<uint64_t>{1, 2, 8}) expect_floats_side_by_side(example, lanes);
  }
}

}  // namespace
}  // namespace nibble
