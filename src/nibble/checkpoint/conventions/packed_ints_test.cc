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

constexpr const char* kGroup32 =
    R"({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": {
        "targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}}}})";

std::string settings(int bits, int group, bool symmetric = true) {
  return R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": )" +
         std::to_string(bits) + R"(, "group_size": )" + std::to_string(group) + R"(, "symmetric": )" +
         (symmetric ? "true" : "false") + "}}}}";
}

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

std::vector<float> floats(const Json& rows) {
  std::vector<float> out;
  for (const Json& row : rows) {
    for (const float value : golden_floats(row)) out.push_back(value);
  }
  return out;
}

float as_bf16(float value) {
  std::byte bytes[2];
  convert({reinterpret_cast<const std::byte*>(&value), Element::kF32, 1, 1, 4}, Element::kBF16, bytes);
  return scale_value(ScaleType::kBF16, bytes);
}

std::vector<float> as_bf16(std::vector<float> values) {
  for (float& value : values) value = as_bf16(value);
  return values;
}

TEST(PackedInts, GoldenSymmetric) {
  const Json& golden = golden_micro()["int4_pack_quantized_sym"];
  for (const char* path : {"amax_over_7.5_bf16_path", "amax_over_7_f32_path"}) {
    const Json& stored = golden[path];
    TestCheckpoint test;
    std::vector<std::byte> rows = golden_bytes(stored["weight_packed_bytes_le"][0]);
    const auto second = golden_bytes(stored["weight_packed_bytes_le"][1]);
    rows.insert(rows.end(), second.begin(), second.end());
    EXPECT_EQ(rows, bytes_of(words(stored["weight_packed_i32"])));
    test.settings(kGroup32)
        .add("m.weight_packed", Dtype::kI32, {2, 8}, rows)
        .add("m.weight_scale", Dtype::kBF16, {2, 2}, bytes_of(halves(stored["weight_scale_bf16_bits"])))
        .add("m.weight_shape", Dtype::kI64, {2}, bytes_of<int64_t>({2, 64}));
    EXPECT_EQ(test.weight("m.weight").format, parse_format("int4-g32"));
    EXPECT_EQ(test.weight("m.weight").shape, (std::vector<uint64_t>{2, 64}));
    EXPECT_EQ(as_bf16(test.values("m.weight")), floats(stored["dequant_bf16"])) << path;
    EXPECT_EQ(test.weight("m.weight").stored_bytes(test.checkpoint()), 64u + 8 + 16);
    expect_cuts_equal_whole(test.checkpoint(), test.weight("m.weight"));
    EXPECT_TRUE(test.findings().empty());
  }
}

TestCheckpoint& add_golden_asymmetric(TestCheckpoint* test, bool packed_zeros) {
  const Json& golden = golden_micro()["int4_pack_quantized_asym"];
  test->settings(settings(4, 32, false))
      .add("m.weight_packed", Dtype::kI32, {10, 4}, bytes_of(words(golden["weight_packed_i32"])))
      .add("m.weight_scale", Dtype::kBF16, {10, 1}, bytes_of(halves(golden["weight_scale_bf16_bits"])))
      .add("m.weight_shape", Dtype::kI32, {2}, bytes_of<int32_t>({10, 32}));
  if (packed_zeros) {
    return test->add("m.weight_zero_point", Dtype::kI32, {2, 1}, bytes_of(words(golden["weight_zero_point_i32"])));
  }
  std::vector<int8_t> zeros;
  for (const Json& zero : golden["zero_point_int8"]) zeros.push_back(zero.get<int8_t>());
  return test->add("m.weight_zero_point", Dtype::kI8, {10, 1}, bytes_of(zeros));
}

// The golden values follow from its own q, zero points and scales: (q - z) * s.
TEST(PackedInts, GoldenAsymmetricWithPackedAndUnpackedZeroPoints) {
  const Json& golden = golden_micro()["int4_pack_quantized_asym"];
  std::vector<float> expected;
  for (size_t r = 0; r < 10; ++r) {
    const uint32_t bits = golden_hex(golden["weight_scale_bf16_bits"][r]) << 16;
    float scale = 0;
    std::memcpy(&scale, &bits, 4);
    for (const Json& q : golden["q"][r]) {
      expected.push_back(static_cast<float>(q.get<int>() - golden["zero_point_int8"][r].get<int>()) * scale);
    }
  }
  for (const bool packed : {true, false}) {
    TestCheckpoint test;
    add_golden_asymmetric(&test, packed);
    EXPECT_EQ(test.values("m.weight"), expected) << packed;
    expect_cuts_equal_whole(test.checkpoint(), test.weight("m.weight"));
    EXPECT_TRUE(test.findings().empty());
  }
}

TEST(PackedInts, ThreeBitsAreRefusedByName) {
  const Json& golden = golden_micro()["int3_packing"];
  for (const char* packing : {"dense_3_words", "legacy_10_per_word"}) {
    const auto row = words(golden[packing]);
    for (const std::string& config : {settings(3, 32), std::string(R"({"quant_method": "compressed-tensors"})")}) {
      TestCheckpoint test;
      test.settings(config)
          .add("m.weight_packed", Dtype::kI32, {1, row.size()}, bytes_of(row))
          .add("m.weight_scale", Dtype::kBF16, {1, 1})
          .add("m.weight_shape", Dtype::kI64, {2}, bytes_of<int64_t>({1, 32}));
      // 32 columns of 4 bits take 4 words, as many as the older packing of 3: without settings nothing can tell.
      if (row.size() == 4 && config.find("num_bits") == std::string::npos) continue;
      const std::string line = test.only_finding("unsupported");
      EXPECT_THAT(line, HasSubstr("int3"));
      EXPECT_THAT(line, HasSubstr("m.weight_packed"));
      EXPECT_TRUE(test.table().weights().empty());
    }
  }
}

// A slice of a weight with the scales of the whole.
TEST(PackedInts, C49_scales_of_another_split_are_refused) {
  TestCheckpoint test;
  test.settings(settings(4, 128))
      .add("m.weight_packed", Dtype::kI32, {4, 32})
      .add("m.weight_scale", Dtype::kBF16, {4, 16})
      .add("m.weight_shape", Dtype::kI64, {2}, bytes_of<int64_t>({4, 256}));
  const std::string line = test.only_finding("bad-shape");
  for (const char* part :
       {"m.weight_scale", "model.safetensors", "columns 256", "group 128", "expected 2", "stored 16"}) {
    EXPECT_THAT(line, HasSubstr(part));
  }
}

TEST(PackedInts, EightBitsSymmetricAndAsymmetric) {
  const std::vector<uint8_t> codes = {0, 1, 127, 128, 129, 200, 254, 255};
  const std::vector<float> scale = {0.5F};
  TestCheckpoint test;
  test.settings(R"({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights":
                    {"num_bits": 8, "strategy": "channel", "symmetric": true}}}})")
      .add("s.weight_packed", Dtype::kI32, {1, 2}, bytes_of(codes))
      .add("s.weight_scale", Dtype::kF32, {1, 1}, bytes_of(scale))
      .add("s.weight_shape", Dtype::kI64, {2}, bytes_of<int64_t>({1, 8}))
      .add("a.weight_packed", Dtype::kI32, {1, 2}, bytes_of(codes))
      .add("a.weight_scale", Dtype::kF32, {1, 1}, bytes_of(scale))
      .add("a.weight_shape", Dtype::kI64, {2}, bytes_of<int64_t>({1, 8}))
      .add("a.weight_zero_point", Dtype::kI32, {1, 1}, bytes_of<uint32_t>({250}));
  EXPECT_EQ(test.values("s.weight"), (std::vector<float>{-64, -63.5, -0.5, 0, 0.5, 36, 63, 63.5}));
  EXPECT_EQ(test.values("a.weight"), (std::vector<float>{-125, -124.5, -61.5, -61, -60.5, -25, 2, 2.5}));
  EXPECT_EQ(test.weight("s.weight").format.name, "int8-channel");
  EXPECT_EQ(test.weight("a.weight").format.name, "int8-channel-asym");
}

