#include "nibble/checkpoint/conventions/config_writer.h"

#include <gmock/gmock.h>

#include <map>

#include "nibble/checkpoint/conventions/checkpoint_for_test.h"

namespace nibble {
namespace {

struct Result {
  Json config;
  std::vector<std::pair<std::string, std::string>> files;
  const Json& settings() const { return config["quantization_config"]; }
};

Result write(const char* layout, const char* format, ConfigRequest request, Json config = Json::object()) {
  request.format = parse_format(format);
  Result result{std::move(config), {}};
  result.files = parse_layout(layout, request.format).write_config(request, &result.config);
  return result;
}

ConfigRequest request(std::string rule = "int4.amax7_5") {
  ConfigRequest out;
  out.rule = std::move(rule);
  out.kept = {"lm_head", "model.embed_tokens", "model.layers.0.mlp.gate"};
  return out;
}

// What the library itself writes leaves out what is null, and says nothing of observers.
Json without_nulls(const Json& value) {
  if (!value.is_object()) return value;
  Json out = Json::object();
  for (const auto& [key, member] : value.items()) {
    if (member.is_null() || key == "observer" || key == "observer_kwargs" || key == "zp_dtype") continue;
    out[key] = without_nulls(member);
  }
  return out;
}

TEST(ConfigWriter, CompressedTensorsSaysWhatTheLibrarySays) {
  for (const char* name : {"fp8_block", "fp8_channel", "fp8_tensor", "int4_g128", "int4_g128_asym", "int4_g32",
                           "int4_g32_asym", "mxfp4", "mxfp8", "nvfp4"}) {
    const Json golden =
        read_json(testing::golden_dir() / "configs" / ("compressed_tensors_" + std::string(name) + ".json"));
    std::string format = name;
    std::replace(format.begin(), format.end(), '_', '-');
    const Json config = write("compressed-tensors", format.c_str(), request()).settings();
    const Json& ours = config["config_groups"]["group_0"];
    const Json& theirs = golden["config_groups"]["group_0"];
    for (const char* key : {"weights", "input_activations", "output_activations", "targets"}) {
      const auto unordered = [](const Json& value) { return nlohmann::json::parse(value.dump()); };
      EXPECT_EQ(unordered(without_nulls(ours[key])), unordered(without_nulls(theirs[key]))) << name << " " << key;
    }
    for (const char* key : {"quant_method", "format", "quantization_status", "kv_cache_scheme", "version"}) {
      EXPECT_EQ(config[key], golden[key]) << name << " " << key;
    }
  }
}

TEST(ConfigWriter, CompressedTensorsIsComplete) {
  const Json config = write("compressed-tensors", "int4-g32-asym", request("mse.int4.asym")).settings();
  const Json& weights = config["config_groups"]["group_0"]["weights"];
  for (const char* key : {"num_bits", "type", "symmetric", "strategy", "group_size", "block_structure", "dynamic",
                          "actorder", "scale_dtype", "zp_dtype", "observer", "observer_kwargs"}) {
    EXPECT_TRUE(weights.contains(key)) << key;
  }
  EXPECT_EQ(weights.size(), 12U);
  EXPECT_EQ(weights["observer"], "mse");
  EXPECT_EQ(weights["observer_kwargs"]["rule"], "mse.int4.asym");
  EXPECT_EQ(weights["symmetric"], false);
  EXPECT_EQ(config["ignore"], Json({"lm_head", "model.embed_tokens", "model.layers.0.mlp.gate"}));
}

// One expression a kind, none of which a quantized module matches; ModelOpt's own export lists none.
TEST(ConfigWriter, NormsAreListedWhereTheFieldAcceptsIt) {
  ConfigRequest norms = request("mx.even");
  norms.kept = {"lm_head"};
  norms.quantized = {"model.layers.0.mlp.experts.0.up_proj", "model.layers.0.odd.ln"};
  norms.norms = {"model.layers.0.input_layernorm", "model.layers.0.odd-norm", "model.layers.1.input_layernorm",
                 "model.layers.1.ln", "model.norm"};
  EXPECT_EQ(write("compressed-tensors", "mxfp4", norms).settings()["ignore"],
            Json({"lm_head", "model.layers.0.odd-norm", "model.layers.1.ln", "re:(.*\\.)?input_layernorm$",
                  "re:(.*\\.)?norm$"}));
  EXPECT_EQ(write("deepseek", "fp8-block", norms).settings()["modules_to_not_convert"],
            Json({"lm_head", "model.layers.0.input_layernorm", "model.layers.0.odd-norm",
                  "model.layers.1.input_layernorm", "model.layers.1.ln", "model.norm"}));
  EXPECT_EQ(write("modelopt", "nvfp4", norms).settings()["ignore"], Json({"lm_head"}));
}

TEST(ConfigWriter, AStaleCarrierIsReplacedWhereverItStood) {
  const Json source = Json::parse(R"({"model_type": "kimi", "expert_dtype": "fp4",
    "quantization_config": {"quant_method": "fp8"}, "compression_config": {"format": "x"},
    "text_config": {"hidden_size": 64, "quantization_config": {"quant_method": "fp8"}}})");
  for (const auto& [layout, format] :
       std::vector<std::pair<const char*, const char*>>{{"compressed-tensors", "int4-g32"},
                                                        {"gpt-oss", "mxfp4"},
                                                        {"modelopt", "nvfp4"},
                                                        {"deepseek", "fp8-block"},
                                                        {"dense", "bf16"}}) {
    const Json config = write(layout, format, request(), source).config;
    EXPECT_EQ(config["model_type"], "kimi");
    EXPECT_EQ(config["text_config"], Json({{"hidden_size", 64}})) << layout;
    EXPECT_FALSE(config.contains("compression_config"));
    EXPECT_FALSE(config.contains("expert_dtype"));
    if (std::string(layout) == "dense") {
      EXPECT_FALSE(config.contains("quantization_config"));
    } else {
      EXPECT_NE(config["quantization_config"].value("quant_method", ""), "") << layout;
    }
  }
}

// Both carriers have the keys and values of the exporter's own files.
TEST(ConfigWriter, ModeloptHasItsOwnExportsKeys) {
  const Path golden = testing::golden_dir() / "configs";
  ConfigRequest exported;
  exported.kept = {"lm_head", "model.embed_tokens", "model.layers.0.mlp.gate", "model.layers.1.mlp.gate"};
  const Result result = write("modelopt", "nvfp4", exported);
  EXPECT_EQ(result.settings(), read_json(golden / "modelopt_w4a16_nvfp4.json"));
  ASSERT_EQ(result.files.size(), 1U);
  EXPECT_EQ(result.files[0].first, "hf_quant_config.json");
  EXPECT_EQ(parse_json(result.files[0].second, "side"),
            read_json(golden / "modelopt_w4a16_nvfp4.hf_quant_config.json"));
}

TEST(ConfigWriter, DeepseekSaysWhenScalesArePowersOfTwo) {
  const Json plain = write("deepseek", "fp8-block", request("fp8.amax")).settings();
  EXPECT_EQ(plain["quant_method"], "fp8");
  EXPECT_EQ(plain["fmt"], "e4m3");
  EXPECT_EQ(plain["activation_scheme"], "dynamic");
  EXPECT_EQ(plain["weight_block_size"], Json({128, 128}));
  EXPECT_EQ(plain["modules_to_not_convert"], Json({"lm_head", "model.embed_tokens", "model.layers.0.mlp.gate"}));
  EXPECT_FALSE(plain.contains("scale_fmt"));
  EXPECT_EQ(write("deepseek", "fp8-block", request("fp8.ue8m0")).settings()["scale_fmt"], "ue8m0");
}

TEST(ConfigWriter, C91_gpt_oss_keeps_the_released_list) {
  ConfigRequest own = request("mx.even");
  own.source_family = "gpt_oss";
  own.kept = {"lm_head", "model.embed_tokens", "model.layers.0.mlp.router", "model.layers.0.self_attn.q_proj"};
  const Json released = {"model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"};
  EXPECT_EQ(write("gpt-oss", "mxfp4", own).settings(),
            Json({{"modules_to_not_convert", released}, {"quant_method", "mxfp4"}}));

  const Json source = Json::parse(R"({"quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert":
                                      ["model.layers.*.self_attn", "lm_head"]}})");
  own.source_config = &source;
  EXPECT_EQ(write("gpt-oss", "mxfp4", own, source).settings()["modules_to_not_convert"],
            Json({"model.layers.*.self_attn", "lm_head", "model.embed_tokens", "model.layers.0.mlp.router"}));

  EXPECT_EQ(write("gpt-oss", "mxfp4", request("mx.even")).settings()["modules_to_not_convert"],
            Json({"lm_head", "model.embed_tokens", "model.layers.0.mlp.gate"}));
}

}  // namespace
}  // namespace nibble
