#include <gmock/gmock.h>

#include "nibble/base/error.h"
#include "nibble/checkpoint/conventions/checkpoint_for_test.h"

namespace nibble {
namespace {

using testing::golden_bytes;
using testing::golden_floats;
using testing::golden_hex;
using testing::golden_micro;
using ::testing::HasSubstr;

constexpr const char* kSettings = R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})";

constexpr float kE2m1[16] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0F, -0.5, -1, -1.5, -2, -3, -4, -6};

// value = code * (scale * second), from the specification's tables alone.
float nvfp4_value(const std::vector<std::byte>& codes, const std::vector<std::byte>& scales, uint64_t cols,
                  float second, uint64_t r, uint64_t k) {
  const auto byte = std::to_integer<uint32_t>(codes[r * cols / 2 + k / 2]);
  const auto scale = std::to_integer<size_t>(scales[r * cols / 16 + k / 16]);
  const auto table = golden_floats(golden_micro()["tables"]["e4m3fn"]);
  return kE2m1[k % 2 == 0 ? byte & 15 : byte >> 4] * (table[scale] * second);
}

std::vector<std::byte> scale_bytes(uint64_t count, uint64_t seed) {
  std::vector<std::byte> bytes = noise(count, seed);
  for (std::byte& byte : bytes) byte &= std::byte{0x77};  // positive, finite
  return bytes;
}

TEST(Modelopt, GoldenNvfp4) {
  const Json& golden = golden_micro()["nvfp4"]["modelopt"];
  TestCheckpoint test;
  test.settings(kSettings)
      .add("m.weight", Dtype::kU8, {1, 32}, golden_bytes(golden["weight_u8"]))
      .add("m.weight_scale", Dtype::kF8E4M3, {1, 4}, golden_bytes(golden["weight_scale_e4m3"]))
      .add("m.weight_scale_2", Dtype::kF32, {}, bytes_of<uint32_t>({golden_hex(golden["weight_scale_2_f32_bits"])}))
      .add("m.input_scale", Dtype::kF32, {}, bytes_of<float>({1}));
  EXPECT_EQ(test.values("m.weight"), golden_floats(golden["dequant_f32"]));
  EXPECT_NE(test.weight("m.weight").part(PartKind::kInputScale), nullptr);
  EXPECT_TRUE(test.findings().empty());
}

TEST(Modelopt, C01_gate_and_up_keep_their_own_second_level_scales) {
  TestCheckpoint test;
  test.settings(kSettings);
  const std::vector<std::pair<std::string, float>> halves = {{"gate_proj", 3.85e-5F}, {"up_proj", 4.83e-5F}};
  for (uint64_t e = 0; e < 2; ++e) {
    for (size_t h = 0; h < 2; ++h) {
      const std::string m = "model.layers.0.mlp.experts." + std::to_string(e) + "." + halves[h].first;
      test.add(m + ".weight", Dtype::kU8, {32, 32}, noise(uint64_t{32} * 32, e * 2 + h))
          .add(m + ".weight_scale", Dtype::kF8E4M3, {32, 4}, scale_bytes(uint64_t{32} * 4, 100 + e * 2 + h))
          .add(m + ".weight_scale_2", Dtype::kF32, {}, bytes_of<float>({halves[h].second}));
    }
  }
  for (uint64_t e = 0; e < 2; ++e) {
    for (size_t h = 0; h < 2; ++h) {
      const std::string m = "model.layers.0.mlp.experts." + std::to_string(e) + "." + halves[h].first;
      const auto values = test.values(m + ".weight");
      const auto codes = noise(uint64_t{32} * 32, e * 2 + h);
      const auto scales = scale_bytes(uint64_t{32} * 4, 100 + e * 2 + h);
      for (uint64_t r = 0; r < 32; ++r) {
        for (uint64_t k = 0; k < 64; ++k) {
          ASSERT_EQ(values[r * 64 + k], nvfp4_value(codes, scales, 64, halves[h].second, r, k)) << m << r << " " << k;
        }
      }
    }
  }
}

TEST(Modelopt, C11b_the_smallest_block_scale_is_not_flushed) {
  TestCheckpoint test;
  test.settings(kSettings)
      .add("m.weight", Dtype::kU8, {2, 16}, repeated(0x77, 32))
      .add("m.weight_scale", Dtype::kF8E4M3, {2, 2}, repeated(0x01, 4))
      .add("m.weight_scale_2", Dtype::kF32, {1}, bytes_of<float>({1}));
  EXPECT_EQ(test.values("m.weight"), std::vector<float>(64, 0.01171875F));
}

