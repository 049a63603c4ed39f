// Parameters and caches of released models against public architecture tables
// (tests/data/models/published_counts.json).
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "nibble/base/check.h"
#include "nibble/base/json.h"
#include "nibble/ledger/kv_cache.h"
#include "nibble/ledger/param_counts.h"
#include "nibble/models/bundled_models.h"
#include "nibble/models/stacked_inventory.h"

namespace nibble {
namespace {

Json published() { return read_json(Path(NIBBLE_SOURCE_DIR) / "tests" / "data" / "models" / "published_counts.json"); }

// Their families are not written yet.
const std::set<std::string> kNotYet{
    // A: linear attention
    "qwen3-next-80b-a3b", "qwen3.5-35b-a3b", "qwen3.6-35b-a3b-nvfp4", "qwen3.5-122b-a10b", "qwen3.5-122b-a10b-nvfp4",
    "qwen3.5-397b-a17b", "qwen3.5-397b-a17b-nvfp4", "qwen3.8-2.4t-a95b", "qwen3.8-flash-next", "glm-5.3-flash",
    "ling-1t", "ling-3.0-flash", "nemotron-3-nano-30b-a3b", "nemotron-3-nano-30b-a3b-nvfp4",
    "nemotron-3.5-lightning-30b-a3b-nvfp4", "nemotron-3-super-120b-a12b-nvfp4", "nemotron-3-ultra-550b-a55b",
    "nemotron-3-ultra-550b-a55b-nvfp4",
    // B: latent attention
    "deepseek-v4.1-flash", "glm-4.7-flash", "glm-5", "glm-5-fp8", "glm-5.1", "glm-5.1-fp8", "glm-5.1-nvfp4", "glm-5.2",
    "glm-5.2-fp8", "glm-5.2-nvfp4", "glm-5.3", "hy3", "hy4-preview", "mistral-large-3", "mistral-small-4"};

std::vector<std::string> all_files() {
  std::vector<std::string> files;
  for (const Json& group : published()) {
    for (const Json& file : group["files"]) files.push_back(file.get<std::string>());
  }
  return files;
}

Json group_of(const std::string& file) {
  for (const Json& group : published()) {
    for (const Json& member : group["files"]) {
      if (member == file) return group;
    }
  }
  NIBBLE_CHECK(false);
  return {};
}

std::string rounded(double number, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, number);
  return text;
}

std::string billions(uint64_t number, int digits) { return rounded(static_cast<double>(number) / 1e9, digits); }

class PublishedCounts : public ::testing::TestWithParam<std::string> {};

TEST_P(PublishedCounts, are_ours) {
  const Json expected = group_of(GetParam());
  if (kNotYet.contains(GetParam())) GTEST_SKIP() << "its family is not written yet";
  const EmbeddedFile* file = find_bundled_model(GetParam());
  ASSERT_NE(file, nullptr);
  const Json config = parse_json(file->text, GetParam());
  const Family* family = find_family(config);
  ASSERT_NE(family, nullptr) << family_label(config);
  const ModelSpec spec = family->parse(config, GetParam());
  const ParamCounts counts = count_params(spec, stacked_inventory(*family, spec));
  EXPECT_EQ(billions(counts.total, 3), expected["total"]) << counts.total;
  EXPECT_EQ(billions(counts.mtp, 2), expected["mtp"]) << counts.mtp;
  EXPECT_EQ(billions(counts.routed, 3), expected["routed"]) << counts.routed;
  EXPECT_EQ(billions(counts.active, 3), expected["active"]) << counts.active;
  const KvCache cache(spec);
  EXPECT_EQ(cache.bytes_per_token(2), expected["kv_bf16"].get<double>());
  EXPECT_EQ(cache.bytes_per_token(1), expected["kv_fp8"].get<double>());
  EXPECT_EQ(rounded(static_cast<double>(cache.bytes_per_sequence(2)) / (1 << 20), 1), expected["fixed_mib"]);
}

INSTANTIATE_TEST_SUITE_P(Models, PublishedCounts, ::testing::ValuesIn(all_files()),
                         [](const ::testing::TestParamInfo<std::string>& test) {
                           std::string name = test.param;
                           for (char& c : name) {
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           }
                           return name;
                         });

TEST(PublishedCounts, cover_every_bundled_model) { EXPECT_EQ(all_files().size(), bundled_models().size()); }

}  // namespace
}  // namespace nibble
