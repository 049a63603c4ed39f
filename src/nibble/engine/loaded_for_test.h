// Small models of tests/golden/models ready to run, for tests of the engine.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "nibble/base/rng.h"
#include "nibble/engine/engine.h"
#include "nibble/testing/temp_dir.h"

namespace nibble {

inline Path golden_models() { return nibble::testing::golden_dir() / "models"; }

// The folder of a model, or its file if it is a GGUF one.
inline Path golden_model(const std::string& name) {
  const Path gguf = golden_models() / name / "model.gguf";
  return std::filesystem::exists(gguf) ? gguf : golden_models() / name;
}

struct LoadedForTest {
  Checkpoint checkpoint;
  Findings findings;
  Model model;
  ThreadPool pool;
  Engine engine;

  explicit LoadedForTest(const Path& path, const EngineOptions& options, int threads = 2)
      : checkpoint(Checkpoint::open(path)),
        model(load_model(checkpoint, &findings)),
        pool(threads),
        engine(checkpoint, model, options, &pool) {}

  // Logits (rows, V) of one sequence from nothing, in calls of `step` tokens.
  std::vector<float> logits(const std::vector<TokenId>& tokens, size_t step) {
    CachedSequence sequence = engine.make_sequence();
    std::vector<float> all;
    for (size_t at = 0; at < tokens.size(); at += step) {
      const size_t count = std::min(step, tokens.size() - at);
      const EngineInput input{&sequence, std::span(tokens).subspan(at, count), true};
      const std::span<const float> some = engine.run(std::span(&input, 1));
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }
  std::vector<float> logits(const std::vector<TokenId>& tokens) { return logits(tokens, tokens.size()); }
};

inline EngineOptions options_for_test(ActivationKind activations, CacheElement cache) {
  EngineOptions options;
  options.arithmetic.integer_activations = activations;
  options.cache = cache;
  return options;
}

// Nothing is rounded beyond float32.
inline EngineOptions exact_for_test() { return options_for_test(ActivationKind::kF32, CacheElement::kF32); }

inline double largest_difference(std::span<const float> got, std::span<const float> wanted) {
  EXPECT_EQ(got.size(), wanted.size());
  double most = 0;
  for (size_t i = 0; i < std::min(got.size(), wanted.size()); ++i) {
    const double difference = std::abs(static_cast<double>(got[i]) - static_cast<double>(wanted[i]));
    most = difference <= most ? most : difference;  // NaN stays
  }
  return most;
}

inline void expect_same_bits(std::span<const float> got, std::span<const float> wanted, const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  EXPECT_EQ(std::memcmp(got.data(), wanted.data(), got.size_bytes()), 0) << what;
}

inline std::vector<TokenId> random_tokens_for_test(uint64_t seed, uint64_t count) {
  std::vector<TokenId> tokens;
  tokens.reserve(count);
  for (uint64_t i = 0; i < count; ++i) tokens.push_back(static_cast<TokenId>(random_bits(seed, i) % 256));
  return tokens;
}

}  // namespace nibble
