// Act-order: columns grouped out of order keep their own scales on every route, or the output is another model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <nlohmann/json.hpp>

#include "nibble/base/log.h"
#include "nibble/models/model.h"
#include "nibble/quantize/quantize.h"
#include "nibble/testing/golden.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/tiny.h"

namespace nibble {
namespace {

using testing::TinyCheckpoint;

class ActOrder : public ::testing::Test {
 protected:
  void SetUp() override { log::set_level(log::Level::kOff); }

  QuantizeRequest request(const Path& source, const std::string& format) const {
    QuantizeRequest request;
    request.source = source;
    request.target = dir_ / "target";
    request.format = parse_format(format);
    request.rule = default_rule(request.format);
    request.quiet = true;
    return request;
  }

  static double relative_error(const std::vector<float>& values, const std::vector<float>& expected) {
    EXPECT_EQ(values.size(), expected.size());
    double noise = 0;
    double signal = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      noise += std::pow(static_cast<double>(values[i]) - static_cast<double>(expected[i]), 2);
      signal += std::pow(static_cast<double>(expected[i]), 2);
    }
    return std::sqrt(noise / signal);
  }

  // Of all weights in `folder` whose name contains `part`.
  static std::map<std::string, std::vector<float>> values_in(const Path& folder, std::string_view part) {
    const Checkpoint checkpoint = Checkpoint::open(folder, {});
    Findings findings;
    const Model model = load_model(checkpoint, &findings);
    throw_first_error(findings);
    std::map<std::string, std::vector<float>> values;
    for (const Weight& weight : model.table.weights()) {
      if (weight.name.find(part) != std::string::npos)
        values[weight.name] = read_rows_f32(checkpoint, weight, 0, 0, weight.rows());
    }
    return values;
  }

  // INT4 in groups of 32 of 64 columns; `group_of` says which one a column is in.
  template <typename GroupOf>
  void write_source(const GroupOf& group_of) const {
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    tiny.quantize("compressed-tensors", "int4-g32");
    for (const std::string& name : tiny.matching("*.weight_scale")) {
      const uint64_t groups = tiny.at(name).shape.back();
      std::vector<int32_t> index(groups * 32);
      for (size_t k = 0; k < index.size(); ++k) index[k] = group_of(k, groups);
      std::vector<std::byte> bytes(index.size() * sizeof(int32_t));
      std::memcpy(bytes.data(), index.data(), bytes.size());
      const std::string module = name.substr(0, name.size() - std::string("weight_scale").size());
      // Scales far apart, so that those of the wrong group show.
      std::vector<float> scales = tiny.values(name);
      for (size_t i = 0; i < scales.size(); ++i) scales[i] *= i % 2 == 0 ? 1.0f : 8.0f;
      tiny.set_values(name, scales);
      tiny.add(module + "weight_g_idx", Dtype::kI32, {index.size()}, bytes);
    }
    tiny.config()["quantization_config"]["config_groups"]["group_0"]["weights"]["actorder"] = "group";
    tiny.write(dir_ / "source");
  }

  testing::TempDir dir_;
};

const auto kAlternating = [](size_t k, uint64_t groups) { return static_cast<int32_t>(k % groups); };
const auto kInPlace = [](size_t k, uint64_t) { return static_cast<int32_t>(k / 32); };
const auto kUnused = [](size_t, uint64_t) { return -1; };

// The values are those that the library which owns the layout decodes.
TEST_F(ActOrder, GptqInAnotherLayout) {
  const Path models = testing::golden_dir() / "models";
  QuantizeRequest gptq = request(models / "linear_gptq_act_order", "int4-g128-asym");
  gptq.generic = {".*"};
  const QuantizeResult result = quantize(gptq);
  const TinyCheckpoint expected = TinyCheckpoint::load(models / "expected/linear_gptq_act_order.safetensors");
  size_t compared = 0;
  for (const auto& [name, values] : values_in(dir_ / "target", "weight")) {
    EXPECT_LT(relative_error(values, expected.values(name)), 0.15) << name;
    ++compared;
  }
  EXPECT_EQ(compared, result.tensors.size());
  for (const QuantizeRow& row : result.tensors)
    EXPECT_NE(row.reason.find("act-order"), std::string::npos) << row.reason;
  EXPECT_TRUE(std::ranges::any_of(result.notes,
                                  [](const std::string& note) { return note.find("act-order") != std::string::npos; }));
}

TEST_F(ActOrder, InItsOwnLayout) {
  write_source(kAlternating);
  const auto before = values_in(dir_ / "source", "experts");
  quantize(request(dir_ / "source", "int4-g32"));
  const auto after = values_in(dir_ / "target", "experts");
  ASSERT_EQ(after.size(), before.size());
  for (const auto& [name, values] : before) EXPECT_LT(relative_error(after.at(name), values), 0.15) << name;
}

// The configuration says nothing of an order: what is kept cannot stay as it is stored either.
TEST_F(ActOrder, OfKeptWeights) {
  write_source(kAlternating);
  const auto before = values_in(dir_ / "source", "experts.1.");
  QuantizeRequest keep = request(dir_ / "source", "int4-g32");
  keep.keep = {"name:*experts.1.*"};
  quantize(keep);
  const TinyCheckpoint target = TinyCheckpoint::load(dir_ / "target");
  EXPECT_TRUE(target.matching("*g_idx").empty());
  const auto after = values_in(dir_ / "target", "experts.1.");
  for (const auto& [name, values] : before) {
    // One group a row has no order to be out of.
    EXPECT_EQ(target.has(name), name.find("down_proj") == std::string::npos) << name;
    EXPECT_LT(relative_error(after.at(name), values), 0.004) << name;
  }
}

// Most writers store an index that says what the place says.
TEST_F(ActOrder, AnIndexThatSaysNothingIsNone) {
  for (const bool unused : {false, true}) {
    if (unused) write_source(kUnused);
    if (!unused) write_source(kInPlace);
    const auto before = values_in(dir_ / "source", "experts");
    const QuantizeResult result = quantize(request(dir_ / "source", "int4-g32"));
    EXPECT_EQ(values_in(dir_ / "target", "experts"), before);
    for (const QuantizeRow& row : result.tensors) EXPECT_EQ(row.reason.find("act-order"), std::string::npos);
    std::filesystem::remove_all(dir_ / "target");
    std::filesystem::remove_all(dir_ / "source");
  }
}

}  // namespace
}  // namespace nibble
