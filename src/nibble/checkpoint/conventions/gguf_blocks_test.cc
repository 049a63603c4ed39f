#include <gmock/gmock.h>

#include <algorithm>

#include "nibble/base/error.h"
#include "nibble/checkpoint/conventions/gguf_for_test.h"

namespace nibble {
namespace {

using testing::golden_bytes;
using testing::golden_floats;
using testing::golden_hex;
using testing::golden_micro;
using ::testing::HasSubstr;

TEST(GgufBlocks, GoldenQ4_0) {
  const Json& golden = golden_micro()["ggml_q4_0"];
  TestGguf test;
  test.add("blk.0.ffn_up.weight", 2, {1, 32}, golden_bytes(golden["block"]));
  EXPECT_EQ(bits_of(test.values("blk.0.ffn_up.weight")), bits_of(golden_floats(golden["dequant"])));
  EXPECT_EQ(test.weight("blk.0.ffn_up.weight").format.name, "int4-g32");
}

TEST(GgufBlocks, GoldenQ4_K) {
  const Json& golden = golden_micro()["ggml_q4_K_decode"];
  TestGguf test;
  test.add("a.weight", 12, {1, 256}, golden_bytes(golden["block"]));
  EXPECT_EQ(test.values("a.weight"), golden_floats(golden["values"]));
}

TEST(GgufBlocks, GoldenMxfp4OfTheSameCodes) {
  for (const Json& block : golden_micro()["mxfp4"]) {
    for (const auto& [rule, stored] : block["rules"].items()) {
      TestGguf test;
      test.add("a.weight", 39, {1, 32}, golden_bytes(stored["ggml_block_mxfp4_from_same_codes"]));
      EXPECT_EQ(bits_of(test.values("a.weight")), bits_of(golden_floats(stored["dequant"]))) << block["name"] << rule;
      const EncodedMatrix rows = read_rows(test.checkpoint(), test.weight("a.weight"), 0, 0, 1);
      EXPECT_TRUE(std::ranges::equal(rows.codes, golden_bytes(stored["packed_adjacent"])));
    }
  }
}

// The block is a repack of ModelOpt's bytes; its scale stands in a tensor of its own.
TEST(GgufBlocks, GoldenNvfp4WithItsScale) {
  const Json& golden = golden_micro()["nvfp4"];
  const Json& modelopt = golden["modelopt"];
  const auto block = golden_bytes(golden["ggml_block_nvfp4_repacked_from_modelopt"]["block"]);
  TestGguf test;
  test.add("a.weight", 40, {1, 64}, block)
      .add("a.scale", 0, {1}, bytes_of<uint32_t>({golden_hex(modelopt["weight_scale_2_f32_bits"])}))
      .add("a.input_scale", 0, {1}, bytes_of<float>({1}))
      .add("b.weight", 40, {1, 64}, block);
  EXPECT_EQ(test.values("a.weight"), golden_floats(modelopt["dequant_f32"]));
  const EncodedMatrix rows = read_rows(test.checkpoint(), test.weight("a.weight"), 0, 0, 1);
  EXPECT_TRUE(std::ranges::equal(rows.codes, golden_bytes(modelopt["weight_u8"])));
  EXPECT_EQ(rows.scales, golden_bytes(modelopt["weight_scale_e4m3"]));
  EXPECT_EQ(read_rows(test.checkpoint(), test.weight("b.weight"), 0, 0, 1).tensor_scale.value, 1);
  EXPECT_TRUE(test.findings().empty());
}

TEST(GgufBlocks, OddScaleBytesAreAsGgmlReadsThem) {
  std::vector<std::byte> block = bytes_of<uint8_t>({0x7F, 0x80, 0xB8, 0x38});
  const auto codes = repeated(0x22, 32);
  block.insert(block.end(), codes.begin(), codes.end());
  TestGguf test;
  test.add("a.weight", 40, {1, 64}, block);
  const auto values = test.values("a.weight");
  EXPECT_EQ(values[0], 0);
  EXPECT_EQ(values[16], 0);
  EXPECT_EQ(values[32], 1);
  EXPECT_EQ(values[48], 1);
}

TEST(GgufBlocks, Q8_0AndQ4_1) {
  std::vector<std::byte> q8 = bytes_of<uint16_t>({0x3800});  // 0.5
  std::vector<int8_t> bytes(32);
  for (int i = 0; i < 32; ++i) bytes[static_cast<size_t>(i)] = static_cast<int8_t>(i - 16);
  const auto tail = bytes_of(bytes);
  q8.insert(q8.end(), tail.begin(), tail.end());
  std::vector<std::byte> q4 = bytes_of<uint16_t>({0x3800, 0xC000});  // 0.5, -2
  const auto nibbles = repeated(0x71, 16);
  q4.insert(q4.end(), nibbles.begin(), nibbles.end());
  TestGguf test;
  test.add("a.weight", 8, {1, 32}, q8).add("b.weight", 3, {1, 32}, q4);
  const auto a = test.values("a.weight");
  const auto b = test.values("b.weight");
  for (size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(a[i], 0.5F * (static_cast<float>(i) - 16));
    EXPECT_EQ(b[i], i < 16 ? -1.5F : 1.5F);
  }
}

TEST(GgufBlocks, ExpertStacksHaveAScaleForEachExpert) {
  TestGguf test;
  std::vector<std::byte> blocks = noise(3 * 5 * 36, 9);
  for (size_t b = 0; b < 15; ++b) {
    for (size_t s = 0; s < 4; ++s) blocks[b * 36 + s] = std::byte{0x38};
  }
  test.add("blk.0.ffn_gate_exps.weight", 40, {3, 5, 64}, blocks)
      .add("blk.0.ffn_gate_exps.scale", 0, {3}, bytes_of<float>({1, 2, 4}))
      .add("one.weight", 40, {5, 64}, std::vector<std::byte>(blocks.begin() + 5 * 36, blocks.begin() + 10 * 36));
  auto doubled = test.values("one.weight");
  for (float& value : doubled) value *= 2;
  EXPECT_EQ(bits_of(test.values("blk.0.ffn_gate_exps.weight", 1)), bits_of(doubled));
  expect_cuts_equal_whole(test.checkpoint(), test.weight("blk.0.ffn_gate_exps.weight"));
}

TEST(GgufBlocks, OtherTypesAreListedAndRefusedWhenRead) {
  TestGguf test;
  test.add("a.weight", 14, {1, 256}, noise(210, 1));
  EXPECT_EQ(test.weight("a.weight").format.name, "q6_k");
  EXPECT_TRUE(test.weight("a.weight").opaque);
  EXPECT_TRUE(test.findings().empty());
  try {
    test.values("a.weight");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("q6_k"));
    EXPECT_THAT(error.what(), HasSubstr("a.weight"));
    EXPECT_FALSE(error.ways_out().empty());
  }
}

// llama.cpp multiplies by it whatever the weight's type: a reader that ignores it is wrong.
TEST(GgufBlocks, AScaleBesideAnotherTypeIsRefused) {
  TestGguf test;
  test.add("a.weight", 8, {1, 32}, noise(34, 1)).add("a.scale", 0, {1}, bytes_of<float>({2}));
  ASSERT_EQ(test.findings().size(), 1U);
  EXPECT_EQ(test.findings()[0].tensor, "a.scale");
  EXPECT_EQ(test.findings()[0].severity, Severity::kError);
}

// Two heads of 4 rows: stored row 2j + h of a head is logical row 2h + j.
TEST(GgufBlocks, RotaryPairsAreUndone) {
  TestGguf test;
  std::vector<float> rows(8);
  for (size_t i = 0; i < 8; ++i) rows[i] = static_cast<float>(i);
  std::vector<std::byte> q8;
  for (int i = 0; i < 8; ++i) {
    const auto scale = bytes_of<uint16_t>({0x3C00});
    q8.insert(q8.end(), scale.begin(), scale.end());
    const auto codes = repeated(static_cast<uint8_t>(i), 32);
    q8.insert(q8.end(), codes.begin(), codes.end());
  }
  test.add("a.weight", 0, {8, 1}, bytes_of(rows)).add("b.weight", 8, {8, 32}, q8);
  for (const char* name : {"a.weight", "b.weight"}) {
    Weight& weight = test.weight(name);
    weight.row_order = RowOrder::kGgufRotaryPairs;
    weight.rotary_heads = 2;
    const auto values = read_rows_f32(test.checkpoint(), weight, 0, 0, 8);
    std::vector<float> first_column;
    first_column.reserve(8);
    for (uint64_t r = 0; r < 8; ++r) first_column.push_back(values[r * weight.cols()]);
    EXPECT_EQ(first_column, (std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7}));
    expect_cuts_equal_whole(test.checkpoint(), weight);
  }
}

}  // namespace
}  // namespace nibble
