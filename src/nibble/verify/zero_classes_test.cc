// Which distributions of weights let the reading of codes and zero points be told: three wrong readings of each, and
// the right one, over many seeds.
#include "nibble/verify/zero_classes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <string>

#include "nibble/numerics/quantizer.h"

namespace nibble {
namespace {

using Draw = std::function<float(std::mt19937&, uint64_t index)>;

float normal(std::mt19937& rng) { return std::normal_distribution<float>(0, 0.02f)(rng); }
float laplace(std::mt19937& rng) {
  const float u = std::uniform_real_distribution<float>(-0.5f, 0.5f)(rng);
  return std::copysign(0.02f * std::log(1 - 2 * std::fabs(u) + 1e-6f), u);
}
float student(std::mt19937& rng) { return 0.02f * std::student_t_distribution<float>(4)(rng); }
float uniform(std::mt19937& rng) { return std::uniform_real_distribution<float>(0, 1)(rng); }
// The sign of a block of 32.
float sign_of(uint64_t index) { return index / 32 * 2654435761u % 7 < 3 ? -1.0f : 1.0f; }

struct Case {
  const char* name;
  Draw draw;
};

std::vector<Case> bells() {
  return {{"normal", [](auto& rng, uint64_t) { return normal(rng); }},
          {"laplace", [](auto& rng, uint64_t) { return laplace(rng); }},
          {"student", [](auto& rng, uint64_t) { return student(rng); }},
          {"skewed", [](auto& rng, uint64_t) { return normal(rng) + 0.002f; }}};
}

// Around +1 and -1.
Draw two_values(float deviation) {
  return [deviation](std::mt19937& rng, uint64_t) {
    const float value = 1 + deviation * std::normal_distribution<float>(0, 1)(rng);
    return rng() % 2 == 0 ? value : -value;
  };
}

// Of these no reading can be proved wrong.
std::vector<Case> others() {
  return {{"half normal", [](auto& rng, uint64_t) { return std::fabs(normal(rng)); }},
          {"half laplace", [](auto& rng, uint64_t) { return std::fabs(laplace(rng)); }},
          {"negative laplace", [](auto& rng, uint64_t) { return -std::fabs(laplace(rng)); }},
          {"around one", [](auto& rng, uint64_t) { return 1 + 5 * normal(rng); }},
          {"around one half", [](auto& rng, uint64_t) { return 0.06f + normal(rng); }},
          {"close to one", [](auto& rng, uint64_t) { return 0.9f + 0.1f * uniform(rng); }},
          {"uniform", [](auto& rng, uint64_t) { return 2 * uniform(rng) - 1; }},
          {"uniform positive", [](auto& rng, uint64_t) { return uniform(rng); }},
          {"one sign a block", [](auto& rng, uint64_t i) { return sign_of(i) * std::fabs(laplace(rng)); }},
          {"one sign a block, around one", [](auto& rng, uint64_t i) { return sign_of(i) * (1 + 5 * normal(rng)); }},
          {"skewed", [](auto& rng, uint64_t) { return normal(rng) + 0.02f; }},
          {"two values", two_values(0)},
          {"two values, 2 %", two_values(0.02f)},
          {"two values, 5 %", two_values(0.05f)},
          {"two values, 10 %", two_values(0.1f)},
          {"two values, 20 %", two_values(0.2f)},
          {"two values, 40 %", two_values(0.4f)},
          {"one sign a block, uniform", [](auto& rng, uint64_t i) { return sign_of(i) * uniform(rng); }}};
}

EncodedMatrix encoded(const Case& from, const char* format, uint32_t seed) {
  constexpr uint64_t kRows = 64, kCols = 256;
  std::mt19937 rng(seed);
  std::vector<float> values(kRows * kCols);
  for (size_t i = 0; i < values.size(); ++i) values[i] = from.draw(rng, i);
  const Format parsed = parse_format(format);
  const Quantizer quantizer({parsed, default_rule(parsed)});
  EncodedMatrix matrix = EncodedMatrix::make(parsed, kRows, kCols);
  const DenseView view{reinterpret_cast<const std::byte*>(values.data()), Element::kF32, kRows, kCols, kCols * 4};
  EXPECT_FALSE(quantizer.encode(view, {}, matrix.mutable_view(), nullptr));
  return matrix;
}

ZeroReading reading(EncodedMatrix matrix, bool flip_codes, bool flip_zeros) {
  if (flip_codes) {
    for (std::byte& b : matrix.codes) b ^= std::byte{0x88};
  }
  if (flip_zeros) {
    for (uint8_t& zero : matrix.zeros) zero ^= 8;
  }
  ZeroClasses classes;
  add_zero_classes(matrix, &classes);
  return zero_reading(classes);
}

constexpr uint32_t kSeeds = 20;

TEST(ZeroClasses, BellShapedWeightsProveEveryReading) {
  for (const Case& from : bells()) {
    for (const char* format : {"int4-g32-asym", "int4-g64-asym"}) {
      for (uint32_t seed = 0; seed < kSeeds; ++seed) {
        SCOPED_TRACE(std::string(from.name) + " " + format + " " + std::to_string(seed));
        const EncodedMatrix matrix = encoded(from, format, seed);
        ASSERT_EQ(reading(matrix, false, false), ZeroReading::kRight);
        ASSERT_EQ(reading(matrix, true, false), ZeroReading::kCodesFlipped);
        ASSERT_EQ(reading(matrix, false, true), ZeroReading::kZerosFlipped);
        ASSERT_EQ(reading(matrix, true, true), ZeroReading::kBothFlipped);
      }
    }
  }
}

// Of long blocks nearly all zero points are 7 or 8, which flipped are those of blocks of one sign.
TEST(ZeroClasses, LongBlocksProveTheCodes) {
  for (const Case& from : bells()) {
    for (uint32_t seed = 0; seed < kSeeds; ++seed) {
      const EncodedMatrix matrix = encoded(from, "int4-g128-asym", seed);
      ASSERT_EQ(reading(matrix, false, false), ZeroReading::kRight) << from.name << " " << seed;
      ASSERT_EQ(reading(matrix, true, false), ZeroReading::kCodesFlipped) << from.name << " " << seed;
      for (const bool codes : {false, true}) ASSERT_NE(reading(matrix, codes, true), ZeroReading::kRight) << from.name;
    }
  }
}

TEST(ZeroClasses, GoodWeightsOfOtherShapesAreNeverCalledWrong) {
  for (const Case& from : others()) {
    for (const char* format : {"int4-g32-asym", "int4-g128-asym"}) {
      for (uint32_t seed = 0; seed < kSeeds; ++seed) {
        const ZeroReading found = reading(encoded(from, format, seed), false, false);
        ASSERT_TRUE(found == ZeroReading::kRight || found == ZeroReading::kUndecided)
            << from.name << " " << format << " " << seed << ": " << static_cast<int>(found);
      }
    }
  }
}

TEST(ZeroClasses, CountsAreThoseOfEachBlock) {
  EncodedMatrix matrix = EncodedMatrix::make(parse_format("int4-g32-asym"), 3, 32);
  matrix.zeros = {8, 1, 15};
  for (size_t i = 0; i < matrix.codes.size(); ++i) matrix.codes[i] = static_cast<std::byte>(i < 32 ? 0x21 : 0xf0);
  ZeroClasses classes;
  add_zero_classes(matrix, &classes);
  EXPECT_EQ(classes.inside, 1u);
  EXPECT_EQ(classes.low, 1u);
  EXPECT_EQ(classes.high, 1u);
  EXPECT_EQ(classes.near_end, 1u);
  EXPECT_EQ(classes.inside_codes[1], 16u);
  EXPECT_EQ(classes.end_codes[2], 16u);
  EXPECT_EQ(classes.end_codes[0], 16u);
  EXPECT_EQ(classes.end_codes[15], 16u);
  ZeroClasses twice = classes;
  twice.merge(classes);
  EXPECT_EQ(twice.blocks(), 6u);
  EXPECT_EQ(twice.end_codes[15], 32u);
  EXPECT_EQ(zero_reading(twice), ZeroReading::kUndecided) << "too few blocks";
}

}  // namespace
}  // namespace nibble
