#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "nibble/verify/verify_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

TEST(ConfigContradiction, C57_both_files_are_named) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize("compressed-tensors", "int4-g32");
  const TempDir dir;
  const Path folder = dir / "tiny-modelopt-NVFP4";
  tiny.write(folder);
  EXPECT_TRUE(of_rule(verify_quietly(folder), "config-contradiction").empty());
  write_atomically(folder / "hf_quant_config.json",
                   std::string_view(R"({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4",
                       "group_size": 16, "exclude_modules": ["lm_head"]}})"));
  const VerifyReport report = verify_quietly(folder);
  const Findings found = of_rule(report, "config-contradiction");
  ASSERT_EQ(found.size(), 1u) << text_of(report.findings);
  EXPECT_EQ(found[0].severity, Severity::kWarning);
  EXPECT_NE(text_of(found[0]).find("hf_quant_config.json"), std::string::npos);
  EXPECT_NE(text_of(found[0]).find("/config.json"), std::string::npos);
  EXPECT_TRUE(report.ok);
}

TEST(ConfigContradiction, QuantizedAndNotDeclared) {
  for (const auto& [layout, format] : {std::pair{"compressed-tensors", "int4-g32"}, std::pair{"deepseek", "fp8-block"},
                                       std::pair{"modelopt", "nvfp4"}}) {
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    EXPECT_TRUE(of_rule(verify_tiny(tiny), "config-contradiction").empty());
    tiny.quantize(layout, format);
    EXPECT_TRUE(of_rule(verify_tiny(tiny), "config-contradiction").empty()) << format;
    tiny.config().erase("quantization_config");
    const Findings found = of_rule(verify_tiny(tiny), "config-contradiction");
    ASSERT_EQ(found.size(), 1u) << format;
    EXPECT_EQ(found[0].severity, Severity::kWarning);
    EXPECT_EQ(value_of(found[0], "modules"), "24");
  }
}

TEST(ConfigContradiction, ListedAsUnquantizedButQuantized) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize("compressed-tensors", "int4-g32");
  tiny.config()["quantization_config"]["ignore"].push_back("re:.*experts\\.3\\..*");
  const VerifyReport report = verify_tiny(tiny);
  const Findings found = of_rule(report, "config-contradiction");
  ASSERT_EQ(found.size(), 1u) << text_of(report.findings);
  EXPECT_EQ(found[0].severity, Severity::kWarning);
  EXPECT_EQ(value_of(found[0], "modules"), "6");
  EXPECT_EQ(value_of(found[0], "entry"), "re:.*experts\\.3\\..*");
}

TEST(ConfigContradiction, UnquantizedButNotListedIsANote) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize("compressed-tensors", "int4-g32");
  tiny.config()["quantization_config"]["ignore"] = Json::array({"lm_head"});
  const Findings found = of_rule(verify_tiny(tiny), "config-contradiction");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::kNote);
  EXPECT_EQ(value_of(found[0], "modules"), "8");  // q, k, v, o of two layers; the router is left out
}

TEST(ConfigContradiction, AnEmptyListOverUnquantizedLayersIsAWarning) {
  for (const auto& [layout, format] : {std::pair{"compressed-tensors", "nvfp4"}, std::pair{"modelopt", "nvfp4"}}) {
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    tiny.quantize(layout, format);
    Json& settings = tiny.config()["quantization_config"];
    for (const char* key : {"ignore", "exclude_modules"}) {
      if (settings.contains(key)) settings[key] = Json::array();
    }
    const Findings found = of_rule(verify_tiny(tiny), "config-contradiction");
    ASSERT_EQ(found.size(), 1u) << layout << text_of(found);
    EXPECT_EQ(found[0].severity, Severity::kWarning);
    EXPECT_EQ(value_of(found[0], "modules"), "8");
  }
}

}  // namespace
}  // namespace nibble