TEST(Modelopt, AFusedStackHasASecondScaleForEachExpert) {
  TestCheckpoint test;
  test.settings(kSettings)
      .add("x.gate_up_proj", Dtype::kU8, {2, 4, 16}, noise(128, 5))
      .add("x.gate_up_proj_weight_scale", Dtype::kF8E4M3, {2, 4, 2}, repeated(0x38, 16))
      .add("x.gate_up_proj_weight_scale_2", Dtype::kF32, {2}, bytes_of<float>({1, 4}))
      .add("x.gate_up_proj_input_scale", Dtype::kF32, {2});
  const auto codes = noise(128, 5);
  EXPECT_EQ(test.values("x.gate_up_proj", 0)[1], kE2m1[std::to_integer<uint32_t>(codes[0]) >> 4]);
  EXPECT_EQ(test.values("x.gate_up_proj", 1)[0], 4 * kE2m1[std::to_integer<uint32_t>(codes[64]) & 15]);
  expect_cuts_equal_whole(test.checkpoint(), test.weight("x.gate_up_proj"));
}

// The same values as from a plain stack, byte by byte the other way round.
TEST(Modelopt, AStackOfTransposedModulesIsReadAsTheyCompute) {
  constexpr uint64_t kRows = 6, kCols = 32;
  const auto codes = noise(2 * kRows * kCols / 2, 7), scales = scale_bytes(2 * kRows * kCols / 16, 8);
  const auto transposed = [](const std::vector<std::byte>& bytes, uint64_t depth) {
    std::vector<std::byte> out(bytes.size());
    for (uint64_t e = 0; e < 2; ++e) {
      for (uint64_t r = 0; r < kRows; ++r) {
        for (uint64_t d = 0; d < depth; ++d) out[(e * depth + d) * kRows + r] = bytes[(e * kRows + r) * depth + d];
      }
    }
    return out;
  };
  TestCheckpoint test;
  test.settings(kSettings)
      .add("x.down_proj", Dtype::kU8, {2, kCols / 2, kRows}, transposed(codes, kCols / 2))
      .add("x.down_proj_weight_scale", Dtype::kF8E4M3, {2, kCols / 16, kRows}, transposed(scales, kCols / 16))
      .add("x.down_proj_weight_scale_2", Dtype::kF32, {}, bytes_of<float>({0.5F}))
      .add("y.down_proj", Dtype::kU8, {2, kRows, kCols / 2}, codes)
      .add("y.down_proj_weight_scale", Dtype::kF8E4M3, {2, kRows, kCols / 16}, scales)
      .add("y.down_proj_weight_scale_2", Dtype::kF32, {}, bytes_of<float>({0.5F}));
  EXPECT_TRUE(test.findings().empty());
  EXPECT_EQ(test.weight("x.down_proj").shape, (std::vector<uint64_t>{2, kRows, kCols}));
  for (uint64_t slice = 0; slice < 2; ++slice)
    EXPECT_EQ(test.values("x.down_proj", slice), test.values("y.down_proj", slice));
  EXPECT_EQ(test.values("x.down_proj", 1)[kCols + 3], nvfp4_value(codes, scales, kCols, 0.5F, kRows + 1, 3));
  expect_cuts_equal_whole(test.checkpoint(), test.weight("x.down_proj"));
}

TEST(Modelopt, ATransposedStackNeedsItsSecondScale) {
  for (const uint64_t count : {0u, 3u}) {
    TestCheckpoint test;
    test.settings(kSettings)
        .add("x.down_proj", Dtype::kU8, {2, 16, 6})
        .add("x.down_proj_weight_scale", Dtype::kF8E4M3, {2, 2, 6});
    if (count != 0) test.add("x.down_proj_weight_scale_2", Dtype::kF32, {count});
    ASSERT_EQ(test.findings().size(), 1u);
    EXPECT_EQ(test.findings()[0].rule, count == 0 ? "unmatched-part" : "bad-shape");
  }
}

