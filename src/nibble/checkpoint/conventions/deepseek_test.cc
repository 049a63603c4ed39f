#include <gmock/gmock.h>

#include "nibble/checkpoint/conventions/checkpoint_for_test.h"

namespace nibble {
namespace {

using testing::golden_bytes;
using testing::golden_floats;
using testing::golden_hex;
using testing::golden_micro;
using ::testing::HasSubstr;

constexpr const char* kSettings = R"({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]})";

TEST(Deepseek, C59_scale_inv_multiplies) {
  TestCheckpoint test;
  test.settings(kSettings)
      .add("f.weight", Dtype::kF8E4M3, {128, 128}, repeated(0x38, 128 * 128))
      .add("f.weight_scale_inv", Dtype::kF32, {1, 1}, bytes_of<float>({0.5F}))
      .add("b.weight", Dtype::kF8E4M3, {128, 128}, repeated(0x38, 128 * 128))
      .add("b.weight_scale_inv", Dtype::kBF16, {1, 1}, bytes_of<uint16_t>({0x3F00}))
      .add("e.weight", Dtype::kF8E4M3, {128, 128}, repeated(0x38, 128 * 128))
      .add("e.weight_scale_inv", Dtype::kF8E8M0, {1, 1}, repeated(126, 1))
      .add("u.weight", Dtype::kF8E4M3, {128, 128}, repeated(0x38, 128 * 128))
      .add("u.weight_scale_inv", Dtype::kU8, {1, 1}, repeated(126, 1));
  for (const char* name : {"f.weight", "b.weight", "e.weight", "u.weight"}) {
    EXPECT_EQ(test.values(name), std::vector<float>(128 * 128, 0.5F)) << name;
  }
  EXPECT_TRUE(test.findings().empty());
}

TEST(Deepseek, GoldenBlocksFloatAndPowersOfTwo) {
  const Json& golden = golden_micro()["fp8_block"];
  for (const char* kind : {"float", "ue8m0"}) {
    std::vector<std::byte> codes;
    std::vector<uint32_t> scales;
    std::vector<float> expected;
    for (const Json& row : golden[kind]["weight_e4m3"]) {
      for (const std::byte byte : golden_bytes(row)) codes.push_back(byte);
    }
    for (const Json& row : golden[kind]["weight_scale_inv_f32_bits"]) {
      for (const Json& bits : row) scales.push_back(golden_hex(bits));
    }
    for (const Json& row : golden[kind]["dequant_f32"]) {
      for (const float value : golden_floats(row)) expected.push_back(value);
    }
    TestCheckpoint test;
    test.settings(R"({"quant_method": "fp8", "weight_block_size": [2, 2]})")
        .add("m.weight", Dtype::kF8E4M3, {3, 5}, codes)
        .add("m.weight_scale_inv", Dtype::kF32, {2, 3}, bytes_of(scales));
    EXPECT_EQ(bits_of(test.values("m.weight")), bits_of(expected)) << kind;
    expect_cuts_equal_whole(test.checkpoint(), test.weight("m.weight"));
  }
}

// 640 fused rows: block row 2 (rows 256 to 383) covers the last gate rows and the first up rows.
TEST(Deepseek, C45b_one_scale_row_covers_gate_and_up) {
  TestCheckpoint test;
  test.settings(kSettings)
      .add("x.gate_up_proj", Dtype::kF8E4M3, {2, 640, 128}, repeated(0x38, 2 * 640 * 128))
      .add("x.gate_up_proj_scale_inv", Dtype::kF32, {2, 5, 1}, bytes_of<float>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  const Weight& weight = test.weight("x.gate_up_proj");
  EXPECT_EQ(weight.format, parse_format("fp8-block"));
  for (uint64_t slice = 0; slice < 2; ++slice) {
    const auto gate = read_rows_f32(test.checkpoint(), weight, slice, 0, 320);
    const auto up = read_rows_f32(test.checkpoint(), weight, slice, 320, 320);
    const float base = static_cast<float>(slice * 5);
    EXPECT_EQ(gate[255 * 128], base + 2);
    EXPECT_EQ(gate[256 * 128], base + 3);
    EXPECT_EQ(gate[319 * 128 + 127], base + 3);
    EXPECT_EQ(up[0], base + 3);
    EXPECT_EQ(up[63 * 128], base + 3);
    EXPECT_EQ(up[64 * 128], base + 4);
    EXPECT_EQ(up[319 * 128], base + 5);
  }
  expect_cuts_equal_whole(test.checkpoint(), weight);
}

TEST(Deepseek, PartialBlocksIndexByRow) {
  TestCheckpoint test;
  std::vector<float> scales(5 * 2);
  for (size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<float>(i + 1);
  test.settings(kSettings)
      .add("m.weight", Dtype::kF8E4M3, {576, 200}, repeated(0x38, 576 * 200))
      .add("m.weight_scale_inv", Dtype::kF32, {5, 2}, bytes_of(scales));
  const auto values = test.values("m.weight");
  for (uint64_t r = 0; r < 576; ++r) {
    for (uint64_t c = 0; c < 200; ++c) {
      const uint64_t block = r / 128 * 2 + c / 128;
      ASSERT_EQ(values[r * 200 + c], static_cast<float>(block + 1)) << r << " " << c;
    }
  }
  expect_cuts_equal_whole(test.checkpoint(), test.weight("m.weight"));
}

// MiniMax-M3: the same name, U8 powers of two for 32 columns.
TEST(Deepseek, ByteScalesOfThirtyTwoColumns) {
  TestCheckpoint test;
  test.settings(R"({"quant_method": "mxfp8", "weight_block_size": [1, 32]})")
      .add("m.weight", Dtype::kF8E4M3, {2, 64}, repeated(0x38, 128))
      .add("m.weight_scale_inv", Dtype::kU8, {2, 2}, bytes_of<uint8_t>({127, 128, 126, 0}));
  EXPECT_EQ(test.weight("m.weight").format, parse_format("mxfp8"));
  const auto values = test.values("m.weight");
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[32], 2);
  EXPECT_EQ(values[64], 0.5);
  EXPECT_EQ(bits_of(values)[96], 0x00400000U);  // 2^-127, a subnormal
}

TEST(Deepseek, AWeightWithoutItsScaleIsRefused) {
  TestCheckpoint test;
  test.settings(kSettings).add("m.weight", Dtype::kF8E4M3, {128, 128});
  EXPECT_THAT(test.only_finding("unmatched-part"), HasSubstr("tensor m.weight"));
}

TEST(Deepseek, AScaleWithoutItsWeightIsRefused) {
  TestCheckpoint test;
  test.settings(kSettings)
      .add("m.weight", Dtype::kF8E4M3, {128, 128})
      .add("m.weight_scale_inv", Dtype::kF32, {1, 1})
      .add("n.weight_scale_inv", Dtype::kF32, {1, 1})
      .add("o.weight", Dtype::kBF16, {128, 128})
      .add("o.weight_scale_inv", Dtype::kF32, {1, 1});
  ASSERT_EQ(test.findings().size(), 2U);
  EXPECT_EQ(test.findings()[0].tensor, "n.weight_scale_inv");
  EXPECT_THAT(test.findings()[0].message, HasSubstr("without its weight"));
  EXPECT_EQ(test.findings()[1].tensor, "o.weight_scale_inv");
  EXPECT_THAT(test.findings()[1].message, HasSubstr("not quantized"));
}

}  // namespace
}  // namespace nibble
