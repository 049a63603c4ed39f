// --unify-scales: the report is what a comparison of the files' bytes finds, change by change.
#include "nibble/quantize/unify_scales.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "nibble/numerics/codec/e4m3.h"
#include "nibble/quantize/quantize.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/thrown_error.h"
#include "nibble/testing/tiny.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

TinyCheckpoint with_two_scales() {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  for (const std::string& name : tiny.matching("*.experts.*.up_proj.weight")) tiny.scale_values(name, 2.7f);
  tiny.quantize("modelopt", "nvfp4");
  return tiny;
}

QuantizeResult unify(const TinyCheckpoint& source, const Path& folder, const std::string& layout) {
  source.write(folder / "source");
  QuantizeRequest request;
  request.source = folder / "source";
  request.target = folder / "target";
  request.format = parse_writable_format("nvfp4");
  request.rule = default_rule(request.format);
  request.layout = layout;
  request.unify_scales = true;
  request.quiet = true;
  return quantize(request);
}

std::map<std::pair<uint8_t, uint8_t>, uint64_t> compare_bytes(const TinyTensor& before, const TinyTensor& after) {
  std::map<std::pair<uint8_t, uint8_t>, uint64_t> changes;
  EXPECT_EQ(before.data.size(), after.data.size());
  for (size_t i = 0; i < before.data.size(); ++i) {
    if (before.data[i] != after.data[i])
      ++changes[{static_cast<uint8_t>(before.data[i]), static_cast<uint8_t>(after.data[i])}];
  }
  return changes;
}

// A whole matrix would become zero: nothing that anybody can want.
TEST(UnifyScales, AnErasedMatrixIsRefused) {
  const TempDir dir;
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize("modelopt", "nvfp4");
  const std::string up = "model.layers.1.mlp.experts.2.up_proj.weight_scale_2";
  tiny.set_values(up, std::vector<float>{1e-20f});
  const Error error = thrown_error([&] { unify(tiny, dir.path(), "modelopt"); });
  EXPECT_NE(error.message().find("erase"), std::string::npos) << error.what();
  EXPECT_EQ(error.tensor(), "model.layers.1.mlp.experts.2.up_proj.weight");
  EXPECT_GE(error.ways_out().size(), 2u);
  EXPECT_FALSE(std::filesystem::exists(dir / "target" / "nibble.json"));
}

TEST(UnifyScales, TheManifestListsEveryChangedScale) {
  for (const std::string layout : {"modelopt", "compressed-tensors"}) {
    const TempDir dir;
    const TinyCheckpoint source = with_two_scales();
    const QuantizeResult result = unify(source, dir.path(), layout);
    TinyCheckpoint before = source;
    TinyCheckpoint after = TinyCheckpoint::load(dir / "target");
    const Json manifest = read_json(dir / "target" / "nibble.json");
    uint64_t changed = 0;
    size_t rows = 0;
    for (const Json& row : manifest.at("tensors")) {
      if (!row.contains("scale_changes")) continue;
      ++rows;
      const std::string name = row.at("name");
      const ScaleChanges recorded = read_scale_changes(row, "nibble.json");
      EXPECT_EQ(recorded.blocks, compare_bytes(before.at(name + "_scale"), after.at(name + "_scale"))) << name;
      EXPECT_EQ(row.at("changed_scales"), recorded.changed());
      EXPECT_LE(recorded.blocks.size(), 126u);
      changed += recorded.changed();
      const auto of_result = std::find_if(result.tensors.begin(), result.tensors.end(),
                                          [&](const QuantizeRow& r) { return r.name == name; });
      ASSERT_NE(of_result, result.tensors.end());
      EXPECT_EQ(of_result->scale_changes, recorded);
      if (recorded.second_scales.empty()) continue;
      ASSERT_EQ(recorded.second_scales.size(), 1u);
      EXPECT_EQ(recorded.second_scales[0].from, before.values(name + "_scale_2")[0]);
      const float to = recorded.second_scales[0].to;
      if (layout == "modelopt")
        EXPECT_EQ(to, after.values(name + "_scale_2")[0]);
      else
        EXPECT_EQ(1 / to, after.values(name.substr(0, name.size() - 6) + "weight_global_scale")[0]);
    }
    EXPECT_EQ(rows, 24u);  // 2 layers, 4 experts, gate, up and down
    EXPECT_GT(changed, 500u);
  }
}

