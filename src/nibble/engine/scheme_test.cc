#include "nibble/engine/scheme.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "nibble/base/error.h"
#include "nibble/engine/multiplier.h"
#include "nibble/kernels/matrix_for_test.h"

namespace nibble {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(EngineScheme, names) {
  EXPECT_THAT(engine_scheme_names(), ElementsAre("w4a16", "w4a8", "w4a4", "w8a8", "bf16"));
  EXPECT_THAT(engine_schemes_help(), HasSubstr("w8a8: INT8 ones for integers"));
  EXPECT_THROW(arithmetics_of_scheme("w2a2"), Error);
}

// A product of one row under a scheme.
float product(const char* format, const char* scheme, const std::vector<float>& x, RngForTest rng) {
  const PackedForTest packed(format, 1, x.size(), &rng);
  Linear linear;
  linear.matrix = packed.matrix;
  set_kernel(arithmetics_of_scheme(scheme), &linear);
  ThreadPool pool(1);
  Multiplier multiplier(&pool);
  float out = 0;
  multiplier.run({&linear, x.data(), 1, x.size(), 1, nullptr, &out, 1});
  return out;
}

// BF16 keeps 8 bits: 1 + 2^-9 is rounded to 1, 1 + 2^-7 stays. E4M3 keeps 4 of the largest's: 448 and 17 stay where
// the scale is 1 (a largest of 448), 17.5 becomes 18 or 16 (steps of 2 from 16 on).
TEST(EngineScheme, activations_are_rounded_as_it_says) {
  std::vector<float> x(128, 0.0F), rounded(128, 0.0F);
  x[5] = 1 + 0x1p-9F;
  rounded[5] = 1;
  const RngForTest rng{3};
  for (const char* format : {"bf16", "fp8-channel", "int4-g32"}) {
    EXPECT_EQ(product(format, "bf16", x, rng), product(format, "w4a16", rounded, rng)) << format;
    EXPECT_NE(product(format, "w4a16", x, rng), product(format, "w4a16", rounded, rng)) << format;
  }
  x[5] = 448;
  x[7] = 18.5F;
  rounded[5] = 448;
  rounded[7] = 18;
  EXPECT_EQ(product("fp8-channel", "w8a8", x, rng), product("fp8-channel", "w4a16", rounded, rng));
  EXPECT_NE(product("fp8-channel", "w4a8", x, rng), product("fp8-channel", "w4a16", rounded, rng));
  // Weights in other floats meet float32, integers INT8 as under w4a8.
  EXPECT_EQ(product("bf16", "w8a8", x, rng), product("bf16", "w4a16", x, rng));
  EXPECT_EQ(product("int8-g32", "w8a8", x, rng), product("int8-g32", "w4a8", x, rng));
  EXPECT_NE(product("int8-g32", "w8a8", x, rng), product("int8-g32", "w4a16", x, rng));
}

TEST(EngineScheme, nan_stays_in_its_group) {
  std::vector<float> x(256, 1.0F);
  x[200] = std::nanf("");
  EXPECT_TRUE(std::isnan(product("fp8-channel", "w8a8", x, RngForTest{4})));
}

}  // namespace
}  // namespace nibble