// 12 columns take 2 words; the four nibbles left over are raw zeros, not weights.
TEST(PackedInts, StopsAtWeightShape) {
  TestCheckpoint test;
  test.settings(R"({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights":
                    {"num_bits": 4, "strategy": "channel"}}}})")
      .add("m.weight_packed", Dtype::kI32, {2, 2}, bytes_of<uint32_t>({0x76543210, 0xBA98, 0x01234567, 0xFEDC}))
      .add("m.weight_scale", Dtype::kF16, {2, 1}, bytes_of<uint16_t>({0x3C00, 0x4000}))
      .add("m.weight_shape", Dtype::kI64, {2}, bytes_of<int64_t>({2, 12}));
  EXPECT_EQ(test.values("m.weight"), (std::vector<float>{-8, -7, -6, -5, -4,  -3,  -2,  -1,  0, 1,  2,  3,  //
                                                         -2, -4, -6, -8, -10, -12, -14, -16, 8, 10, 12, 14}));
  expect_cuts_equal_whole(test.checkpoint(), test.weight("m.weight"));
}

TEST(PackedInts, GroupIndexPicksTheScaleColumn) {
  for (const bool unused : {false, true}) {
    TestCheckpoint test;
    std::vector<int32_t> index(64, -1);
    for (size_t k = 0; !unused && k < index.size(); ++k) index[k] = k % 2 == 0 ? 1 : 0;
    test.settings(kGroup32)
        .add("m.weight_packed", Dtype::kI32, {1, 8}, repeated(0x99, 32))  // all +1
        .add("m.weight_scale", Dtype::kF32, {1, 2}, bytes_of<float>({10, 20}))
        .add("m.weight_shape", Dtype::kI64, {2}, bytes_of<int64_t>({1, 64}))
        .add("m.weight_g_idx", Dtype::kI32, {64}, bytes_of(index));
    const auto values = test.values("m.weight");
    for (size_t k = 0; k < 64; ++k) {
      EXPECT_EQ(values[k], unused ? (k < 32 ? 10 : 20) : (k % 2 == 0 ? 20 : 10)) << k;
    }
  }
}

