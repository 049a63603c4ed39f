#include <gmock/gmock.h>

#include "nibble/checkpoint/conventions/checkpoint_for_test.h"

namespace nibble {
namespace {

using ::testing::HasSubstr;

TEST(DeepseekV4, C77_signed_bytes_of_four_bit_floats) {
  TestCheckpoint test;
  std::vector<std::byte> codes = repeated(0x22, 4 * 32);  // all 1
  codes[0] = std::byte{0xF7};                             // 6, -6: a set sign bit is not extended
  test.settings(R"({"quant_method": "fp8", "weight_block_size": [128, 128]})")
      .add("w1.weight", Dtype::kI8, {4, 32}, codes)
      .add("w1.scale", Dtype::kF8E8M0, {4, 2}, bytes_of<uint8_t>({127, 128, 126, 127, 127, 127, 120, 134}));
  const Weight& weight = test.weight("w1.weight");
  EXPECT_EQ(weight.elements(), 256u);
  EXPECT_EQ(weight.format, parse_format("mxfp4"));
  const auto values = test.values("w1.weight");
  EXPECT_EQ(values[0], 6);
  EXPECT_EQ(values[1], -6);
  EXPECT_EQ(values[2], 1);
  EXPECT_EQ(values[32], 2);
  EXPECT_EQ(values[64], 0.5);
  EXPECT_EQ(values[3 * 64], 0.0078125);
  EXPECT_EQ(values[3 * 64 + 32], 128);
  expect_cuts_equal_whole(test.checkpoint(), weight);
  EXPECT_TRUE(test.findings().empty());
}

TEST(DeepseekV4, BlocksOf128AndOf32) {
  TestCheckpoint test;
  std::vector<uint8_t> fine(8 * 4);
  for (size_t i = 0; i < fine.size(); ++i) fine[i] = static_cast<uint8_t>(110 + i);
  test.settings(R"({"quant_method": "fp8"})")
      .add("a.weight", Dtype::kF8E4M3, {256, 128}, repeated(0x38, 256 * 128))
      .add("a.scale", Dtype::kF8E8M0, {2, 1}, bytes_of<uint8_t>({127, 129}))
      .add("b.weight", Dtype::kF8E4M3, {256, 128}, repeated(0x38, 256 * 128))
      .add("b.scale", Dtype::kF8E8M0, {8, 4}, bytes_of(fine));
  EXPECT_EQ(test.weight("a.weight").format.name, "fp8-block");
  EXPECT_EQ(test.weight("b.weight").format.name, "fp8-block32x32");
  EXPECT_EQ(test.values("a.weight")[128 * 128], 4);
  EXPECT_EQ(test.values("b.weight")[33 * 128 + 65], std::ldexp(1.0F, 110 + 4 + 2 - 127));
  expect_cuts_equal_whole(test.checkpoint(), test.weight("b.weight"));
}

TEST(DeepseekV4, ScalesOfAnotherShapeAreRefused) {
  TestCheckpoint test;
  test.settings(R"({"quant_method": "fp8"})")
      .add("w1.weight", Dtype::kI8, {4, 32})
      .add("w1.scale", Dtype::kF8E8M0, {4, 4});
  const std::string line = test.only_finding("bad-shape");
  EXPECT_THAT(line, HasSubstr("columns 64, group 32, scale_columns_expected 2, scale_columns_stored 4"));
}

// Some models call the weight of a norm "scale".
TEST(DeepseekV4, AScaleOfItsOwnIsAWeight) {
  TestCheckpoint test;
  test.add("block.0.norm.scale", Dtype::kBF16, {64}).add("block.0.attn.sinks", Dtype::kBF16, {8});
  EXPECT_EQ(test.weight("block.0.norm.scale").format.name, "bf16");
  EXPECT_TRUE(test.findings().empty());
}

}  // namespace
}  // namespace nibble
