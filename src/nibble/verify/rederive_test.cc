// What quantize wrote is made again and found equal, whatever it is made from and in whichever layout.
#include "nibble/verify/rederive.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "nibble/base/log.h"
#include "nibble/testing/folder.h"
#include "nibble/verify/rederive_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

struct Run {
  const char* source;
  const char* format;
  std::function<void(QuantizeRequest*)> change = [](QuantizeRequest*) {};
};

void expect_equal(const Run& run) {
  SCOPED_TRACE(std::string(run.source) + " to " + run.format);
  log::set_level(log::Level::kOff);
  const TempDir dir;
  Path source = golden_dir() / "models" / run.source;
  if (std::filesystem::exists(source / "model.gguf")) source = source / "model.gguf";
  QuantizeRequest request = request_for(source, dir / "target", run.format);
  run.change(&request);
  quantize(request);
  const auto before = folder_contents(dir / "target");
  const VerifyReport report = rederive_quietly(dir / "target", source);
  EXPECT_TRUE(rederive_findings(report).empty()) << text_of(rederive_findings(report));
  ASSERT_TRUE(report.rederived.has_value());
  EXPECT_EQ(report.rederived->tensors, report.tensors);
  EXPECT_EQ(report.rederived->differing, 0u);
  EXPECT_EQ(report.rederived->differing_bytes, 0u);
  // Everything but the manifest is compared.
  uint64_t bytes = 0;
  for (const auto& [name, content] : before) bytes += name == "nibble.json" ? 0 : content.size();
  EXPECT_EQ(report.rederived->bytes, bytes);
  EXPECT_TRUE(folder_contents(dir / "target") == before) << "something was written";
}

TEST(Rederive, EveryFormat) {
  for (const char* format :
       {"int4-g32", "int4-g16-asym", "mxfp4", "nvfp4", "mxfp8", "fp8-block", "fp8-channel", "fp8-tensor", "bf16"})
    expect_equal({"qwen3_moe", format});
}

TEST(Rederive, OtherLayoutsAndFamilies) {
  expect_equal({"gpt_oss", "mxfp4"});
  expect_equal({"deepseek_v3", "fp8-block"});
  expect_equal({"qwen3_moe", "nvfp4", [](QuantizeRequest* r) { r->layout = "modelopt"; }});
  expect_equal({"glm4_moe", "mxfp4"});
}

TEST(Rederive, FromLowBit) {
  for (const char* source : {"gpt_oss_mxfp4", "deepseek_v3_fp8", "qwen3_moe_nvfp4", "qwen3_moe_int4"})
    expect_equal({source, "bf16"});
  expect_equal({"gpt_oss_mxfp4", "nvfp4"});
  expect_equal({"gpt_oss_mxfp4", "mxfp4"});
  expect_equal({"qwen3_moe_nvfp4", "nvfp4", [](QuantizeRequest* r) { r->unify_scales = true; }});
}

// An exact cast of an exact cast: nothing differs from either base, by bytes or by values.
TEST(Rederive, ExactCasts) {
  log::set_level(log::Level::kOff);
  for (const char* format : {"fp8-tensor", "fp8-channel", "fp8-block", "mxfp8"}) {
    SCOPED_TRACE(format);
    const TempDir dir;
    const Path mxfp4 = golden_dir() / "models" / "gpt_oss_mxfp4";
    QuantizeRequest request = request_for(mxfp4, dir / "nvfp4", "nvfp4");
    request.layout = "compressed-tensors";
    quantize(request);
    quantize(request_for(dir / "nvfp4", dir / "target", format));
    const VerifyReport report = rederive_quietly(dir / "target", dir / "nvfp4");
    EXPECT_TRUE(of_severity(report, Severity::kError).empty()) << text_of(report.findings);
    ASSERT_TRUE(report.rederived.has_value());
    EXPECT_EQ(report.rederived->differing, 0u);
    VerifyOptions options;
    options.against = mxfp4;
    uint64_t compared = 0;
    for (const AgainstRow& row : verify_quietly(dir / "target", options).against) {
      EXPECT_EQ(row.rel_rmse, 0) << row.name;
      EXPECT_TRUE(row.problem.empty()) << row.name << ": " << row.problem;
      ++compared;
    }
    EXPECT_GT(compared, 0u);
  }
}

TEST(Rederive, FromGguf) {
  expect_equal({"llama_gguf", "int4-g32"});
  expect_equal({"llama_gguf", "bf16"});
  expect_equal({"gpt_oss_gguf", "mxfp4"});
}

TEST(Rederive, EveryOptionIsInTheRecipe) {
  expect_equal({"qwen3_moe", "int4-g32", [](QuantizeRequest* r) {
                  r->rule = parse_rule("mse.int4.amax7", r->format);
                  r->rule_given = true;
                }});
  expect_equal({"qwen3_moe", "nvfp4", [](QuantizeRequest* r) { r->shard_bytes = 60'000; }});
  expect_equal({"qwen3_moe", "mxfp4", [](QuantizeRequest* r) {
                  r->include = {"all_linears"};
                  r->keep = {"name:model.layers.0.*"};
                  r->sha256_inputs = true;
                }});
  expect_equal({"qwen3_moe", "nvfp4", [](QuantizeRequest* r) {
                  r->bit_exact = BitExact::kModelOpt;
                  r->rule = parse_rule(bit_exact_rule(r->bit_exact, r->format), r->format);
                }});
  expect_equal({"linear_awq", "bf16", [](QuantizeRequest* r) { r->generic = {".*"}; }});
}

}  // namespace
}  // namespace nibble
