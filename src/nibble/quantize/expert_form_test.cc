// Experts that nobody selected still have to be what the family's loaders read.
#include "nibble/quantize/expert_form.h"

#include <gtest/gtest.h>

#include "nibble/base/log.h"
#include "nibble/quantize/quantize.h"
#include "nibble/testing/golden.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/tiny.h"

namespace nibble {
namespace {

using testing::TinyCheckpoint;

TinyCheckpoint quantized(const Path& source, const Path& target, const std::string& format,
                         std::vector<std::string> include) {
  log::set_level(log::Level::kOff);
  QuantizeRequest request;
  request.source = source;
  request.target = target;
  request.format = parse_format(format);
  if (!request.format.is_dense()) request.rule = default_rule(request.format);
  request.include = std::move(include);
  request.quiet = true;
  quantize(request);
  return TinyCheckpoint::load(target);
}

// A GGUF stacks gate, up and down apart and untransposed: no loader of the family's folders knows that form.
TEST(ExpertForm, StacksOfAGgufThatAreKeptHaveTheFamilysForm) {
  const testing::TempDir dir;
  const Path source = testing::golden_dir() / "models/gpt_oss_gguf/model.gguf";
  TinyCheckpoint whole = quantized(source, dir / "whole", "bf16", {});
  TinyCheckpoint part = quantized(source, dir / "part", "fp8-channel", {"attention"});
  const std::string experts = "model.layers.1.mlp.experts.";
  EXPECT_EQ(part.at(experts + "down_proj").shape, (std::vector<uint64_t>{4, 32, 64}));
  for (const char* name : {"gate_up_proj", "gate_up_proj_bias", "down_proj", "down_proj_bias"}) {
    ASSERT_TRUE(part.has(experts + name)) << name;
    EXPECT_EQ(part.at(experts + name).shape, whole.at(experts + name).shape) << name;
    EXPECT_TRUE(part.at(experts + name).data == whole.at(experts + name).data) << name;
  }
  EXPECT_FALSE(part.has(experts + "gate_proj"));
}

}  // namespace
}  // namespace nibble
