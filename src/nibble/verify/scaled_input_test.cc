// Weights whose columns are scaled (AWQ of ModelOpt): said once, never as a wrong shape, and never quantized without
// their factors.
#include <gtest/gtest.h>

#include "nibble/base/error.h"
#include "nibble/verify/rederive_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

TinyCheckpoint awq() {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize("modelopt", "nvfp4", "*.self_attn.o_proj.weight");
  for (const std::string& name : tiny.matching("*.o_proj.weight")) {
    const std::string factors = name.substr(0, name.size() - 6) + "pre_quant_scale";
    tiny.add(factors, Dtype::kBF16, {64}, std::vector<std::byte>(128));
    tiny.set_values(factors, std::vector<float>(64, 0.5f));
  }
  return tiny;
}

TEST(ScaledInput, VerifySaysThatFactorsAreNotApplied) {
  const VerifyReport report = verify_tiny(awq());
  EXPECT_TRUE(report.ok) << text_of(report.findings);
  const Findings found = of_rule(report, "scaled-input");
  ASSERT_EQ(found.size(), 2u) << text_of(report.findings);
  EXPECT_EQ(found[0].severity, Severity::kWarning);
  EXPECT_EQ(found[0].tensor, "model.layers.0.self_attn.o_proj.pre_quant_scale");
}

TEST(ScaledInput, QuantizeNeverDropsTheFactors) {
  const TempDir dir;
  awq().write(dir / "source");
  for (const char* format : {"bf16", "mxfp4", "nvfp4"}) {
    QuantizeRequest request = request_for(dir / "source", dir / "target", format);
    try {
      quantize(request);
      ADD_FAILURE() << format;
    } catch (const Error& error) {
      EXPECT_EQ(error.tensor(), "model.layers.0.self_attn.o_proj.weight") << format;
      EXPECT_NE(error.message().find("pre_quant_scale"), std::string::npos) << error.what();
    }
    EXPECT_FALSE(std::filesystem::exists(dir / "target"));
  }
}

}  // namespace
}  // namespace nibble
