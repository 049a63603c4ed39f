#include "nibble/quantize/recipe.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "nibble/testing/thrown_error.h"

namespace nibble {
namespace {

using testing::thrown_error;
using testing::value_of;

Json recipe() {
  return Json{{"family", "qwen3_moe"},
              {"format", "nvfp4"},
              {"rule", "mse.nv.two_level"},
              {"rule_given", true},
              {"layout", "modelopt"},
              {"include", {"routed_expert", "name:*.q_proj.*"}},
              {"keep", {"name:model.layers.0.*"}},
              {"generic", Json::array()},
              {"bit_exact_with", ""},
              {"unify_scales", false},
              {"shard_bytes", 60'000},
              {"sha256_inputs", true}};
}

Json dense_recipe() {
  Json dense = recipe();
  dense["format"] = "bf16";
  dense["rule"] = "";
  dense["layout"] = "dense";
  return dense;
}

Error refusal(const Json& json) {
  return thrown_error([&] { read_recipe(json, "folder/nibble.json"); });
}

TEST(Recipe, EveryFieldBecomesTheRequestAgain) {
  const Recipe read = read_recipe(recipe(), "nibble.json");
  EXPECT_EQ(read.family, "qwen3_moe");
  const QuantizeRequest& request = read.request;
  EXPECT_EQ(request.format.name, "nvfp4");
  EXPECT_EQ(request.rule.name(), "mse.nv.two_level");
  EXPECT_TRUE(request.rule_given);
  EXPECT_EQ(request.layout, "modelopt");
  EXPECT_EQ(request.include, (std::vector<std::string>{"routed_expert", "name:*.q_proj.*"}));
  EXPECT_EQ(request.keep, std::vector<std::string>{"name:model.layers.0.*"});
  EXPECT_TRUE(request.generic.empty());
  EXPECT_EQ(request.bit_exact, BitExact::kNone);
  EXPECT_FALSE(request.unify_scales);
  EXPECT_EQ(request.shard_bytes, 60'000u);
  EXPECT_TRUE(request.sha256_inputs);
}

TEST(Recipe, ADenseTargetHasNeitherRuleNorLayout) {
  const QuantizeRequest request = read_recipe(dense_recipe(), "nibble.json").request;
  EXPECT_TRUE(request.format.is_dense());
  EXPECT_EQ(request.rule.rule, nullptr);
  EXPECT_TRUE(request.layout.empty());
}

TEST(Recipe, EveryFieldIsNeeded) {
  const Json whole = recipe();
  for (const auto& [key, value] : whole.items()) {
    for (const bool null : {false, true}) {
      Json less = recipe();
      if (null) less[key] = nullptr;
      if (!null) less.erase(key);
      const Error error = refusal(less);
      EXPECT_EQ(error.file(), "folder/nibble.json") << key;
      EXPECT_EQ(value_of(error, "field"), key) << error.what();
      EXPECT_FALSE(error.ways_out().empty());
    }
  }
}

TEST(Recipe, EveryFieldOfAnotherTypeIsRefusedByName) {
  const Json whole = recipe();
  for (const auto& [key, value] : whole.items()) {
    for (const Json& wrong : {Json::object(), Json(-1), Json(0.5), Json::array({7})}) {
      Json other = recipe();
      other[key] = wrong;
      const Error error = refusal(other);
      EXPECT_EQ(error.file(), "folder/nibble.json") << key;
      EXPECT_NE(std::string(error.what()).find(key), std::string::npos) << error.what();
    }
  }
}

TEST(Recipe, WhatThisNibbleCannotMakeIsRefused) {
  const std::pair<const char*, const char*> wrong[] = {
      {"format", "int3-g32"}, {"format", "gguf-q6_k"}, {"format", "bf16"},      {"rule", "int4.amax7"},
      {"rule", ""},           {"rule", "nv.unknown"},  {"layout", "no-layout"}, {"layout", "gguf"},
      {"layout", "dense"},    {"layout", ""},          {"layout", "deepseek"},  {"bit_exact_with", "someone"},
  };
  for (const auto& [key, text] : wrong) {
    Json other = recipe();
    other[key] = text;
    const Error error = refusal(other);
    EXPECT_EQ(error.file(), "folder/nibble.json") << key << " " << text << ": " << error.what();
    EXPECT_FALSE(error.ways_out().empty()) << key << " " << text;
  }
  for (const char* key : {"rule", "layout"}) {
    Json other = dense_recipe();
    other[key] = "nv.two_level";
    EXPECT_EQ(value_of(refusal(other), "field"), key);
  }
}

TEST(Recipe, AnUnknownFieldMayDecideBytes) {
  Json more = recipe();
  more["seed"] = 7;
  EXPECT_EQ(value_of(refusal(more), "field"), "seed");
  EXPECT_EQ(refusal(Json::array()).file(), "folder/nibble.json");
}

}  // namespace
}  // namespace nibble
