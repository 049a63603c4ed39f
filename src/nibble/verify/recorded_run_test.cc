#include "nibble/verify/recorded_run.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nibble/testing/temp_dir.h"
#include "nibble/testing/thrown_error.h"

namespace nibble {
namespace {

using testing::thrown_error;
using testing::value_of;

Json manifest() {
  return Json{{"contract", kContractVersion},
              {"nibble", kToolVersion},
              {"recipe",
               {{"family", "llama"},
                {"format", "mxfp4"},
                {"rule", "mx.even"},
                {"rule_given", false},
                {"layout", "compressed-tensors"},
                {"include", Json::array()},
                {"keep", Json::array()},
                {"generic", Json::array()},
                {"bit_exact_with", ""},
                {"unify_scales", false},
                {"shard_bytes", 1000},
                {"sha256_inputs", false}}},
              {"tensors", {{{"name", "a"}, {"role", "mlp"}}, {{"name", "b"}}}}};
}

Error refusal(const Json& json) {
  return thrown_error([&] { parse_recorded_run(json.dump(), "m/nibble.json"); });
}

TEST(RecordedRun, RecipeAndRows) {
  const RecordedRun run = parse_recorded_run(manifest().dump(), "m/nibble.json");
  EXPECT_EQ(run.path, "m/nibble.json");
  EXPECT_EQ(run.tool, kToolVersion);
  EXPECT_EQ(run.recipe.family, "llama");
  EXPECT_EQ(run.recipe_text, manifest()["recipe"].dump());
  ASSERT_EQ(run.rows.size(), 2u);
  EXPECT_EQ(run.rows.at("a"), R"({"name":"a","role":"mlp"})");
}

TEST(RecordedRun, AnotherContractIsNamedWithBothVersions) {
  for (const Json& contract : {Json(kContractVersion + 1), Json("1"), Json(0), Json(1.5)}) {
    Json other = manifest();
    other["contract"] = contract;
    const Error error = refusal(other);
    EXPECT_EQ(value_of(error, "recorded"), contract.is_string() ? "1" : contract.dump()) << error.what();
    EXPECT_EQ(value_of(error, "this_nibble"), std::to_string(kContractVersion));
    EXPECT_EQ(error.file(), "m/nibble.json");
  }
}

TEST(RecordedRun, WhatIsMissingOrMalformedIsNamed) {
  for (const char* key : {"contract", "nibble", "recipe", "tensors"}) {
    Json less = manifest();
    less.erase(key);
    EXPECT_EQ(value_of(refusal(less), "field"), key);
    EXPECT_EQ(refusal(less).file(), "m/nibble.json");
  }
  for (const Json& rows : {Json(7), Json::array({7}), Json::array({Json::object()}), Json::array({{{"name", 7}}}),
                           Json::array({{{"name", "a"}}, {{"name", "a"}}})}) {
    Json other = manifest();
    other["tensors"] = rows;
    const Error error = refusal(other);
    EXPECT_EQ(error.file(), "m/nibble.json") << rows.dump();
    EXPECT_FALSE(error.ways_out().empty()) << rows.dump();
  }
  EXPECT_EQ(refusal(Json::array()).file(), "m/nibble.json");
}

TEST(RecordedRun, NoManifest) {
  const testing::TempDir dir;
  const Error error = thrown_error([&] { read_recorded_run(dir.path()); });
  EXPECT_EQ(error.file(), (dir / "nibble.json").string());
  EXPECT_FALSE(error.ways_out().empty());
}

}  // namespace
}  // namespace nibble