TEST(PackedInts, AGroupIndexPastTheScalesIsRefused) {
  TestCheckpoint test;
  std::vector<int32_t> index(64, 0);
  index[7] = 2;
  test.settings(kGroup32)
      .add("m.weight_packed", Dtype::kI32, {1, 8})
      .add("m.weight_scale", Dtype::kF32, {1, 2})
      .add("m.weight_shape", Dtype::kI64, {2}, bytes_of<int64_t>({1, 64}))
      .add("m.weight_g_idx", Dtype::kI32, {64}, bytes_of(index));
  try {
    test.values("m.weight");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("m.weight_g_idx"));
    EXPECT_THAT(error.what(), HasSubstr("column 7, group 2, groups 2"));
  }
}

TEST(PackedInts, AStackIsItsMatrices) {
  TestCheckpoint test;
  const auto packed = noise(3 * 10 * 32, 1);
  const auto zeros = noise(3 * 2 * 2 * 4, 2);
  std::vector<float> scales(3 * 10 * 2);
  for (size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<float>(i + 1);
  const auto part = [](const std::vector<std::byte>& all, size_t e) {
    const auto size = static_cast<ptrdiff_t>(all.size() / 3);
    return std::vector<std::byte>(all.begin() + size * static_cast<ptrdiff_t>(e),
                                  all.begin() + size * static_cast<ptrdiff_t>(e + 1));
  };
  test.settings(settings(4, 32, false))
      .add("x.weight_packed", Dtype::kI32, {3, 10, 8}, packed)
      .add("x.weight_scale", Dtype::kF32, {3, 10, 2}, bytes_of(scales))
      .add("x.weight_zero_point", Dtype::kI32, {3, 2, 2}, zeros)
      .add("x.weight_shape", Dtype::kI64, {3}, bytes_of<int64_t>({3, 10, 64}));
  for (size_t e = 0; e < 3; ++e) {
    const std::string m = "m" + std::to_string(e);
    test.add(m + ".weight_packed", Dtype::kI32, {10, 8}, part(packed, e))
        .add(m + ".weight_scale", Dtype::kF32, {10, 2}, part(bytes_of(scales), e))
        .add(m + ".weight_zero_point", Dtype::kI32, {2, 2}, part(zeros, e))
        .add(m + ".weight_shape", Dtype::kI64, {2}, bytes_of<int64_t>({10, 64}));
  }
  for (uint64_t e = 0; e < 3; ++e) {
    EXPECT_EQ(test.values("x.weight", e), test.values("m" + std::to_string(e) + ".weight"));
  }
  expect_cuts_equal_whole(test.checkpoint(), test.weight("x.weight"));
}

TEST(PackedInts, AContradictingWeightShapeIsRefusedWhenRead) {
  TestCheckpoint test;
  test.settings(kGroup32)
      .add("m.weight_packed", Dtype::kI32, {2, 8})
      .add("m.weight_scale", Dtype::kBF16, {2, 2})
      .add("m.weight_shape", Dtype::kI64, {2}, bytes_of<int64_t>({2, 63}));
  try {
    test.values("m.weight");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("[2, 63]"));
    EXPECT_THAT(error.what(), HasSubstr("[2, 64]"));
  }
}

TEST(PackedInts, MissingPartnersAreNamed) {
  const std::vector<std::string> parts = {"weight_packed", "weight_scale", "weight_shape", "weight_zero_point"};
  for (size_t missing = 0; missing < parts.size(); ++missing) {
    TestCheckpoint test;
    test.settings(settings(4, 32, false));
    if (missing != 0) test.add("m.weight_packed", Dtype::kI32, {8, 8});
    if (missing != 1) test.add("m.weight_scale", Dtype::kBF16, {8, 2});
    if (missing != 2) test.add("m.weight_shape", Dtype::kI64, {2}, bytes_of<int64_t>({8, 64}));
    if (missing != 3) test.add("m.weight_zero_point", Dtype::kI32, {1, 2});
    EXPECT_TRUE(test.table().weights().empty());
    ASSERT_EQ(test.findings().size(), 1U) << parts[missing];
    EXPECT_EQ(test.findings()[0].rule, "unmatched-part");
    EXPECT_EQ(test.findings()[0].severity, Severity::kError);
    if (missing == 0) continue;
    EXPECT_THAT(test.findings()[0].message, HasSubstr("m." + parts[missing] + " is missing"));
  }
}

TEST(PackedInts, WeightBesidePackedWeightIsRefused) {
  TestCheckpoint test;
  test.settings(kGroup32)
      .add("m.weight", Dtype::kBF16, {2, 64})
      .add("m.weight_packed", Dtype::kI32, {2, 8})
      .add("m.weight_scale", Dtype::kBF16, {2, 2})
      .add("m.weight_shape", Dtype::kI64, {2}, bytes_of<int64_t>({2, 64}));
  EXPECT_THAT(test.only_finding("mixed"), HasSubstr("m.weight"));
}

}  // namespace
}  // namespace nibble
