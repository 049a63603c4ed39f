// Scales come in the type of whoever wrote them: a layout that stores another one holds the same values, and the
// weights are not rounded again.
#include <gtest/gtest.h>

#include <cstring>

#include "nibble/base/log.h"
#include "nibble/models/model.h"
#include "nibble/quantize/quantize.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/tiny.h"

namespace nibble {
namespace {

using testing::TinyCheckpoint;

class StoredScaleType : public ::testing::Test {
 protected:
  void SetUp() override { log::set_level(log::Level::kOff); }

  QuantizeRequest request(const std::string& format, const std::string& layout) const {
    QuantizeRequest request;
    request.source = dir_ / "source";
    request.target = dir_ / "target";
    request.format = parse_format(format);
    request.rule = default_rule(request.format);
    request.layout = layout;
    request.quiet = true;
    return request;
  }

  static std::map<std::string, std::vector<float>> experts_in(const Path& folder) {
    const Checkpoint checkpoint = Checkpoint::open(folder, {});
    Findings findings;
    const Model model = load_model(checkpoint, &findings);
    throw_first_error(findings);
    std::map<std::string, std::vector<float>> values;
    for (const Weight& weight : model.table.weights()) {
      if (weight.name.find("experts") != std::string::npos)
        values[weight.name] = read_rows_f32(checkpoint, weight, 0, 0, weight.rows());
    }
    return values;
  }

  // With the scales in another type. Those of 16 bits are what the values are from then on.
  void write_source(const std::string& layout, const std::string& format, Dtype type) const {
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    tiny.quantize(layout, format);
    for (const std::string& name : tiny.matching("*.experts.*scale*")) {
      const std::vector<float> values = tiny.values(name);
      tiny.at(name).dtype = type;
      tiny.at(name).data.resize(values.size() * dtype_bits(type) / 8);
      tiny.set_values(name, values);
    }
    tiny.write(dir_ / "source");
  }

  testing::TempDir dir_;
};

TEST_F(StoredScaleType, OfTheSourceInAnyLayout) {
  struct Case {
    const char *from, *format, *to;
  };
  for (const Case& c : {Case{"deepseek", "fp8-block", ""}, Case{"deepseek", "fp8-block", "compressed-tensors"},
                        Case{"compressed-tensors", "fp8-block", "deepseek"},
                        Case{"compressed-tensors", "fp8-channel", ""}, Case{"compressed-tensors", "fp8-tensor", ""},
                        Case{"compressed-tensors", "int4-g32", ""}, Case{"compressed-tensors", "int4-g32-asym", ""}}) {
    for (const Dtype type : {Dtype::kBF16, Dtype::kF16, Dtype::kF32}) {
      SCOPED_TRACE(std::string(c.from) + " " + c.format + " to " + c.to + ", " + std::string(dtype_name(type)));
      write_source(c.from, c.format, type);
      const auto before = experts_in(dir_ / "source");
      quantize(request(c.format, c.to));
      EXPECT_EQ(experts_in(dir_ / "target"), before);
      std::filesystem::remove_all(dir_ / "target");
      std::filesystem::remove_all(dir_ / "source");
    }
  }
}

// That library's scales have the type of the model, in whatever layout they are stored.
TEST_F(StoredScaleType, OfALibraryInAnotherLayout) {
  TinyCheckpoint::qwen3_moe().write(dir_ / "source");
  QuantizeRequest exact = request("fp8-block", "compressed-tensors");
  exact.bit_exact = BitExact::kCompressedTensors;
  quantize(exact);
  const auto expected = experts_in(dir_ / "target");
  EXPECT_EQ(TinyCheckpoint::load(dir_ / "target").at("model.layers.0.mlp.experts.0.up_proj.weight_scale").dtype,
            Dtype::kBF16);
  exact.target = dir_ / "other";
  exact.layout = "deepseek";
  quantize(exact);
  EXPECT_EQ(experts_in(dir_ / "other"), expected);
  EXPECT_EQ(TinyCheckpoint::load(dir_ / "other").at("model.layers.0.mlp.experts.0.up_proj.weight_scale_inv").dtype,
            Dtype::kF32);
}

}  // namespace
}  // namespace nibble
