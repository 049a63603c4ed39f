// The reference errors that formats state (FormatFamily::typical_rel_rmse), measured: normally distributed BF16
// weights, 128 x 4096, at eight standard deviations over one octave, since errors of power-of-two scales depend on
// where in an octave the maxima lie.
#include <gtest/gtest.h>

#include <cmath>

#include "nibble/numerics/formats/typical_error.h"
#include "nibble/numerics/quantize_for_test.h"

namespace nibble {
namespace {

std::vector<DenseMatrix> weights_over_an_octave() {
  std::vector<DenseMatrix> matrices;
  for (uint64_t eighth = 0; eighth < 8; ++eighth) {
    std::vector<float> values(128 * 4096);
    const double deviation = 0.05 * std::exp2(static_cast<double>(eighth) / 8);
    for (uint64_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(deviation * random_normal(1000 + eighth, i));
    }
    matrices.push_back(dense_matrix(values, 128, 4096));
  }
  return matrices;
}

double measured_rel_rmse(const Format& format) {
  static const std::vector<DenseMatrix> matrices = weights_over_an_octave();
  double sum = 0;
  for (const DenseMatrix& x : matrices) {
    const double rel_rmse = quantize(x, format).total().rel_rmse();
    sum += rel_rmse * rel_rmse / 8;
  }
  return std::sqrt(sum);
}

TEST(FormatError, StatedErrorsAreMeasuredOnes) {
  for (const char* name :
       {"int4-g16",       "int4-g32",        "int4-g64",      "int4-g128",         "int4-g256",      "int4-g512",
        "int4-g1024",     "int4-g16-asym",   "int4-g32-asym", "int4-g64-asym",     "int4-g128-asym", "int4-g256-asym",
        "int4-g512-asym", "int4-g1024-asym", "int4-channel",  "int4-channel-asym", "mxfp4",          "nvfp4",
        "mxfp8",          "fp8-block",       "fp8-channel",   "fp8-tensor",        "fp8-block32x32", "int8-g32",
        "int8-g128",      "int8-channel"}) {
    const Format format = parse_format(name);
    const double measured = measured_rel_rmse(format);
    EXPECT_NEAR(family_of(format).typical_rel_rmse(format), measured, 0.01 * measured) << name;
  }
}

TEST(FormatError, DenseFormatsStateNone) {
  for (const char* name : {"bf16", "f16", "f32", "f64", "e5m2", "q4_1"}) {
    const Format format = parse_format(name);
    EXPECT_EQ(family_of(format).typical_rel_rmse(format), 0) << name;
  }
}

TEST(FormatError, GroupsBetweenAreInterpolated) {
  EXPECT_DOUBLE_EQ(error_at_group(8, {{16, 1.0}, {64, 3.0}}), 1.0);
  EXPECT_DOUBLE_EQ(error_at_group(16, {{16, 1.0}, {64, 3.0}}), 1.0);
  EXPECT_DOUBLE_EQ(error_at_group(32, {{16, 1.0}, {64, 3.0}}), 2.0);
  EXPECT_DOUBLE_EQ(error_at_group(64, {{16, 1.0}, {64, 3.0}}), 3.0);
  EXPECT_DOUBLE_EQ(error_at_group(100, {{16, 1.0}, {64, 3.0}}), 3.0);
}

}  // namespace
}  // namespace nibble
