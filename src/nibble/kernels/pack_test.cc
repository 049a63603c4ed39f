#include "nibble/kernels/pack.h"

#include <gtest/gtest.h>

#include "nibble/base/error.h"
#include "nibble/kernels/cpu/tile_view.h"
#include "nibble/kernels/matrix_for_test.h"
#include "nibble/testing/thrown_error.h"

namespace nibble {
namespace {

// Every element of every layout is found where the layout says, with the value that decode() gives.
TEST(Pack, C87_tiles_hold_what_decode_gives) {
  RngForTest rng{1};
  for (const std::string& name : layout_formats_for_test()) {
    const uint64_t k = name == "int4-g48" ? 144 : 256;
    for (const uint64_t n : std::vector<uint64_t>{1, 16, 19, 40}) {
      SCOPED_TRACE(name + ", N = " + std::to_string(n));
      const PackedForTest packed(name, n, k, &rng);
      std::vector<float> values(n * k);
      decode(packed.encoded, values);
      for (uint64_t row = 0; row < n; ++row) {
        for (uint64_t col = 0; col < k; ++col) {
          const TileView tile(packed.matrix, row / kRowGroup, col / packed.layout.tile_cols);
          const uint64_t lane = row % kRowGroup, of_tile = col % packed.layout.tile_cols;
          ASSERT_EQ(tile.value(lane, of_tile) * tile.scale(lane) + tile.min(lane), values[row * k + col])
              << row << ", " << col;
        }
      }
    }
  }
}

TEST(Pack, columns_beyond_k_and_rows_beyond_n_are_zero) {
  RngForTest rng{2};
  const PackedForTest packed("fp8-block", 20, 200, &rng);
  EXPECT_EQ(packed.layout.padded_k(), 224U);
  const TileView last(packed.matrix, 1, 6);
  EXPECT_EQ(last.code(0, 8), 0U);  // column 200
  EXPECT_NE(last.code(0, 7) | last.code(1, 7) | last.code(2, 7), 0U);
  EXPECT_EQ(last.code(4, 0), 0U);  // row 20
}

TEST(Pack, pieces_give_the_bytes_of_the_whole) {
  RngForTest rng{3};
  for (const std::string name : {"mxfp4", "int4-g32-asym", "bf16", "fp8-channel"}) {
    const PackedForTest packed(name, 45, 96, &rng);
    const Format& format = packed.encoded.format;
    std::vector<std::byte> again(packed.layout.bytes() + 64, std::byte{0x11});
    auto* data = again.data() + (64 - reinterpret_cast<uintptr_t>(again.data()) % 64) % 64;
    for (uint64_t begin = 0; begin < 45; begin += 16) {
      EncodedView part = packed.encoded.view();
      part.rows = std::min<uint64_t>(16, 45 - begin);
      part.codes += begin * format.code_row_bytes(96);
      if (!format.is_dense()) part.scales += begin * format.scale_cols(96) * format.scale_bytes();
      if (part.zeros != nullptr) part.zeros += begin * format.scale_cols(96);
      pack_rows(packed.layout, part, begin, data);
    }
    const uint64_t tiles = packed.layout.row_groups() * packed.layout.row_group_bytes();
    EXPECT_EQ(std::memcmp(data, packed.matrix.data, tiles), 0) << name;
  }
}

TEST(Pack, scales_must_be_finite) {
  RngForTest rng{4};
  EncodedMatrix matrix = random_matrix_for_test(parse_format("mxfp4"), 16, 64, &rng);
  matrix.scales[5] = std::byte{255};
  const WeightLayout layout = choose_layout(matrix.format, 16, 64).layout.value();
  std::vector<std::byte> memory(layout.bytes());
  EXPECT_THROW(pack_rows(layout, matrix.view(), 0, memory.data()), Error);
}

TEST(WeightLayout, bytes_of_a_tile) {
  const auto layout = [](const char* format, uint64_t n, uint64_t k) {
    return choose_layout(parse_format(format), n, k).layout.value();
  };
  EXPECT_EQ(layout("mxfp4", 2880, 2880).tile_bytes(), 272U);  // 16 scales, 256 codes
  EXPECT_EQ(layout("mxfp4", 2880, 2880).bytes(), 180U * 90 * 272);
  EXPECT_EQ(layout("nvfp4", 16, 64).tile_bytes(), 144U);
  EXPECT_EQ(layout("int4-g32", 16, 64).tile_bytes(), 288U);
  EXPECT_EQ(layout("int4-g128-asym", 16, 128).tile_bytes(), 32U + 16 + 1024);
  EXPECT_EQ(layout("bf16", 16, 33).padded_k(), 64U);
  EXPECT_EQ(layout("fp8-block", 32, 300).apart_scales(), 3U);
  EXPECT_EQ(layout("fp8-channel", 32, 300).apart_scales(), 16U);
}

TEST(WeightLayout, what_has_none_says_why) {
  const auto obstacle = [](const char* format, uint64_t k) {
    return choose_layout(parse_format(format), 64, k).obstacle;
  };
  EXPECT_EQ(obstacle("int4-g24", 48), "groups of 24 columns: kernels take multiples of 16");
  EXPECT_EQ(obstacle("f16", 64), "no kernel multiplies f16 elements");
  EXPECT_EQ(obstacle("int8-g32-asym", 64), "no kernel takes 8-bit zero points");
}

}  // namespace
}  // namespace nibble
