#include "nibble/kernels/cuda/fragment_pack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "nibble/base/error.h"
#include "nibble/kernels/cuda/fragment_words.h"
#include "nibble/kernels/matrix_for_test.h"
#include "nibble/numerics/codec/bf16.h"
#include "nibble/numerics/codec/e2m1.h"
#include "nibble/numerics/codec/int4.h"
#include "nibble/testing/thrown_error.h"

namespace nibble {
namespace {

constexpr FragmentRowOrder kOrders[] = {FragmentRowOrder::kPlain, FragmentRowOrder::kGateThenUp,
                                        FragmentRowOrder::kGateUpAlternate};

// All codes at all places: the pairs hold the codes' values, whatever the other seven are.
TEST(FragmentWords, pairs_are_the_values_at_every_place) {
  RngForTest rng{1};
  for (uint32_t trial = 0; trial < 2000; ++trial) {
    uint8_t codes[8];
    for (uint8_t& code : codes) code = static_cast<uint8_t>(rng.next_u32() & 15U);
    codes[trial % 8] = static_cast<uint8_t>(trial / 8 % 16);
    uint32_t floats[4], integers[4];
    e2m1_word_to_pairs(e2m1_codes_to_word(codes), floats);
    int4_word_to_pairs(int4_codes_to_word(codes), integers);
    for (uint32_t i = 0; i < 8; ++i) {
      const auto half = [i](const uint32_t* pairs) { return static_cast<uint16_t>(pairs[i / 2] >> (i % 2 * 16)); };
      const float value = e2m1_decode(codes[i]);
      ASSERT_EQ(bf16_decode(half(floats)) * 0x1p126F, value) << trial;
      ASSERT_EQ(std::signbit(bf16_decode(half(floats))), std::signbit(value)) << trial;
      ASSERT_EQ(bf16_decode(half(integers)) - 136, static_cast<float>(int4_decode(codes[i]))) << trial;
    }
  }
}

TEST(FragmentWords, every_bit_of_a_word_is_one_code_s) {
  for (uint32_t bit = 0; bit < 32; ++bit) {
    uint8_t codes[8];
    e2m1_word_to_codes(1U << bit, codes);
    EXPECT_EQ(e2m1_codes_to_word(codes), 1U << bit);
    int4_word_to_codes(1U << bit, codes);
    EXPECT_EQ(int4_codes_to_word(codes), 1U << bit);
  }
}

struct Packed {
  EncodedMatrix encoded;
  FragmentLayout layout;
  std::vector<std::byte> bytes;
  float factor = 0;

