#include "nibble/numerics/format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "nibble/base/error.h"
#include "nibble/testing/golden.h"

namespace nibble {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Format, NamesOfTheCommandLineAreWritable) {
  for (const char* name : {"int4-g16", "int4-g32", "int4-g128", "int4-g1024-asym", "mxfp4", "nvfp4", "mxfp8",
                           "fp8-block", "fp8-channel", "fp8-tensor", "bf16"}) {
    const Format format = parse_writable_format(name);
    EXPECT_EQ(format.name, name);
    EXPECT_TRUE(family_of(format).writable);
  }
}

TEST(Format, OtherNamesAreOnlyRead) {
  for (const char* name : {"f16", "f32", "f64", "e5m2", "int4-channel", "int4-channel-asym", "int4-g1", "int4-g24",
                           "int4-g8-asym", "int8-g32", "int8-channel", "int8-tensor", "int8-g32-asym",
                           "int8-channel-asym", "e4m3", "fp8-g64", "fp8-block32x32", "q4_1", "q4_k"}) {
    const Format format = parse_format(name);
    EXPECT_EQ(format.name, name);
    EXPECT_FALSE(is_writable(format)) << name;
    EXPECT_THROW(parse_writable_format(name), Error) << name;
  }
}

TEST(Format, UnknownNamesListTheKnownOnesNearestFirst) {
  for (const char* name : {"", "int4", "int4-g", "int4-g0", "int4-g032", "int4-g32x", "int4-g-asym",
                           "int4-g99999999999", "mxfp5", "fp8-block0x128", "fp8-block128", "fp8-blockx", "MXFP4"}) {
    EXPECT_THROW(parse_format(name), Error) << name;
  }
  try {
    parse_format("mxfp5");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("mxfp5"));
    EXPECT_THAT(error.ways_out().at(0), HasSubstr("use one of: mxfp4, "));
  }
}

TEST(Format, OneFormatHasOneName) {
  EXPECT_EQ(parse_format("fp8-block128x128"), parse_format("fp8-block"));
  std::set<std::string_view> patterns;
  for (const FormatFamily* family : format_families()) EXPECT_TRUE(patterns.insert(family->pattern).second);
}

TEST(Format, StoresTheScaleTypesOfTheField) {
  EXPECT_EQ(parse_format("int4-g32").scale, ScaleType::kBF16);
  EXPECT_EQ(parse_format("fp8-block").scale, ScaleType::kF32);
  EXPECT_EQ(parse_format("mxfp4").scale, ScaleType::kE8M0);
  EXPECT_EQ(parse_format("nvfp4").scale, ScaleType::kE4M3);
  EXPECT_EQ(parse_format("int8-g32").scale, ScaleType::kF16);
}

// FORMATS.md §1.8.
TEST(Format, CostsTheSpecifiedBitsPerWeight) {
  const auto bits = [](const char* name) { return parse_format(name).bits_per_weight(4096, 4096); };
  EXPECT_DOUBLE_EQ(bits("int4-g32"), 4.5);
  EXPECT_DOUBLE_EQ(bits("int4-g128"), 4.125);
  EXPECT_DOUBLE_EQ(bits("int4-g128-asym"), 4.125 + 4.0 / 128);
  EXPECT_DOUBLE_EQ(bits("mxfp4"), 4.25);
  EXPECT_DOUBLE_EQ(bits("nvfp4"), 4.5 + 32.0 / 4096 / 4096);
  EXPECT_DOUBLE_EQ(bits("mxfp8"), 8.25);
  EXPECT_DOUBLE_EQ(bits("fp8-block"), 8 + 32.0 / 128 / 128);
  EXPECT_DOUBLE_EQ(bits("bf16"), 16);
  EXPECT_DOUBLE_EQ(bits("int8-g32"), 8.5);
  EXPECT_DOUBLE_EQ(bits("q4_1"), 5);
  EXPECT_DOUBLE_EQ(bits("q4_k"), 4.5);
}

