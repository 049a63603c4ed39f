#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "nibble/verify/verify_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

std::vector<std::byte> one_f32(float value) {
  std::vector<std::byte> bytes(sizeof(value));
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

// A scale beside every stored part that ends in `codes`, as `suffix`.
void store_scales(TinyCheckpoint* tiny, const std::string& codes, const std::string& suffix) {
  for (const std::string& name : tiny->matching("*.mlp.experts.*." + codes))
    tiny->add(name.substr(0, name.size() - codes.size()) + suffix, Dtype::kF32, {1}, one_f32(0.02f));
}

TEST(InputScale, AlgorithmsThatPromiseOne) {
  for (const char* algorithm : {"NVFP4", "W4A8_NVFP4_FP8", "W4A16_NVFP4"}) {
    SCOPED_TRACE(algorithm);
    const bool promised = std::string(algorithm) != "W4A16_NVFP4";
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    tiny.quantize("modelopt", "nvfp4");
    tiny.config()["quantization_config"] = {{"quant_method", "modelopt"}, {"quant_algo", algorithm}};
    const Findings found = of_rule(verify_tiny(tiny), "input-scale");
    ASSERT_EQ(found.size(), promised ? 1u : 0u) << text_of(found);
    if (!promised) continue;
    EXPECT_EQ(found[0].severity, Severity::kError);
    EXPECT_EQ(value_of(found[0], "key"), "quant_algo");
    EXPECT_EQ(value_of(found[0], "declared"), algorithm);
    EXPECT_EQ(value_of(found[0], "missing"), value_of(found[0], "of"));

    store_scales(&tiny, "weight", "input_scale");
    EXPECT_TRUE(of_rule(verify_tiny(tiny), "input-scale").empty());
    tiny.drop(tiny.matching("*.experts.0.up_proj.input_scale").front());
    const Findings one = of_rule(verify_tiny(tiny), "input-scale");
    ASSERT_EQ(one.size(), 1u);
    EXPECT_EQ(value_of(one[0], "missing"), "1");
    EXPECT_NE(one[0].tensor.find("experts.0.up_proj"), std::string::npos) << one[0].tensor;
  }
}

TEST(InputScale, GroupsThatPromiseOne) {
  struct Case {
    const char *format, *codes, *suffix;
    Json dynamic;
    bool promised;
  };
  const std::vector<Case> cases = {{"fp8-tensor", "weight", "input_scale", false, true},
                                   {"fp8-tensor", "weight", "input_scale", true, false},
                                   {"fp8-tensor", "weight", "input_scale", nullptr, false},
                                   {"nvfp4", "weight_packed", "input_global_scale", "local", true},
                                   {"nvfp4", "weight_packed", "input_global_scale", true, false}};
  for (const Case& one : cases) {
    SCOPED_TRACE(std::string(one.format) + " " + one.dynamic.dump());
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    tiny.quantize("compressed-tensors", one.format);
    Json& activations = tiny.config()["quantization_config"]["config_groups"]["group_0"]["input_activations"];
    activations = one.dynamic.is_null() ? Json(nullptr) : Json{{"num_bits", 8}, {"dynamic", one.dynamic}};
    const Findings found = of_rule(verify_tiny(tiny), "input-scale");
    ASSERT_EQ(found.size(), one.promised ? 1u : 0u) << text_of(found);
    store_scales(&tiny, one.codes, one.suffix);
    EXPECT_TRUE(of_rule(verify_tiny(tiny), "input-scale").empty());
  }
}

TEST(InputScale, BlocksWithAStaticScheme) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize("deepseek", "fp8-block");
  EXPECT_TRUE(of_rule(verify_tiny(tiny), "input-scale").empty());
  tiny.config()["quantization_config"]["activation_scheme"] = "static";
  const Findings found = of_rule(verify_tiny(tiny), "input-scale");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(value_of(found[0], "key"), "activation_scheme");
  store_scales(&tiny, "weight", "input_scale");
  EXPECT_TRUE(of_rule(verify_tiny(tiny), "input-scale").empty());
}

}  // namespace
}  // namespace nibble
