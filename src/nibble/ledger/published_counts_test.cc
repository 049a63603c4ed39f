// Parameters and caches of released models against public architecture tables
// (tests/data/models/published_counts.json).
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "nibble/base/check.h"
#include "nibble/base/json.h"
#include "nibble/ledger/kv_cache.h"
#include "nibble/ledger/param_counts.h"
#include "nibble/models/bundled_models.h"
#include "nibble/models/stacked_inventory.h"

namespace nibble {
namespace {

Json published() { return read_json(Path(NIBBLE_SOURCE_DIR) / "tests" / "data" / "models" / "published_counts.json"); }

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
  const EmbeddedFile* file = find_bundled_model(GetParam());
  ASSERT_NE(file, nullptr);
  const Json config = parse_json(file->text, GetParam());
  const Family* family = find_family(config);
  ASSERT_NE(family, nullptr) << family_label(config);
  const ModelSpec spec = family->parse(config, GetParam());
  const ParamCounts counts = count_params(spec, stacked_inventory(*family, spec));
  EXPECT_EQ(billions(counts.total, 3), expected["total"].get<std::string>()) << counts.total;
  // None, or not counted.
  if (expected["mtp"] != "0.00") {
    EXPECT_EQ(billions(counts.mtp, 2), expected["mtp"].get<std::string>()) << counts.mtp;
  }
  EXPECT_EQ(billions(counts.routed, 3), expected["routed"].get<std::string>()) << counts.routed;
  EXPECT_EQ(billions(counts.active, 3), expected["active"].get<std::string>()) << counts.active;
  const KvCache cache(spec);
  EXPECT_EQ(cache.bytes_per_token(2), expected["kv_bf16"].get<double>());
  EXPECT_EQ(cache.bytes_per_token(1), expected["kv_fp8"].get<double>());
  EXPECT_EQ(rounded(static_cast<double>(cache.bytes_per_sequence(2)) / (1 << 20), 1),
            expected["fixed_mib"].get<std::string>());
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
