#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "nibble/models/family.h"
#include "nibble/verify/verify_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

VerifyReport cut(const TinyOptions& tiny_options, const char* format, uint64_t tp, uint64_t ep) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe(tiny_options);
  tiny.quantize("compressed-tensors", format);
  VerifyOptions options;
  options.tp = tp;
  options.ep = ep;
  return verify_tiny(tiny, options);
}

TinyOptions sized(uint64_t intermediate, uint64_t experts = 4, uint64_t layers = 1) {
  TinyOptions options;
  options.intermediate = intermediate;
  options.hidden = 128;
  options.experts = experts;
  options.layers = layers;
  return options;
}

TEST(ParallelCut, C43_group_boundary_is_cut) {
  const VerifyReport report = cut(sized(640), "int4-g128", 2, 1);
  const Findings found = of_rule(report, "parallel-cut");
  ASSERT_EQ(found.size(), 1u) << text_of(report.findings);
  EXPECT_EQ(found[0].severity, Severity::kError);
  EXPECT_EQ(value_of(found[0], "width"), "640");
  EXPECT_EQ(value_of(found[0], "tp"), "2");
  EXPECT_EQ(value_of(found[0], "local"), "320");
  EXPECT_EQ(value_of(found[0], "block"), "128");
  EXPECT_EQ(value_of(found[0], "remainder"), "64");
  EXPECT_EQ(value_of(found[0], "legal_tp"), "1, 5");
  EXPECT_NE(found[0].message.find("EP = 2"), std::string::npos) << found[0].message;
  EXPECT_FALSE(report.ok);
}

TEST(ParallelCut, WhatIsOfferedWorks) {
  EXPECT_TRUE(of_rule(cut(sized(640), "int4-g128", 1, 2), "parallel-cut").empty());
  EXPECT_TRUE(of_rule(cut(sized(640), "int4-g128", 2, 2), "parallel-cut").empty());
  EXPECT_TRUE(of_rule(cut(sized(256), "int4-g128", 2, 1), "parallel-cut").empty());
  EXPECT_TRUE(of_rule(cut(sized(640), "int4-g128", 1, 1), "parallel-cut").empty());
}

TEST(ParallelCut, C45_no_tensor_parallel_size_works) {
  const Findings found = of_rule(cut(sized(320), "fp8-block", 2, 1), "parallel-cut");
  ASSERT_FALSE(found.empty());
  for (const Finding& finding : found) {
    EXPECT_EQ(value_of(finding, "width"), "320");
    EXPECT_EQ(value_of(finding, "legal_tp"), "1");
    EXPECT_NE(finding.message.find("EP = 2"), std::string::npos);
  }
}

TEST(ParallelCut, C47_ranks_would_get_half_blocks) {
  const Findings found = of_rule(cut(sized(768), "fp8-block", 4, 1), "parallel-cut");
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(value_of(found[0], "local"), "192");
  EXPECT_EQ(value_of(found[0], "remainder"), "64");
}

TEST(ParallelCut, HeadsAndExperts) {
  const Findings heads = of_rule(cut(sized(768), "int4-g32", 3, 1), "parallel-cut");
  EXPECT_NE(text_of(heads).find("4 attention heads cannot be divided by TP 3"), std::string::npos) << text_of(heads);
  const Findings experts = of_rule(cut(sized(768), "int4-g32", 1, 3), "parallel-cut");
  ASSERT_EQ(experts.size(), 1u);
  EXPECT_EQ(value_of(experts[0], "remainder"), "1");
  EXPECT_EQ(value_of(experts[0], "legal"), "1, 2, 4");
}

TEST(ParallelCut, FewKeyHeadsAreCopied) {
  EXPECT_TRUE(of_rule(cut(sized(768), "int4-g32", 4, 1), "parallel-cut").empty());  // 4 heads, 2 key/value heads
}

// Ling in small: every parameter of its architecture, zero.
TinyCheckpoint ling(const TinyOptions& options) {
  TinyCheckpoint tiny;
  tiny.config() = TinyCheckpoint::qwen3_moe(options).config();
  tiny.config().update(Json{{"architectures", {"BailingMoeV2ForCausalLM"}},
                            {"model_type", "bailing_moe_v2"},
                            {"num_shared_experts", 1},
                            {"first_k_dense_replace", 0}});
  const Family& family = *find_family(tiny.config());
  family.inventory(family.parse(tiny.config(), "ling"), [&](ParamSpec&& param) {
    uint64_t elements = 1;
    for (const uint64_t dim : param.shape) elements *= dim;
    tiny.add(param.name, Dtype::kBF16, param.shape, std::vector<std::byte>(2 * elements));
  });
  return tiny;
}

// 8 query heads and 2 key/value heads of 64 in one matrix: over two GPUs 256 rows of queries each, but 64 of keys.
TEST(ParallelCut, PartsOfAFusedMatrixAreCutByThemselves) {
  TinyOptions tiny_options = sized(256);
  tiny_options.heads = 8;
  tiny_options.head_dim = 64;
  TinyCheckpoint tiny = ling(tiny_options);
  tiny.quantize("compressed-tensors", "fp8-block", "*.query_key_value.weight");
  VerifyOptions options;
  options.tp = 2;
  options.ep = 1;
  const Findings found = of_rule(verify_tiny(tiny, options), "parallel-cut");
  ASSERT_EQ(found.size(), 1u) << text_of(found);
  EXPECT_EQ(value_of(found[0], "width"), "128");
  EXPECT_EQ(value_of(found[0], "local"), "64");
}

}  // namespace
}  // namespace nibble
