// Sequences side by side, one longer than a pass, and one token alone: each as a model in memory reads it.
#include "nibble/engine/layer_pass.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "nibble/base/error.h"
#include "nibble/engine/loaded_for_test.h"
#include "nibble/engine/score.h"

namespace nibble {
namespace {

TEST(LayerPass, sequences_do_not_touch_each_other) {
  const EngineOptions options = options_for_test(ActivationKind::kF32, CacheElement::kBF16);
  LoadedForTest loaded(golden_model("qwen3_moe"), options);
  std::vector<std::vector<TokenId>> sequences;
  const uint64_t lengths[] = {3, 600, 5, 250, 250, 1};
  for (const uint64_t count : lengths) {
    sequences.push_back(random_tokens_for_test(sequences.size(), count));
  }
  ScoredStates states(loaded.checkpoint, loaded.model, options, sequences, &loaded.pool);
  for (size_t s = 0; s < sequences.size(); ++s) {
    const std::vector<float> wanted = loaded.logits(sequences[s]);
    expect_same_bits(states.logits(s, 0, sequences[s].size()), wanted, "sequence " + std::to_string(s));
  }
}

TEST(LayerPass, empty_sequences_are_refused) {
  LoadedForTest loaded(golden_model("qwen3_moe"), {});
  EXPECT_THROW(ScoredStates(loaded.checkpoint, loaded.model, {}, {{1, 2}, {}}, &loaded.pool), Error);
}

}  // namespace
}  // namespace nibble
