#include "nibble/checkpoint/conventions/byte_weights.h"

#include <gmock/gmock.h>

#include "nibble/checkpoint/conventions/checkpoint_for_test.h"

namespace nibble {
namespace {

using testing::golden_micro;
using ::testing::HasSubstr;

std::string grid_text(std::vector<uint64_t> weight, std::vector<uint64_t> scale, ScaleType type = ScaleType::kF32,
                      const DeclaredSizes& declared = {}) {
  const auto grid = match_grid(weight, scale, type, {.declared = &declared});
  return grid ? std::to_string(grid->block_rows) + "x" + std::to_string(grid->block_cols) : "none";
}

DeclaredSizes blocks(uint64_t rows, uint64_t cols) {
  DeclaredSizes sizes;
  sizes.blocks = {{rows, cols}};
  return sizes;
}

DeclaredSizes group(int64_t size) {
  DeclaredSizes sizes;
  sizes.group_sizes = {size};
  return sizes;
}

TEST(ByteWeights, GridsFollowFromShapes) {
  EXPECT_EQ(grid_text({576, 7168}, {}), "0x0");
  EXPECT_EQ(grid_text({576, 7168}, {1}), "0x0");
  EXPECT_EQ(grid_text({576, 7168}, {576}), "1x0");
  EXPECT_EQ(grid_text({576, 7168}, {576, 1}), "1x0");
  EXPECT_EQ(grid_text({576, 7168}, {5, 56}), "128x128");
  EXPECT_EQ(grid_text({576, 7168}, {5, 1, 56, 1}), "128x128");
  EXPECT_EQ(grid_text({576, 7168}, {576, 224}, ScaleType::kE8M0), "1x32");
  EXPECT_EQ(grid_text({576, 7168}, {4, 56}), "none");
  EXPECT_EQ(grid_text({576, 7168}, {18, 224}), "none");
  EXPECT_EQ(grid_text({576, 7168}, {18, 224}, ScaleType::kE8M0, blocks(32, 32)), "32x32");
  EXPECT_EQ(grid_text({576, 7168}, {5, 56}, ScaleType::kF32, blocks(32, 32)), "none");
  EXPECT_EQ(grid_text({8, 256, 384}, {8}), "0x0");
  EXPECT_EQ(grid_text({8, 256, 384}, {8, 1, 1}), "0x0");
  EXPECT_EQ(grid_text({8, 256, 384}, {8, 256, 1}), "1x0");
  EXPECT_EQ(grid_text({8, 256, 384}, {8, 2, 3}), "128x128");
  EXPECT_EQ(grid_text({8, 256, 384}, {4, 2, 3}), "none");
  EXPECT_EQ(grid_text({256, 384}, {256, 6}, ScaleType::kF32, group(64)), "1x64");
  EXPECT_EQ(grid_text({256, 384}, {256, 6}, ScaleType::kF32, group(32)), "none");
  EXPECT_EQ(grid_text({0, 384}, {0, 1}), "1x0");
  // Several readings give the same values: the declared one names the format.
  EXPECT_EQ(grid_text({1, 32}, {1}), "0x0");
  EXPECT_EQ(grid_text({1, 32}, {1, 1}), "1x0");
  EXPECT_EQ(grid_text({1, 32}, {1, 1}, ScaleType::kF32, blocks(128, 128)), "128x128");
  EXPECT_EQ(grid_text({1, 32}, {1, 1}, ScaleType::kE8M0), "1x32");
  EXPECT_EQ(grid_text({64, 64}, {1, 1}), "128x128");
  EXPECT_EQ(grid_text({256, 256}, {1, 1}), "0x0");
}

TEST(ByteWeights, GoldenBlockScaleShapes) {
  for (const Json& row : golden_micro()["fp8_block_scale_shapes"]) {
    const auto block = row["block"].get<std::vector<uint64_t>>();
    EXPECT_EQ(grid_text(row["weight"].get<std::vector<uint64_t>>(), row["scale"].get<std::vector<uint64_t>>(),
                        ScaleType::kF32, blocks(block[0], block[1])),
              std::to_string(block[0]) + "x" + std::to_string(block[1]));
  }
}

TEST(ByteWeights, ScalesOfAnotherShapeAreRefusedWithTheNumbers) {
  TestCheckpoint test;
  test.settings(R"({"quant_method": "fp8", "weight_block_size": [128, 128]})")
      .add("m.weight", Dtype::kF8E4M3, {256, 256})
      .add("m.weight_scale_inv", Dtype::kF32, {2, 16});
  const std::string line = test.only_finding("bad-shape");
  for (const char* part : {"m.weight_scale_inv", "F8_E4M3 [256, 256]", "F32 [2, 16]", "[2, 2] (blocks 128 x 128)"}) {
    EXPECT_THAT(line, HasSubstr(part));
  }
  EXPECT_TRUE(test.table().weights().empty());
}

TEST(ByteWeights, IntegersOfABytePerTensorRowAndGroup) {
  TestCheckpoint test;
  const std::vector<std::byte> codes = bytes_of<int8_t>({-128, -1, 0, 127, 1, 2, 3, 4});
  test.settings(R"({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights":
                    {"num_bits": 8, "group_size": 2}}, "c": {"weights": {"strategy": "channel"}}}})")
      .add("t.weight", Dtype::kI8, {2, 4}, codes)
      .add("t.weight_scale", Dtype::kF32, {1}, bytes_of<float>({0.5F}))
      .add("c.weight", Dtype::kI8, {2, 4}, codes)
      .add("c.weight_scale", Dtype::kBF16, {2, 1}, bytes_of<uint16_t>({0x3F80, 0x4000}))
      .add("c.weight_zero_point", Dtype::kI8, {2, 1}, bytes_of<int8_t>({-128, 1}))
      .add("g.weight", Dtype::kI8, {2, 4}, codes)
      .add("g.weight_scale", Dtype::kF32, {2, 2}, bytes_of<float>({1, 2, 3, 4}));
  EXPECT_EQ(test.values("t.weight"), (std::vector<float>{-64, -0.5, 0, 63.5, 0.5, 1, 1.5, 2}));
  EXPECT_EQ(test.values("c.weight"), (std::vector<float>{0, 127, 128, 255, 0, 2, 4, 6}));
  EXPECT_EQ(test.values("g.weight"), (std::vector<float>{-128, -1, 0, 254, 3, 6, 12, 16}));
  for (const char* name : {"t.weight", "c.weight", "g.weight"}) {
    expect_cuts_equal_whole(test.checkpoint(), test.weight(name));
    EXPECT_NO_THROW(parse_format(test.weight(name).format.name));
  }
}

}  // namespace
}  // namespace nibble