TEST(Format, StoredBytesAreExact) {
  const auto bytes = [](const char* name, uint64_t rows, uint64_t cols) {
    return parse_format(name).stored_bytes(rows, cols).value_or(0);
  };
  EXPECT_EQ(bytes("int4-g32", 4096, 4096), 8388608U + 2 * 524288);
  EXPECT_EQ(bytes("mxfp4", 4096, 4096), 8388608U + 524288);
  EXPECT_EQ(bytes("nvfp4", 4096, 4096), 8388608U + 1048576 + 4);
  EXPECT_EQ(bytes("fp8-block", 129, 257), 129U * 257 + 2 * 3 * 4);
  EXPECT_EQ(bytes("int4-g32-asym", 3, 32), 48U + 6 + 2);  // three zero points of four bits are two bytes
  EXPECT_EQ(bytes("bf16", 3, 5), 30U);
  EXPECT_FALSE(parse_format("bf16").stored_bytes(uint64_t{1} << 32, uint64_t{1} << 32));
}

TEST(Format, ArraysHaveTheDocumentedShapes) {
  const Format int4 = parse_format("int4-g32");
  EXPECT_EQ(int4.code_row_bytes(64), 32u);
  EXPECT_EQ(int4.code_row_bytes(33), 17u);
  EXPECT_EQ(int4.scale_rows(10), 10u);
  EXPECT_EQ(int4.scale_cols(64), 2u);
  EXPECT_EQ(int4.scale_cols(33), 2u);
  const Format tensor = parse_format("fp8-tensor");
  EXPECT_EQ(tensor.scale_rows(10), 1u);
  EXPECT_EQ(tensor.scale_cols(64), 1u);
  const Format channel = parse_format("fp8-channel");
  EXPECT_EQ(channel.scale_rows(10), 10u);
  EXPECT_EQ(channel.scale_cols(64), 1u);
  const Format dense = parse_format("bf16");
  EXPECT_EQ(dense.code_row_bytes(5), 10u);
  EXPECT_EQ(dense.scale_rows(5) + dense.scale_cols(5), 0u);
}

TEST(Format, Fp8BlockScaleShapesMatchTheGoldenOnes) {
  for (const Json& row : testing::golden_micro()["fp8_block_scale_shapes"]) {
    const auto weight = row["weight"].get<std::vector<uint64_t>>();
    const auto scale = row["scale"].get<std::vector<uint64_t>>();
    const Format format = parse_format("fp8-block");
    EXPECT_EQ(format.scale_rows(weight[0]), scale[0]);
    EXPECT_EQ(format.scale_cols(weight[1]), scale[1]);
    EXPECT_EQ((weight[0] - 1) % format.block_rows + 1, row["rows_in_last_block"].get<uint64_t>());
    EXPECT_FALSE(check_shape(format, weight[0], weight[1]));
  }
}

TEST(Format, C31_odd_columns_are_refused) {
  const auto mx = check_shape(parse_format("mxfp4"), 4, 33);
  ASSERT_TRUE(mx);
  EXPECT_THAT(mx->reason, HasSubstr("33 columns"));
  EXPECT_THAT(mx->reason, HasSubstr("block of 32"));
  EXPECT_TRUE(mx->legal_groups.empty());
  const auto nv = check_shape(parse_format("nvfp4"), 4, 33);
  ASSERT_TRUE(nv);
  EXPECT_THAT(nv->reason, HasSubstr("33 columns"));
  EXPECT_THAT(nv->reason, HasSubstr("block of 16"));
  EXPECT_FALSE(check_shape(parse_format("mxfp4"), 4, 64));
  EXPECT_TRUE(check_shape(parse_format("mxfp8"), 4, 48));
  EXPECT_FALSE(check_shape(parse_format("nvfp4"), 4, 48));
}

TEST(Format, C29_group_512_of_768_columns_lists_the_legal_groups) {
  const auto problem = check_shape(parse_format("int4-g512"), 2048, 768);
  ASSERT_TRUE(problem);
  EXPECT_THAT(problem->reason, HasSubstr("768"));
  EXPECT_THAT(problem->reason, HasSubstr("512"));
  EXPECT_THAT(problem->legal_groups, ElementsAre(16, 32, 64, 128, 256));
  const auto odd = check_shape(parse_format("int4-g32-asym"), 1, 33);
  ASSERT_TRUE(odd);
  EXPECT_TRUE(odd->legal_groups.empty());
}

TEST(Format, WholeRowsAndPartialFp8BlocksFitEveryShape) {
  for (const char* name : {"fp8-block", "fp8-channel", "fp8-tensor", "bf16", "int4-channel", "fp8-block1x128"}) {
    EXPECT_FALSE(check_shape(parse_format(name), 3, 577)) << name;
  }
}

}  // namespace
}  // namespace nibble