TEST(Modelopt, Int4IsPackedAlongTheRowsInTwosComplement) {
  TestCheckpoint test;
  // Rows 0 and 1 of the first column: 0x8 = -8 and 0x7 = 7.
  test.settings(R"({"quant_method": "modelopt", "quant_algo": "W4A16_AWQ", "group_size": 2})")
      .add("m.weight", Dtype::kU8, {2, 4}, bytes_of<uint8_t>({0x78, 0x10, 0xF0, 0x0F, 0x21, 0x43, 0x65, 0x87}))
      .add("m.weight_scale", Dtype::kF32, {4, 2}, bytes_of<float>({1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(test.weight("m.weight").shape, (std::vector<uint64_t>{4, 4}));
  EXPECT_EQ(test.values("m.weight"), (std::vector<float>{-8, 0, 0, -2,   //
                                                         21, 3, -4, 0,   //
                                                         5, 15, 30, 42,  //
                                                         14, 28, 48, -64}));
  expect_cuts_equal_whole(test.checkpoint(), test.weight("m.weight"));
}

TEST(Modelopt, AScaledInputIsListedAndNotDecoded) {
  TestCheckpoint test;
  test.settings(R"({"quant_method": "modelopt", "quant_algo": "NVFP4_AWQ"})")
      .add("m.weight", Dtype::kU8, {2, 16})
      .add("m.weight_scale", Dtype::kF8E4M3, {2, 2})
      .add("m.weight_scale_2", Dtype::kF32, {})
      .add("m.pre_quant_scale", Dtype::kBF16, {32});
  const Weight& weight = test.weight("m.weight");
  EXPECT_TRUE(weight.opaque);
  EXPECT_EQ(weight.format.name, "nvfp4-awq");
  EXPECT_EQ(weight.shape, (std::vector<uint64_t>{2, 32}));
  EXPECT_EQ(weight.stored_bytes(test.checkpoint()), 32u + 4 + 4 + 64);
  ASSERT_EQ(test.findings().size(), 1u);
  EXPECT_EQ(test.findings()[0].severity, Severity::kWarning);
  EXPECT_EQ(test.findings()[0].rule, "scaled-input");
  EXPECT_EQ(test.findings()[0].tensor, "m.pre_quant_scale");
  EXPECT_THAT(test.findings()[0].message, HasSubstr("not applied"));
  try {
    test.values("m.weight");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("nvfp4-awq"));
    EXPECT_THAT(error.what(), HasSubstr("m.weight"));
    EXPECT_FALSE(error.ways_out().empty());
  }
}

TEST(Modelopt, AScaledInputKeepsTheShapeOfTheMatrix) {
  TestCheckpoint test;
  test.settings(R"({"quant_method": "modelopt", "quant_algo": "W4A16_AWQ", "group_size": 2})")
      .add("a.weight", Dtype::kU8, {2, 4})
      .add("a.weight_scale", Dtype::kF32, {4, 2})
      .add("a.pre_quant_scale", Dtype::kBF16, {4})
      .add("b.weight", Dtype::kBF16, {2, 4})
      .add("b.pre_quant_scale", Dtype::kBF16, {4})
      .add("c.weight", Dtype::kF8E4M3, {2, 4})
      .add("c.weight_scale", Dtype::kF32, {})
      .add("c.pre_quant_scale", Dtype::kBF16, {1, 4});
  const std::pair<const char*, const char*> formats[] = {
      {"a.weight", "int4-awq"}, {"b.weight", "bf16-awq"}, {"c.weight", "fp8-awq"}};
  for (const auto& [name, format] : formats) {
    EXPECT_EQ(test.weight(name).format.name, format);
    EXPECT_TRUE(test.weight(name).opaque) << name;
    EXPECT_EQ(test.weight(name).shape, (std::vector<uint64_t>{name[0] == 'a' ? 4u : 2u, 4})) << name;
  }
}

TEST(Modelopt, FactorsOfAnotherWidthAreRefused) {
  TestCheckpoint test;
  test.settings(R"({"quant_method": "modelopt", "quant_algo": "NVFP4_AWQ"})")
      .add("m.weight", Dtype::kU8, {2, 16})
      .add("m.weight_scale", Dtype::kF8E4M3, {2, 2})
      .add("m.weight_scale_2", Dtype::kF32, {})
      .add("m.pre_quant_scale", Dtype::kBF16, {16});
  ASSERT_EQ(test.findings().size(), 1u);
  EXPECT_EQ(test.findings()[0].rule, "bad-shape");
  EXPECT_EQ(test.findings()[0].tensor, "m.pre_quant_scale");
  EXPECT_THAT(error_of(test.findings()[0]).what(), HasSubstr("columns 32, factors 16"));
}

TEST(Modelopt, BrokenModulesAreRefused) {
  TestCheckpoint test;
  test.settings(kSettings)
      .add("a.weight", Dtype::kU8, {2, 16})
      .add("a.weight_scale", Dtype::kF8E4M3, {2, 2})
      .add("b.weight", Dtype::kU8, {2, 16})
      .add("b.weight_scale_2", Dtype::kF32, {})
      .add("c.weight", Dtype::kU8, {128, 64})
      .add("c.weight_scale", Dtype::kU8, {128, 8})
      .add("c.weight_scale_2", Dtype::kF32, {})
      .add("d.weight", Dtype::kU8, {2, 16})
      .add("d.weight_scale", Dtype::kF8E4M3, {2, 4})
      .add("d.weight_scale_2", Dtype::kF32, {})
      .add("e.weight_scale", Dtype::kF8E4M3, {2, 4})
      .add("e.weight_scale_2", Dtype::kF32, {});
  ASSERT_EQ(test.findings().size(), 5U);
  EXPECT_THAT(test.findings()[0].message, HasSubstr("a.weight_scale_2 is missing"));
  EXPECT_THAT(test.findings()[1].message, HasSubstr("b.weight_scale is missing"));
  EXPECT_EQ(test.findings()[2].rule, "unsupported");
  EXPECT_THAT(test.findings()[2].message, HasSubstr("swizzled"));
  EXPECT_EQ(test.findings()[3].rule, "bad-shape");
  EXPECT_THAT(error_of(test.findings()[3]).what(), HasSubstr("columns 32, group 16"));
  EXPECT_THAT(test.findings()[4].message, HasSubstr("e.weight is missing"));
}

}  // namespace
}  // namespace nibble