  Packed(const std::string& format, uint64_t n, uint64_t k, FragmentRowOrder order, RngForTest* rng)
      : encoded(random_matrix_for_test(parse_format(format), n, k, rng)),
        layout(choose_fragment_layout(encoded.format, n, k).layout.value()),
        bytes(layout.bytes(), std::byte{0xee}),
        factor(pack_fragments(layout, encoded.view(), order, bytes)) {}
};

const std::vector<std::string> kFormats = {"mxfp4", "nvfp4", "int4-g32", "int4-g64", "int4-g128"};

TEST(FragmentPack, unpacking_gives_back_every_bit) {
  RngForTest rng{2};
  for (const std::string& format : kFormats) {
    for (const uint64_t k : {384U, 96U, 2880U}) {
      if (!choose_fragment_layout(parse_format(format), 48, k).layout) continue;
      for (const FragmentRowOrder order : kOrders) {
        SCOPED_TRACE(format + ", K = " + std::to_string(k));
        const Packed packed(format, 48, k, order, &rng);
        EncodedMatrix again = EncodedMatrix::make(packed.encoded.format, 48, k);
        unpack_fragments(packed.layout, packed.bytes, order, packed.factor, &again);
        EXPECT_TRUE(std::ranges::equal(again.codes, packed.encoded.codes));
        EXPECT_EQ(again.scales, packed.encoded.scales);
      }
    }
  }
}

// The layout takes the bits that the format has, no more: no padding, and every byte belongs to a weight or a scale.
TEST(FragmentPack, size_is_that_of_the_stored_arrays) {
  for (const std::string& format : kFormats) {
    const Format parsed = parse_format(format);
    for (const uint64_t k : {384U, 640U, 2688U}) {
      const FragmentLayout layout = choose_fragment_layout(parsed, 320, k).layout.value();
      EXPECT_EQ(layout.bytes(), 320 * k / 2 + 320 * parsed.scale_cols(k) * parsed.scale_bytes());
      EXPECT_EQ(layout.row_tile_bytes() % 16, 0U);
    }
  }
}

// One code and its scale, found by the layout's words and not by fragment_place.
TEST(FragmentPack, codes_and_scales_lie_where_the_header_says) {
  RngForTest rng{3};
  const Packed packed("mxfp4", 32, 96, FragmentRowOrder::kPlain, &rng);
  // Row 16 + 9 = row tile 1, g = 1, upper; columns 40..47 = block 0, second 32, t = 1: word 3 of lane 5, byte 5 * 16 +
  // 3 * 4.
  uint32_t word = 0;
  const uint64_t row_tile = 48 * 16 + 3 * 16;
  std::memcpy(&word, packed.bytes.data() + row_tile + 92, 4);
  uint8_t codes[8];
  e2m1_word_to_codes(word, codes);
  for (uint64_t i = 0; i < 8; ++i) {
    const auto byte = static_cast<uint8_t>(packed.encoded.codes[25 * 48 + (40 + i) / 2]);
    EXPECT_EQ(codes[i], unpack_nibble(byte, i % 2 != 0));
  }
  // Its scale: behind 512 bytes of codes, g = 1, row g + 8, second group.
  const int stored = static_cast<int>(packed.bytes[row_tile + 512 + 4 + 3]);
  const int exponent = static_cast<int>(packed.encoded.scales[25 * 3 + 1]);
  EXPECT_EQ(std::ldexp(1.0F, stored - kLargestE8M0) * packed.factor, std::ldexp(1.0F, exponent - 127));
}

TEST(FragmentPack, gate_and_up_meet_in_one_lane) {
  EXPECT_EQ(source_row(FragmentRowOrder::kGateThenUp, 64, 17), 9U);
  EXPECT_EQ(source_row(FragmentRowOrder::kGateThenUp, 64, 25), 32U + 9U);
  EXPECT_EQ(source_row(FragmentRowOrder::kGateUpAlternate, 64, 17), 18U);
  EXPECT_EQ(source_row(FragmentRowOrder::kGateUpAlternate, 64, 25), 19U);
  const std::vector<float> bias = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  EXPECT_EQ(reorder_rows(FragmentRowOrder::kGateUpAlternate, bias)[9], 3.0F);
}

TEST(FragmentPack, what_is_not_exact_is_refused) {
  const auto obstacle = [](const char* format, uint64_t n, uint64_t k) {
    return choose_fragment_layout(parse_format(format), n, k).obstacle;
  };
  EXPECT_EQ(obstacle("mxfp4", 24, 64), "N = 24 is not a multiple of 16");
  EXPECT_EQ(obstacle("nvfp4", 16, 48), "K = 48 is not a multiple of 32");
  EXPECT_EQ(obstacle("int4-g32-asym", 16, 64), "zero points are not taken on the GPU");
  EXPECT_NE(obstacle("fp8-channel", 16, 64), "");
  RngForTest rng{4};
  EncodedMatrix wide = random_matrix_for_test(parse_format("mxfp4"), 16, 64, &rng);
  const FragmentLayout layout = choose_fragment_layout(wide.format, 16, 64).layout.value();
  std::vector<std::byte> bytes(layout.bytes());
  std::ranges::fill(wide.scales, std::byte{60});
  wide.scales[3] = std::byte{188};
  EXPECT_EQ(pack_fragments(layout, wide.view(), FragmentRowOrder::kPlain, bytes), 0x1p61F);
  wide.scales[3] = std::byte{189};
  EXPECT_THROW(pack_fragments(layout, wide.view(), FragmentRowOrder::kPlain, bytes), Error);
  wide.scales[3] = std::byte{255};
  EXPECT_THROW(pack_fragments(layout, wide.view(), FragmentRowOrder::kPlain, bytes), Error);
}

}  // namespace
}  // namespace nibble