TEST(UnifyScales, EachBlockIsRoundedOnceFromItsExactProduct) {
  EncodedMatrix low = EncodedMatrix::make(parse_format("nvfp4"), 16, 128);
  for (size_t i = 0; i < low.scales.size(); ++i) low.scales[i] = static_cast<std::byte>(i % 127);
  EncodedMatrix high = low;
  low.tensor_scale = {SecondLevel::kMultiply, 0.3f};
  high.tensor_scale = {SecondLevel::kMultiply, 0.7f};
  std::vector<EncodedMatrix> both{low, high};
  const auto reports = unify_second_level(both);
  EXPECT_EQ(both[1].scales, high.scales);
  EXPECT_TRUE(reports[1].second_scales.empty());
  EXPECT_EQ(both[0].tensor_scale.value, 0.7f);
  EXPECT_EQ(reports[0].second_scales, (std::vector<SecondScaleChange>{{0, 0.3f, 0.7f}}));
  uint64_t changed = 0;
  for (size_t i = 0; i < low.scales.size(); ++i) {
    const auto before = static_cast<uint8_t>(low.scales[i]);
    const auto after = static_cast<uint8_t>(both[0].scales[i]);
    const double wanted = static_cast<double>(e4m3_decode(before)) * static_cast<double>(0.3f) / 0.7f;
    // No other code is nearer.
    for (const int other : {after - 1, after + 1}) {
      if (other < 0 || other > 126) continue;
      EXPECT_LE(std::abs(static_cast<double>(e4m3_decode(after)) - wanted),
                std::abs(static_cast<double>(e4m3_decode(static_cast<uint8_t>(other))) - wanted) * (1 + 1e-6));
    }
    changed += before != after ? 1 : 0;
  }
  EXPECT_EQ(reports[0].changed(), changed);
}

TEST(UnifyScales, MatricesOfZerosStayAsTheyAre) {
  EncodedMatrix matrix = EncodedMatrix::make(parse_format("nvfp4"), 1, 32);
  matrix.scales = {std::byte{0x38}, std::byte{0x40}};
  matrix.tensor_scale = {SecondLevel::kMultiply, 0.0f};
  std::vector<EncodedMatrix> both{matrix, matrix};
  for (const ScaleChanges& report : unify_second_level(both)) EXPECT_EQ(report.changed(), 0u);
  EXPECT_EQ(both[0].scales, matrix.scales);
}

TEST(ScaleChanges, ThroughTheManifestAndBack) {
  ScaleChanges one;
  one.second_scales = {{0, 0.1f, 0.3f}};
  one.blocks = {{{0x38, 0x20}, 3}, {{0x01, 0x00}, 7}};
  one.largest_relative_change = 1;
  ScaleChanges sum;
  sum.add(one, 5);
  sum.add(one, 2);
  EXPECT_EQ(sum.changed(), 20u);
  EXPECT_EQ(sum.second_scales, (std::vector<SecondScaleChange>{{2, 0.1f, 0.3f}, {5, 0.1f, 0.3f}}));
  Json row = Json::object();
  add_scale_changes(sum, &row);
  EXPECT_EQ(row.at("scale_changes")[1], Json::parse(R"({"from": 1.0, "to": 0.125, "blocks": 6})"));
  EXPECT_EQ(read_scale_changes(parse_json(row.dump(), "row"), "row"), sum);
  EXPECT_EQ(read_scale_changes(Json::object(), "row"), ScaleChanges{});
  EXPECT_LT(row.dump().size(), scale_changes_bytes(2));
}

TEST(ScaleChanges, MalformedOnesAreRefused) {
  for (const char* text : {R"({"scale_changes": 1})", R"({"scale_changes": [1]})", R"({"scale_changes": [{}]})",
                           R"({"scale_changes": [{"from": 1.01, "to": 1, "blocks": 1}]})",
                           R"({"scale_changes": [{"from": 1, "to": 1e300, "blocks": 1}]})",
                           R"({"scale_changes": [{"from": 1, "to": 1, "blocks": -1}]})",
                           R"({"second_scales": [{"slice": 0, "from": 1e60, "to": 1}]})",
                           R"({"second_scales": [{"slice": 0, "from": 1}]})"})
    EXPECT_THROW(read_scale_changes(parse_json(text, "row"), "row"), Error) << text;
}

}  // namespace
}  // namespace nibble
