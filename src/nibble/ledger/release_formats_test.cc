// Bytes of released models from their configurations alone. "Published" are figures of public architecture tables: the
// sum over the text model's tensors in the release's formats.
#include "nibble/ledger/release_formats.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "nibble/base/json.h"
#include "nibble/models/bundled_models.h"
#include "nibble/models/stacked_inventory.h"

namespace nibble {
namespace {

// A bundled model; family null if that is not written yet.
struct Release {
  explicit Release(const std::string& name)
      : config(parse_json(find_bundled_model(name)->text, name)), declared(config, name), family(find_family(config)) {
    if (family != nullptr) spec = family->parse(config, name);
  }
  std::vector<WeightItem> weights() const {
    return weigh(spec, stacked_inventory(*family, spec), release_formats(spec, declared));
  }

  Json config;
  DeclaredFormats declared;
  const Family* family;
  ModelSpec spec;
};

uint64_t total(const std::vector<WeightItem>& items) {
  uint64_t bytes = 0;
  for (const WeightItem& item : items) bytes += item.bytes;
  return bytes;
}

bool is_routed(const WeightItem& item) { return item.param.role == Role::kRoutedExpert; }

std::string rounded(double number, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, number);
  return text;
}

std::string gigabytes(uint64_t bytes, int digits) { return rounded(static_cast<double>(bytes) / 1e9, digits); }
std::string gibibytes(uint64_t bytes) { return rounded(static_cast<double>(bytes) / (1 << 30), 2); }

TEST(ReleaseFormats, PublishedBytesOfWholeModels) {
  EXPECT_EQ(gigabytes(total(Release("kimi-k2.5").weights()), 1), "594.2");
  EXPECT_EQ(gigabytes(total(Release("kimi-k3").weights()), 2), "1559.94");
  EXPECT_EQ(gibibytes(total(Release("gpt-oss-120b").weights())), "60.77");
  EXPECT_EQ(gibibytes(total(Release("gpt-oss-20b").weights())), "12.82");
}

// Published: 288.778 GB for the routed experts alone.
TEST(ReleaseFormats, PublishedBytesOfDeepseekV41sExperts) {
  const Release release("deepseek-v4.1-flash");
  ASSERT_NE(release.family, nullptr);
  uint64_t bytes = 0;
  for (const WeightItem& item : release.weights()) bytes += is_routed(item) ? item.bytes : 0;
  EXPECT_EQ(gigabytes(bytes, 3), "288.778");
}

// Published: the size of the tensors that its index states, MTP included.
TEST(ReleaseFormats, PublishedBytesOfQwen38) {
  const Release release("qwen3.8-2.4t-a95b");
  ASSERT_NE(release.family, nullptr);
  EXPECT_EQ(total(release.weights()), 4'892'365'451'008U);
}

// The published files have 69,187 tensors, of which 34,167 are scales (tests/data/models/README.md): one for each
// quantized matrix. Two of these are MTP's glue, which weigh() keeps in 16 bits for every model.
TEST(ReleaseFormats, PublishedNumberOfDeepseekV4sQuantizedMatrices) {
  const Release release("deepseek-v4-flash");
  const FormatOf format_of = release_formats(release.spec, release.declared);
  uint64_t count = 0;
  release.family->inventory(release.spec, [&](ParamSpec&& param) { count += format_of(param) ? 1U : 0U; });
  for (const char* glue : {"mtp.0.e_proj", "mtp.0.h_proj"}) count += release.declared.of(glue) ? 1U : 0U;
  EXPECT_EQ(count, 34'167U);
}

// Of the quantized releases; the others' experts are in 16 bits.
std::string expected_experts(const std::string& name) {
  static const std::map<std::string, std::string> kKnown{
      {"deepseek-r1", "fp8-block"},     {"deepseek-v3", "fp8-block"},   {"deepseek-v3.1", "fp8-block"},
      {"deepseek-v3.2", "fp8-block"},   {"deepseek-v4-flash", "mxfp4"}, {"deepseek-v4-pro", "mxfp4"},
      {"deepseek-v4.1-flash", "mxfp4"}, {"glm-5.3", "fp8-block"},       {"glm-5.3-flash", "fp8-block"},
      {"gpt-oss-120b", "mxfp4"},        {"gpt-oss-20b", "mxfp4"},       {"kimi-k2-instruct", "fp8-block"},
      {"kimi-k2-thinking", "int4-g32"}, {"kimi-k2.5", "int4-g32"},      {"kimi-k3", "mxfp4"},
      {"mimo-v2-flash", "fp8-block"},   {"mimo-v2.5-pro", "fp8-block"}, {"mimo-v2.6-flash", "mxfp4"},
      {"minimax-m2.5", "fp8-block"},    {"minimax-m2.7", "fp8-block"},  {"mistral-large-3", "fp8-block"}};
  if (name.ends_with("-nvfp4")) return "nvfp4";
  if (name.ends_with("-fp8")) return "fp8-block";
  const auto found = kKnown.find(name);
  return found == kKnown.end() ? "bf16" : found->second;
}

TEST(ReleaseFormats, RoutedExpertsOfEveryBundledModel) {
  size_t seen = 0;
  for (const EmbeddedFile& file : bundled_models()) {
    const std::string name(file.name);
    SCOPED_TRACE(name);
    const Release release(name);  // no error
    EXPECT_EQ(release.declared.any(), expected_experts(name) != "bf16");
    if (release.family == nullptr) continue;
    std::set<std::string> formats;
    for (const WeightItem& item : release.weights()) {
      if (is_routed(item)) formats.insert(item.format.name);
    }
    EXPECT_EQ(formats, std::set<std::string>{expected_experts(name)});
    ++seen;
  }
  EXPECT_GE(seen, 30U);
}

std::set<std::string> formats_of(const std::vector<WeightItem>& items, Role role) {
  std::set<std::string> formats;
  for (const WeightItem& item : items) {
    if (item.param.role == role && item.param.shape.size() >= 2) formats.insert(item.format.name);
  }
  return formats;
}

TEST(ReleaseFormats, WhatStaysInSixteenBits) {
  const std::set<std::string> kBf16{"bf16"};
  const auto kimi = Release("kimi-k2.5").weights();
  for (const Role role : {Role::kAttention, Role::kSharedExpert, Role::kDenseMlp, Role::kHead, Role::kRouter})
    EXPECT_EQ(formats_of(kimi, role), kBf16) << role_name(role);
  const auto k3 = Release("kimi-k3").weights();
  for (const Role role : {Role::kAttention, Role::kLatent, Role::kSharedExpert, Role::kHead})
    EXPECT_EQ(formats_of(k3, role), kBf16) << role_name(role);
  const auto v3 = Release("deepseek-v3").weights();
  for (const Role role : {Role::kHead, Role::kRouter, Role::kEmbedding})
    EXPECT_EQ(formats_of(v3, role), kBf16) << role_name(role);
  EXPECT_EQ(formats_of(v3, Role::kAttention), std::set<std::string>{"fp8-block"});
  for (const WeightItem& item : Release("gpt-oss-20b").weights())
    EXPECT_EQ(item.format.name == "bf16", !is_routed(item)) << item.param.name;
  const auto minimax = Release("minimax-m2.5").weights();
  for (const Role role : {Role::kHead, Role::kRouter, Role::kEmbedding})
    EXPECT_EQ(formats_of(minimax, role), kBf16) << role_name(role);
  EXPECT_EQ(formats_of(minimax, Role::kAttention), std::set<std::string>{"fp8-block"});
}

}  // namespace
}  // namespace nibble
