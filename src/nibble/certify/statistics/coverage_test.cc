// Whether bands do what they are for: over many simulated sets of chains, whose true curve is known in closed form, a
// band of 95 % must hold it about so often, and one that takes chains of a prompt for independent must not.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "nibble/base/rng.h"
#include "nibble/certify/statistics/curves.h"

namespace nibble {
namespace {

constexpr uint64_t kSets = 400, kPrompts = 40, kChains = 4;  // chains a prompt
constexpr uint64_t kAnswer = 40, kLimit = 60;                // lengths are uniform in 1 … these
constexpr std::array kFlips = {0.01, 0.15};                  // easy and hard prompts, as many of each

// Choices until the first flip, by inversion.
uint64_t geometric(double p, double u) { return 1 + static_cast<uint64_t>(std::log(1 - u) / std::log1p(-p)); }

std::vector<ChainEnd> simulate(uint64_t set) {
  std::vector<ChainEnd> ends;
  for (uint64_t prompt = 0; prompt < kPrompts; ++prompt) {
    const uint64_t stream = random_bits(random_bits(1, set), prompt);
    const double p = kFlips[random_bits(stream, 0) >> 63];
    for (uint64_t chain = 0; chain < kChains; ++chain) {
      const uint64_t own = random_bits(stream, 1 + chain);
      const uint64_t flip = geometric(p, random_uniform(own, 0));
      const uint64_t answer = 1 + random_bits(own, 1) % kAnswer, limit = 1 + random_bits(own, 2) % kLimit;
      const uint64_t length = std::min(answer, limit);
      if (flip <= length) {
        ends.push_back({flip, ChainEndKind::kDiverged, prompt});
      } else {
        ends.push_back({length, answer <= limit ? ChainEndKind::kEnded : ChainEndKind::kCensored, prompt});
      }
    }
  }
  return ends;
}

// Were there no limit: flip at s <= t, of an answer that is as long.
double true_incidence(uint64_t t) {
  double sum = 0;
  for (const double p : kFlips) {
    for (uint64_t s = 1; s <= t; ++s) {
      const double answers = static_cast<double>(kAnswer + 1 - s) / kAnswer;
      sum += std::pow(1 - p, static_cast<double>(s - 1)) * p * answers / kFlips.size();
    }
  }
  return sum;
}

// Were there no answer's end either.
double true_survival(uint64_t t) {
  double sum = 0;
  for (const double p : kFlips) sum += std::pow(1 - p, static_cast<double>(t)) / kFlips.size();
  return sum;
}

const CurvePoint& at(const Curve& curve, uint64_t time) {
  const auto after =
      std::find_if(curve.begin(), curve.end(), [&](const CurvePoint& point) { return point.time > time; });
  return *(after - 1);
}

struct Coverage {
  double share = 0;  // of sets whose band holds the truth
  double bias = 0;   // mean of the value minus the truth
};

using MakeCurve = Curve (*)(std::span<const ChainEnd>, const BootstrapOptions&);

Coverage measure(MakeCurve make, uint64_t time, double truth, bool clustered) {
  Coverage result;
  for (uint64_t set = 0; set < kSets; ++set) {
    std::vector<ChainEnd> ends = simulate(set);
    if (!clustered) {
      for (size_t i = 0; i < ends.size(); ++i) ends[i].cluster = i;
    }
    const Curve curve = make(ends, {.resamples = 200, .seed = set});
    const CurvePoint& point = at(curve, time);
    if (point.low <= truth && truth <= point.high) result.share += 1.0 / kSets;
    result.bias += (point.value - truth) / kSets;
  }
  return result;
}

TEST(Coverage, of_incidence) {
  const Coverage clustered = measure(divergence_incidence, 10, true_incidence(10), true);
  EXPECT_NEAR(clustered.bias, 0, 0.01);
  EXPECT_GT(clustered.share, 0.90);
  EXPECT_LT(clustered.share, 0.98);
  EXPECT_LT(measure(divergence_incidence, 10, true_incidence(10), false).share, clustered.share - 0.05);
}

TEST(Coverage, of_survival) {
  const Coverage clustered = measure(agreement_survival, 5, true_survival(5), true);
  EXPECT_NEAR(clustered.bias, 0, 0.01);
  EXPECT_GT(clustered.share, 0.90);
  EXPECT_LT(clustered.share, 0.98);
}

}  // namespace
}  // namespace nibble
