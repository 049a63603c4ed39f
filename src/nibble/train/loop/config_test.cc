#include "nibble/train/loop/config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/base/strings.h"

namespace nibble {
namespace {

Json good() {
  return parse_json(R"({"source": "model", "data": {"task": "table-walk:symbols=16", "sequence": 40},
                        "quantization": {"format": "int4-g32", "rule": "int4.amax7", "roles": ["routed_expert"]},
                        "steps": 600, "batch": 64, "learning_rate": 1e-3, "balance_loss": 0.01, "seed": 3})",
                    "good");
}

TrainConfig parse(const Json& json) { return parse_train_config(json, "c.json", "/folder"); }

// The error's whole text.
std::string refusal(const Json& json) {
  try {
    parse(json);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

void expect_refused(const Json& json, const std::vector<std::string>& parts) {
  const std::string text = refusal(json);
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
}

TEST(TrainConfig, reads_what_stands_there) {
  const TrainConfig config = parse(good());
  EXPECT_EQ(config.source, Path("/folder/model"));
  EXPECT_EQ(config.rounding->format.name, "int4-g32");
  EXPECT_EQ(config.rounding->rule.name(), "int4.amax7");
  EXPECT_TRUE(config.rounding->during_training);
  EXPECT_EQ(config.rounding->roles, std::vector<Role>{Role::kRoutedExpert});
  EXPECT_EQ(config.steps, 600U);
  EXPECT_EQ(config.optimizer.learning_rate, 1e-3);
  EXPECT_EQ(config.balance_loss, 0.01);
  EXPECT_EQ(config.seed, 3U);
  EXPECT_EQ(config.data.sequence, 40U);
}

TEST(TrainConfig, unknown_keys_are_refused_with_the_nearest) {
  Json json = good();
  json["learning_rat"] = 1;
  expect_refused(json, {"c.json", "learning_rat", "nearest learning_rate"});
  json = good();
  json["quantization"]["rul"] = "x";
  expect_refused(json, {"quantization.rul", "nearest quantization.rule"});
  json = good();
  json["data"]["sequenc"] = 3;
  expect_refused(json, {"data.sequenc", "nearest data.sequence"});
  json = good();
  json.erase("source");
  json["model"] = {{"hiden_size", 64}};
  expect_refused(json, {"model.hiden_size", "nearest model.hidden_size"});
  json = good();
  json["quantization"]["roles"] = {"routed_experts"};
  expect_refused(json, {"routed_experts", "nearest routed_expert"});
}

TEST(TrainConfig, what_contradicts_itself_is_refused_with_the_numbers) {
  Json json = good();
  json["export"] = {{"format", "int4-g64"}};
  expect_refused(json, {"trained_group 32", "exported_group 64"});
  json["export"] = {{"format", "int4-g32"}};
  EXPECT_EQ(refusal(json), "accepted");
  json = good();
  json["model"] = {{"hidden_size", 64}};
  expect_refused(json, {"source", "model", "given 2"});
  json = good();
  json["data"]["tokens"] = "chains.jsonl";
  expect_refused(json, {"task, tokens, text", "given 2"});
  json = good();
  json["steps"] = 0;
  expect_refused(json, {"steps", "found 0", "least 1"});
  json = good();
  json["teacher"] = "other";
  expect_refused(json, {"teacher", "distill"});
  json = good();
  json["quantization"]["activations"] = "nvfp4";
  expect_refused(json, {"other tokens", "nvfp4"});
  json = good();
  json["quantization"]["rule"] = "mx.even";
  EXPECT_NE(refusal(json), "accepted");
  json = good();
  json["objective"] = "next_tokens";
  expect_refused(json, {"next_tokens", "next_token, distill"});
}

TEST(TrainConfig, distillation_has_the_source_for_its_teacher) {
  Json json = good();
  json["objective"] = "distill";
  EXPECT_EQ(parse(json).teacher, Path("/folder/model"));
}

TEST(TrainConfig, fingerprints_tell_runs_apart) {
  const std::string one = config_fingerprint(parse(good()));
  const std::vector<std::pair<const char*, double>> changes = {
      {"seed", 4}, {"steps", 601}, {"learning_rate", 2e-3}, {"balance_loss", 0.02}, {"clip", 2}};
  for (const auto& [key, value] : changes) {
    Json json = good();
    json[key] = value;
    EXPECT_NE(config_fingerprint(parse(json)), one) << key;
  }
  Json json = good();
  json["quantization"]["rule"] = "int4.amax7_5";
  EXPECT_NE(config_fingerprint(parse(json)), one);
  json = good();
  json["checkpoint_every"] = 7;  // decides about no weight
  EXPECT_EQ(config_fingerprint(parse(json)), one);
}

TEST(Recipes, are_there_and_hold_the_published_numbers) {
  const TrainConfig config = load_recipe("chain-moe");
  EXPECT_EQ(config.steps, 3000U);
  EXPECT_EQ(config.batch, 64U);
  EXPECT_EQ(config.data.sequence, 520U);
  EXPECT_EQ(config.optimizer.learning_rate, 3e-3);
  EXPECT_EQ(config.balance_loss, 0.01);
  EXPECT_FALSE(config.rounding);
  uint64_t qat = 0;
  for (const std::string_view name : recipe_names()) {
    const TrainConfig one = load_recipe(name);
    if (!starts_with(name, "chain-moe-qat-")) continue;
    ++qat;
    EXPECT_EQ(one.steps, 600U) << name;
    EXPECT_EQ(one.optimizer.learning_rate, 1e-3) << name;
    EXPECT_TRUE(one.rounding && one.rounding->during_training) << name;
  }
  EXPECT_GE(qat, 3U);
  EXPECT_THROW(load_recipe("chain-mo"), Error);
}

}  // namespace
}  // namespace nibble
