#include <gmock/gmock.h>

#include "nibble/checkpoint/conventions/checkpoint_for_test.h"

namespace nibble {
namespace {

using testing::golden_floats;
using testing::golden_hex;
using testing::golden_micro;
using ::testing::HasSubstr;

std::vector<uint32_t> words(const Json& rows) {
  std::vector<uint32_t> out;
  for (const Json& row : rows) {
    if (row.is_array()) {
      for (const Json& word : row) out.push_back(golden_hex(word));
    } else {
      out.push_back(golden_hex(row));
    }
  }
  return out;
}

std::vector<uint16_t> halves(const Json& rows) {
  std::vector<uint16_t> out;
  for (const uint32_t word : words(rows)) out.push_back(static_cast<uint16_t>(word));
  return out;
}

// W[o][k] = scale[g][o] * (code[k][o] - zero[g][o]) from the golden tables, g = index[k].
std::vector<float> expected_values(const Json& golden, const Json& zeros, const Json& index) {
  std::vector<float> out;
  for (size_t o = 0; o < 8; ++o) {
    for (size_t k = 0; k < 16; ++k) {
      const auto g = index[k].get<size_t>();
      const auto bits = static_cast<uint16_t>(golden_hex(golden_micro()["gptq"]["scales_f16_bits"][g][o]));
      const float scale = scale_value(ScaleType::kF16, reinterpret_cast<const std::byte*>(&bits));
      out.push_back(scale * static_cast<float>(golden["codes_in_out"][k][o].get<int>() - zeros[g][o].get<int>()));
    }
  }
  return out;
}

std::vector<float> first_row_of_columns(const std::vector<float>& values) {
  std::vector<float> out;
  out.reserve(8);
  for (size_t o = 0; o < 8; ++o) out.push_back(values[o * 16]);
  return out;
}

void add_gptq(TestCheckpoint* test, const char* zeros, const char* index) {
  const Json& golden = golden_micro()["gptq"];
  test->add("m.qweight", Dtype::kI32, {2, 8}, bytes_of(words(golden["qweight_i32"])))
      .add("m.qzeros", Dtype::kI32, {2, 1}, bytes_of(words(golden[zeros])))
      .add("m.scales", Dtype::kF16, {2, 8}, bytes_of(halves(golden["scales_f16_bits"])));
  if (index == nullptr) return;
  test->add("m.g_idx", Dtype::kI32, {16}, bytes_of(golden[index].get<std::vector<int32_t>>()));
}

TEST(Gptq, GoldenVersionsZerosAndOrders) {
  const Json& golden = golden_micro()["gptq"];
  struct Case {
    const char* format;
    const char* stored_zeros;
    const char* zeros;
    const char* index;
  };
  for (const Case& c :
       {Case{"gptq", "qzeros_v1_sym", "zeros_sym", "g_idx"}, Case{"gptq_v2", "qzeros_v2_sym", "zeros_sym", "g_idx"},
        Case{"gptq", "qzeros_v1_asym_wordwise", "zeros_asym", "g_idx"},
        Case{"gptq_v2", "qzeros_v2_asym", "zeros_asym", "g_idx"},
        Case{"gptq_v2", "qzeros_v2_asym", "zeros_asym", "g_idx_desc_act_example"}}) {
    TestCheckpoint test;
    test.settings(R"({"quant_method": "gptq", "bits": 4, "group_size": 8, "checkpoint_format": ")" +
                  std::string(c.format) + "\"}");
    add_gptq(&test, c.stored_zeros, c.index);
    EXPECT_EQ(test.weight("m.weight").shape, (std::vector<uint64_t>{8, 16}));
    EXPECT_EQ(test.weight("m.weight").format.name, "int4-g8-asym");
    EXPECT_EQ(test.values("m.weight"), expected_values(golden, golden[c.zeros], golden[c.index])) << c.stored_zeros;
    EXPECT_FALSE(test.weight("m.weight").convention->rows_contiguous(test.weight("m.weight")));
    expect_cuts_equal_whole(test.checkpoint(), test.weight("m.weight"));
    EXPECT_TRUE(test.findings().empty());
    if (std::string(c.zeros) == "zeros_asym") {
      const bool act_order = std::string(c.index) == "g_idx_desc_act_example";
      EXPECT_EQ(first_row_of_columns(test.values("m.weight")),
                golden_floats(golden[act_order ? "dequant_asym_row0_with_desc_act_g_idx" : "dequant_asym_row0"]));
    }
  }
}

// K = 256, g = 128; every code is 1 above its zero point, so a value is its scale.
TestCheckpoint& add_act_order(TestCheckpoint* test, bool index) {
  test->add("m.qweight", Dtype::kI32, {32, 8}, repeated(0x99, 32 * 8 * 4))
      .add("m.qzeros", Dtype::kI32, {2, 1}, repeated(0x77, 8))
      .add("m.scales", Dtype::kF16, {2, 8},
           bytes_of<uint16_t>({0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00, 0x3C00,  //
                               0x4000, 0x4000, 0x4000, 0x4000, 0x4000, 0x4000, 0x4000, 0x4000}));
  if (!index) return *test;
  std::vector<int32_t> groups(256);
  for (size_t k = 0; k < 256; ++k) groups[k] = static_cast<int32_t>(k % 2);
  return test->add("m.g_idx", Dtype::kI32, {256}, bytes_of(groups));
}

TEST(Gptq, C81_act_order_takes_the_group_of_each_column) {
  TestCheckpoint ordered;
  ordered.settings(R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": true})");
  add_act_order(&ordered, true);
  const auto values = ordered.values("m.weight");
  for (size_t k = 0; k < 256; ++k) EXPECT_EQ(values[k], k % 2 == 0 ? 1 : 2) << k;
  // Whoever splits over K takes the columns' groups along: the second half still uses both.
  const EncodedMatrix rows = read_rows(ordered.checkpoint(), ordered.weight("m.weight"), 0, 0, 8);
  ASSERT_EQ(rows.column_group.size(), 256U);
  EXPECT_EQ(rows.column_group[128], 0U);
  EXPECT_EQ(rows.column_group[129], 1U);
}

TEST(Gptq, C81_without_an_index_groups_are_consecutive) {
  TestCheckpoint plain;
  plain.settings(R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": false})");
  add_act_order(&plain, false);
  const auto values = plain.values("m.weight");
  for (size_t k = 0; k < 256; ++k) EXPECT_EQ(values[k], k < 128 ? 1 : 2) << k;
  EXPECT_TRUE(plain.findings().empty());

  TestCheckpoint missing;
  missing.settings(R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": true})");
  add_act_order(&missing, false);
  EXPECT_THAT(missing.findings().at(0).message, HasSubstr("m.g_idx is missing"));
}

TEST(Gptq, EightBits) {
  TestCheckpoint test;
  test.settings(R"({"quant_method": "gptq", "bits": 8, "group_size": 4})")
      .add("m.qweight", Dtype::kI32, {1, 4},
           bytes_of<uint8_t>({0, 1, 2, 3, 128, 129, 130, 131, 255, 254, 253, 252, 4, 5, 6, 7}))
      .add("m.qzeros", Dtype::kI32, {1, 1}, bytes_of<uint8_t>({127, 127, 254, 255}))
      .add("m.scales", Dtype::kF16, {1, 4}, bytes_of<uint16_t>({0x3C00, 0x3C00, 0x4000, 0x3C00}));
  // Adding one to every byte of the word: 128, 128, 255 and 0, the last carry leaving the word.
  EXPECT_EQ(test.values("m.weight"), (std::vector<float>{-128, -127, -126, -125,  //
                                                         0, 1, 2, 3,              //
                                                         0, -2, -4, -6,           //
                                                         4, 5, 6, 7}));
  EXPECT_EQ(test.weight("m.weight").format.name, "int8-g4-asym");
}

TEST(Gptq, OtherLayoutsAreRefusedByName) {
  {
    TestCheckpoint test;
    test.settings(R"({"quant_method": "gptq", "bits": 4, "group_size": 8, "checkpoint_format": "marlin"})");
    add_gptq(&test, "qzeros_v1_sym", "g_idx");
    EXPECT_THAT(test.findings().at(0).message, HasSubstr("marlin"));
    EXPECT_EQ(test.findings().at(0).rule, "unsupported");
  }
  {
    TestCheckpoint test;
    test.settings(R"({"quant_method": "gptq", "bits": 3, "group_size": 128})")
        .add("m.qweight", Dtype::kI32, {12, 32})
        .add("m.qzeros", Dtype::kI32, {1, 3})
        .add("m.scales", Dtype::kF16, {1, 32});
    EXPECT_THAT(test.findings().at(0).message, HasSubstr("3 bits"));
    EXPECT_EQ(test.findings().at(0).rule, "unsupported");
  }
}

TEST(Gptq, C49_groups_of_another_split_are_refused) {
  TestCheckpoint test;
  test.settings(R"({"quant_method": "gptq", "bits": 4, "group_size": 128})")
      .add("m.qweight", Dtype::kI32, {32, 8})
      .add("m.qzeros", Dtype::kI32, {16, 1})
      .add("m.scales", Dtype::kF16, {16, 8});
  EXPECT_THAT(error_of(test.findings().at(0)).what(),
              HasSubstr("columns 256, groups_stored 16, group 128, groups_expected 2"));
}

TEST(Gptq, WithoutSettingsTheVersionIsAGuessAndSaidSo) {
  TestCheckpoint test;
  add_gptq(&test, "qzeros_v1_sym", "g_idx");
  ASSERT_EQ(test.findings().size(), 1U);
  EXPECT_EQ(test.findings()[0].severity, Severity::kWarning);
  EXPECT_THAT(test.findings()[0].message, HasSubstr("version 1"));
}

TEST(Awq, GoldenGemm) {
  const Json& golden = golden_micro()["awq_gemm"];
  TestCheckpoint test;
  test.settings(R"({"quant_method": "awq", "bits": 4, "group_size": 8, "version": "gemm"})")
      .add("m.qweight", Dtype::kI32, {16, 1}, bytes_of(words(golden["qweight_i32"])))
      .add("m.qzeros", Dtype::kI32, {2, 1}, bytes_of(words(golden["qzeros_i32"])))
      .add("m.scales", Dtype::kF16, {2, 8}, bytes_of(halves(golden_micro()["gptq"]["scales_f16_bits"])));
  const Json& gptq = golden_micro()["gptq"];
  EXPECT_EQ(test.values("m.weight"), expected_values(golden, gptq["zeros_asym"], gptq["g_idx"]));
  EXPECT_EQ(first_row_of_columns(test.values("m.weight")), golden_floats(golden["dequant_row0"]));
  expect_cuts_equal_whole(test.checkpoint(), test.weight("m.weight"));
  EXPECT_TRUE(test.findings().empty());
}

TEST(Awq, OtherVersionsAreRefusedByName) {
  for (const char* version : {"gemv", "gemv_fast", "marlin"}) {
    TestCheckpoint test;
    test.settings(R"({"quant_method": "awq", "bits": 4, "group_size": 8, "version": ")" + std::string(version) + "\"}")
        .add("m.qweight", Dtype::kI32, {8, 8})
        .add("m.qzeros", Dtype::kI32, {8, 1})
        .add("m.scales", Dtype::kF16, {8, 8});
    ASSERT_FALSE(test.findings().empty());
    EXPECT_EQ(test.findings()[0].rule, "unsupported");
    EXPECT_THAT(test.findings()[0].message, HasSubstr(version));
  }
}

TEST(Awq, MissingPartnersAreNamed) {
  TestCheckpoint test;
  test.settings(R"({"quant_method": "awq", "bits": 4, "group_size": 8})")
      .add("a.qweight", Dtype::kI32, {16, 1})
      .add("a.scales", Dtype::kF16, {2, 8})
      .add("b.qzeros", Dtype::kI32, {2, 1})
      .add("b.scales", Dtype::kF16, {2, 8});
  ASSERT_GE(test.findings().size(), 2U);
  EXPECT_THAT(test.findings()[0].message, HasSubstr("a.qzeros is missing"));
  EXPECT_THAT(test.findings()[1].message, HasSubstr("b.qweight is missing"));
}

}  // namespace
}  // namespace nibble
