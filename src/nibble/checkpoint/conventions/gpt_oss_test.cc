#include <gmock/gmock.h>

#include "nibble/checkpoint/conventions/checkpoint_for_test.h"

namespace nibble {
namespace {

using testing::golden_bytes;
using testing::golden_floats;
using testing::golden_micro;
using ::testing::HasSubstr;

TEST(GptOss, GoldenBlocksInAllSpellings) {
  const Json& golden = golden_micro()["gpt_oss"];
  std::vector<std::byte> blocks;
  std::vector<uint8_t> scales;
  std::vector<float> expected;
  for (const Json& row : golden["blocks_row_major"]) {
    for (const Json& block : row) {
      for (const std::byte byte : golden_bytes(block)) blocks.push_back(byte);
    }
  }
  for (const Json& row : golden["scales"]) {
    for (const Json& scale : row) scales.push_back(scale.get<uint8_t>());
  }
  for (const Json& row : golden["dequant_rows"]) {
    for (const float value : golden_floats(row)) expected.push_back(value);
  }
  TestCheckpoint test;
  test.settings(R"({"quant_method": "mxfp4"})")
      .add("e.gate_up_proj_blocks", Dtype::kU8, {1, 4, 2, 16}, blocks)
      .add("e.gate_up_proj_scales", Dtype::kU8, {1, 4, 2}, bytes_of(scales))
      .add("e.gate_up_proj_bias", Dtype::kBF16, {1, 4})
      .add("e.down_proj_blocks", Dtype::kU8, {1, 4, 2, 16}, blocks)
      .add("e.down_proj_scales", Dtype::kF8E8M0, {1, 4, 2}, bytes_of(scales))
      .add("block.0.mlp.mlp1_weight.blocks", Dtype::kU8, {1, 4, 2, 16}, blocks)
      .add("block.0.mlp.mlp1_weight.scales", Dtype::kU8, {1, 4, 2}, bytes_of(scales));
  for (const char* name : {"e.gate_up_proj", "e.down_proj", "block.0.mlp.mlp1_weight"}) {
    EXPECT_EQ(test.weight(name).shape, (std::vector<uint64_t>{1, 4, 64}));
    EXPECT_EQ(bits_of(test.values(name)), bits_of(expected)) << name;
    expect_cuts_equal_whole(test.checkpoint(), test.weight(name));
  }
  EXPECT_EQ(test.weight("e.gate_up_proj_bias").format.name, "bf16");
  EXPECT_EQ(test.weight("e.gate_up_proj").convention->expert_form(""), ExpertForm::kFusedInterleaved);
  EXPECT_TRUE(test.findings().empty());
}

TEST(GptOss, MissingPartnersAndWrongShapesAreRefused) {
  TestCheckpoint test;
  test.settings(R"({"quant_method": "mxfp4"})")
      .add("a_blocks", Dtype::kU8, {2, 4, 2, 16})
      .add("b_scales", Dtype::kU8, {2, 4, 2})
      .add("c_blocks", Dtype::kU8, {2, 4, 2, 16})
      .add("c_scales", Dtype::kU8, {2, 4, 4})
      .add("d", Dtype::kBF16, {2, 64, 4})
      .add("d_blocks", Dtype::kU8, {2, 4, 2, 16})
      .add("d_scales", Dtype::kU8, {2, 4, 2});
  ASSERT_EQ(test.findings().size(), 4U);
  EXPECT_EQ(test.findings()[0].rule, "unmatched-part");
  EXPECT_THAT(test.findings()[0].message, HasSubstr("a_scales is missing"));
  EXPECT_THAT(test.findings()[1].message, HasSubstr("b_blocks is missing"));
  EXPECT_EQ(test.findings()[2].rule, "bad-shape");
  EXPECT_THAT(error_of(test.findings()[2]).what(), HasSubstr("expected [2, 4, 2]"));
  EXPECT_EQ(test.findings()[3].rule, "mixed");
}

}  // namespace
}  // namespace nibble
