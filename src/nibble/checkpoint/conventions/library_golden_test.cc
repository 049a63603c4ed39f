// What the field's libraries stored and how they read it back: our values, rounded to the library's output type, are
// theirs bit for bit.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "nibble/checkpoint/conventions/gguf_for_test.h"

namespace nibble {
namespace {

using testing::GoldenFile;
using testing::GoldenTensor;

Dtype dtype_named(const std::string& name) { return parse_dtype(name).value(); }

// "plain.weight_scale" -> "plain": the cases of a golden file.
std::set<std::string> cases(const GoldenFile& file) {
  std::set<std::string> out;
  for (const std::string& name : file.names()) out.insert(name.substr(0, name.find('.')));
  return out;
}

std::vector<std::byte> rounded(const std::vector<float>& values, const std::string& dtype) {
  const Element element = dense_element(dtype_named(dtype)).value();
  std::vector<std::byte> out(values.size() * element_bits(element) / 8);
  convert({reinterpret_cast<const std::byte*>(values.data()), Element::kF32, 1, values.size(), values.size() * 4},
          element, out.data());
  return out;
}

std::vector<std::byte> without_minus_zero(std::vector<std::byte> values, const std::string& dtype) {
  const size_t width = dtype == "F32" ? 4 : 2;
  for (size_t i = 0; i + width <= values.size(); i += width) {
    bool zero = values[i + width - 1] == std::byte{0x80};
    for (size_t b = 0; b + 1 < width; ++b) zero = zero && values[i + b] == std::byte{0};
    if (zero) values[i + width - 1] = std::byte{0};
  }
  return values;
}

// Each case becomes a module of one checkpoint; everything but x and dequant is a stored part.
// `narrow_scales`: the library rounds float32 scales to its output type before it multiplies, we do not.
void compare(const std::string& file_name, const Json& settings, const std::string& convention,
             const std::string& format, bool narrow_scales = false) {
  SCOPED_TRACE(file_name);
  const GoldenFile golden("numerics/" + file_name + ".safetensors");
  TestCheckpoint test;
  test.file("config.json", json_text({{"quantization_config", settings}}));
  for (const std::string& name : golden.names()) {
    const std::string part = name.substr(name.find('.') + 1);
    if (part == "x" || part == "dequant") continue;
    const GoldenTensor& tensor = golden.at(name);
    if (narrow_scales && tensor.dtype == "F32") {
      std::vector<float> scales(tensor.bytes.size() / 4);
      std::memcpy(scales.data(), tensor.bytes.data(), tensor.bytes.size());
      test.add(name, Dtype::kBF16, tensor.shape, rounded(scales, "BF16"));
      continue;
    }
    test.add(name, dtype_named(tensor.dtype), tensor.shape, tensor.bytes);
  }
  for (const Finding& finding : test.findings()) ADD_FAILURE() << error_of(finding).what();
  EXPECT_FALSE(cases(golden).empty());
  for (const std::string& name : cases(golden)) {
    const Weight& weight = test.weight(name + ".weight");
    EXPECT_EQ(weight.convention->name(), convention);
    EXPECT_EQ(weight.format.name, format);
    const GoldenTensor& expected = golden.at(name + ".dequant");
    EXPECT_EQ(weight.shape, expected.shape);
    EXPECT_EQ(without_minus_zero(rounded(test.values(weight.name), expected.dtype), expected.dtype),
              without_minus_zero(expected.bytes, expected.dtype))
        << name;
    expect_cuts_equal_whole(test.checkpoint(), weight);
  }
}

Json stored_settings(const std::string& name) {
  return read_json(testing::golden_dir() / "configs" / (name + ".json"));
}

TEST(LibraryGolden, CompressedTensors) {
  const std::map<std::string, std::string> formats = {
      {"int4_channel", "int4-channel"},
      {"int4_g128", "int4-g128"},
      {"int4_g128_asym", "int4-g128-asym"},
      {"int4_g32", "int4-g32"},
      {"int4_g32_asym", "int4-g32-asym"},
      {"mxfp4", "mxfp4"},
      {"mxfp8", "mxfp8"},
      {"nvfp4", "nvfp4"},
      {"fp8_block", "fp8-block"},
      {"fp8_channel", "fp8-channel"},
      {"fp8_tensor", "fp8-tensor"},
  };
  for (const auto& [name, format] : formats) {
    const std::string file = "compressed_tensors_" + name;
    compare(file, stored_settings(file), "compressed-tensors", format);
  }
}

TEST(LibraryGolden, Modelopt) {
  compare("modelopt_nvfp4", stored_settings("modelopt_w4a16_nvfp4"), "modelopt", "nvfp4");
  compare("modelopt_mxfp8", stored_settings("modelopt_mxfp8"), "modelopt", "mxfp8");
  compare("modelopt_fp8_tensor", stored_settings("modelopt_fp8"), "modelopt", "fp8-tensor", true);
  compare("modelopt_fp8_channel", {{"quant_method", "modelopt"}}, "modelopt", "fp8-channel", true);
  compare("modelopt_fp8_block", {{"quant_method", "modelopt"}}, "modelopt", "fp8-block", true);
  compare("modelopt_mxfp4", {{"quant_method", "modelopt"}}, "modelopt", "mxfp4");
  compare("modelopt_int4_awq", {{"quant_method", "modelopt"}, {"group_size", 128}}, "modelopt", "int4-g128");
}

TEST(LibraryGolden, Gguf) {
  const std::map<std::string, std::pair<uint32_t, std::string>> types = {
      {"q4_0", {2, "int4-g32"}}, {"q4_1", {3, "q4_1"}},    {"q8_0", {8, "int8-g32"}},
      {"q4_k", {12, "q4_k"}},    {"mxfp4", {39, "mxfp4"}}, {"nvfp4", {40, "nvfp4"}},
  };
  for (const auto& [name, type] : types) {
    SCOPED_TRACE(name);
    const GoldenFile golden("numerics/gguf_" + name + ".safetensors");
    const GoldenTensor& expected = golden.at("values");
    TestGguf test;
    test.add("a.weight", type.first, expected.shape, golden.at("blocks").bytes);
    EXPECT_EQ(without_minus_zero(bytes_of(test.values("a.weight")), "F32"), without_minus_zero(expected.bytes, "F32"));
    EXPECT_EQ(test.weight("a.weight").format.name, type.second);
    expect_cuts_equal_whole(test.checkpoint(), test.weight("a.weight"));
  }
}

// Whole checkpoints of one layer, made and dequantized by other code.
TEST(LibraryGolden, GptqAndAwqLinears) {
  for (const char* name : {"linear_gptq", "linear_gptq_act_order", "linear_awq"}) {
    SCOPED_TRACE(name);
    const Checkpoint checkpoint = Checkpoint::open(testing::golden_dir() / "models" / name);
    Findings findings;
    const WeightTable table = WeightTable::build(checkpoint, &findings);
    for (const Finding& finding : findings) ADD_FAILURE() << error_of(finding).what();
    ASSERT_EQ(table.weights().size(), 1U);
    const Weight& weight = table.weights()[0];
    const GoldenFile expected("models/expected/" + std::string(name) + ".safetensors");
    EXPECT_EQ(bytes_of(read_rows_f32(checkpoint, weight, 0, 0, weight.rows())), expected.at("linear.weight").bytes);
    expect_cuts_equal_whole(checkpoint, weight);
  }
}

TEST(LibraryGolden, WholeModelsReadWithoutFindings) {
  for (const char* name :
       {"deepseek_v3", "deepseek_v3_fp8", "glm4_moe", "gpt_oss", "gpt_oss_mxfp4", "kimi_k2", "llama", "minimax_m2",
        "mixtral", "qwen3_moe", "qwen3_moe_int4", "qwen3_moe_nvfp4", "gpt_oss_gguf", "llama_gguf"}) {
    SCOPED_TRACE(name);
    const Path path = testing::golden_dir() / "models" / name;
    const bool gguf = std::string(name).ends_with("_gguf");
    const Checkpoint checkpoint = Checkpoint::open(gguf ? path / "model.gguf" : path);
    Findings findings;
    const WeightTable table = WeightTable::build(checkpoint, &findings);
    for (const Finding& finding : findings) ADD_FAILURE() << error_of(finding).what();
    EXPECT_FALSE(table.weights().empty());
    uint64_t bytes = 0;
    for (const Weight& weight : table.weights()) {
      bytes += weight.stored_bytes(checkpoint);
      EXPECT_NO_THROW(parse_format(weight.format.name)) << weight.name;
      if (!weight.opaque) read_rows_f32(checkpoint, weight, 0, 0, weight.rows());
    }
    uint64_t stored = 0;
    for (const StoredTensor& tensor : checkpoint.tensors()) stored += tensor.bytes;
    EXPECT_EQ(bytes, stored);
  }
}

}  // namespace
}  // namespace nibble
