#include "nibble/engine/kernel_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "nibble/engine/loaded_for_test.h"
#include "nibble/engine/scheme.h"

namespace nibble {
namespace {

using ::testing::HasSubstr;

// Every multiplied byte is somebody's, and the scheme shows.
TEST(KernelUse, C108_says_which_kernel_multiplies_what) {
  for (const auto& [scheme, activations] : {std::pair{"w4a16", "f32"}, std::pair{"w4a8", "int8"}}) {
    EngineOptions options = options_for_test(ActivationKind::kF32, CacheElement::kBF16);
    options.arithmetic = arithmetics_of_scheme(scheme);
    const LoadedForTest loaded(golden_model("gpt_oss_mxfp4"), options);
    const std::vector<KernelUse> uses = kernel_uses(loaded.engine);
    uint64_t bytes = 0, matrices = 0, wanted = 0, count = 0;
    bool found = false;
    for (const KernelUse& use : uses) {
      bytes += use.bytes;
      matrices += use.matrices;
      found = found || (use.weights == "e2m1" && use.activations == activations);
      EXPECT_THAT(kernel_line(uses), HasSubstr(std::string(use.kernel) + ": " + std::string(use.weights)));
    }
    loaded.engine.visit_matrices([&](const Linear& matrix) {
      wanted += matrix.matrix.layout.bytes();
      ++count;
    });
    EXPECT_EQ(bytes, wanted);
    EXPECT_EQ(matrices, count);
    EXPECT_TRUE(found) << scheme;
  }
}

TEST(KernelUse, a_line_gives_shares) {
  const std::vector<KernelUse> uses = {{"vnni", "e2m1", "int8", 3, 900}, {"plain", "bf16", "f32", 1, 100}};
  EXPECT_THAT(kernel_line(uses), HasSubstr("vnni: e2m1 by int8, 90 % of the weights; plain: bf16 by f32, 10 % of"));
  EXPECT_THAT(kernel_line(uses), HasSubstr("attention: "));
}

}  // namespace
}  // namespace nibble
