// Against `transformers`: logits of small seeded checkpoints of every family and convention, in float32 with eager
// attention (tests/golden/models, tools/make_tiny_models.py). Its quantized ones are computed from weights rounded to
// BF16 once they are dequantized; ours are not rounded, so they are compared in two steps.
#include "nibble/engine/engine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/checkpoint/safetensors.h"
#include "nibble/engine/loaded_for_test.h"
#include "nibble/engine/score.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/tiny.h"

namespace nibble {
namespace {

// Logits here are about 1: float32 sums in another order.
constexpr double kFloat32 = 2e-5;

struct Expected {
  std::vector<TokenId> tokens;
  std::vector<float> logits;  // (T, V)
};

Expected expected_of(const std::string& name) {
  const Checkpoint file = Checkpoint::open(golden_models() / "expected" / (name + ".safetensors"));
  const auto all = [&](const char* tensor) {
    return file.read_all(file.tensors()[static_cast<size_t>(file.find(tensor))]);
  };
  const std::vector<std::byte> ids = all("input_ids"), logits = all("logits");
  Expected expected;
  for (size_t i = 0; i < ids.size() / 8; ++i) {
    int64_t id = 0;
    std::memcpy(&id, ids.data() + 8 * i, 8);
    expected.tokens.push_back(static_cast<TokenId>(id));
  }
  expected.logits.resize(logits.size() / 4);
  std::memcpy(expected.logits.data(), logits.data(), logits.size());
  return expected;
}

const char* const kDense[] = {"llama",       "llama_gguf", "qwen3_moe", "gpt_oss",    "gpt_oss_mxfp4",
                              "deepseek_v3", "kimi_k2",    "glm4_moe",  "minimax_m2", "mixtral"};
const char* const kRounded[] = {"qwen3_moe_int4", "qwen3_moe_nvfp4", "deepseek_v3_fp8"};

std::string name_of(const ::testing::TestParamInfo<const char*>& info) { return info.param; }

class AgainstTransformers : public ::testing::TestWithParam<const char*> {};

TEST_P(AgainstTransformers, logits) {
  const Expected expected = expected_of(GetParam());
  LoadedForTest loaded(golden_model(GetParam()), exact_for_test());
  EXPECT_LT(largest_difference(loaded.logits(expected.tokens), expected.logits), kFloat32);
}

INSTANTIATE_TEST_SUITE_P(Models, AgainstTransformers, ::testing::ValuesIn(kDense), name_of);

// The same checkpoint with its low-bit weights dequantized into `dtype`.
void write_dequantized(const std::string& name, Dtype dtype, const Path& folder) {
  testing::TinyCheckpoint tiny = testing::TinyCheckpoint::load(golden_models() / name);
  const Checkpoint checkpoint = Checkpoint::open(golden_models() / name);
  Findings findings;
  const Model model = load_model(checkpoint, &findings);
  for (const Weight& weight : model.table.weights()) {
    if (weight.format.is_dense()) continue;
    const std::vector<float> values = read_rows_f32(checkpoint, weight, 0, 0, weight.rows());
    for (const Part& part : weight.parts) tiny.drop(checkpoint.tensors()[part.tensor].name);
    tiny.add(weight.name, dtype, weight.shape, std::vector<std::byte>(weight.elements() * dtype_bits(dtype) / 8));
    tiny.set_values(weight.name, values);
  }
  tiny.config().erase("quantization_config");
  tiny.write(folder);
}

class AgainstDequantized : public ::testing::TestWithParam<const char*> {};

TEST_P(AgainstDequantized, logits) {
  const Expected expected = expected_of(GetParam());
  testing::TempDir rounded, whole;
  write_dequantized(GetParam(), Dtype::kBF16, rounded.path());
  write_dequantized(GetParam(), Dtype::kF32, whole.path());
  EXPECT_LT(
      largest_difference(LoadedForTest(rounded.path(), exact_for_test()).logits(expected.tokens), expected.logits),
      kFloat32);
  LoadedForTest low_bit(golden_models() / GetParam(), exact_for_test());
  EXPECT_LT(largest_difference(low_bit.logits(expected.tokens),
                               LoadedForTest(whole.path(), exact_for_test()).logits(expected.tokens)),
            kFloat32);
}

INSTANTIATE_TEST_SUITE_P(Models, AgainstDequantized, ::testing::ValuesIn(kRounded), name_of);

// Results depend neither on chunks, nor on the number of threads, nor on what else is in the batch, bit for bit.
class Invariance : public ::testing::TestWithParam<const char*> {};

// 150 tokens: three pages.
std::vector<TokenId> many_tokens(uint64_t seed) { return random_tokens_for_test(seed, 150); }

TEST_P(Invariance, chunks_threads_and_neighbours_change_nothing) {
  const std::vector<TokenId> tokens = many_tokens(1), others = many_tokens(2);
  for (const ActivationKind activations : {ActivationKind::kF32, ActivationKind::kInt8}) {
    for (const CacheElement cache : {CacheElement::kBF16, CacheElement::kE4M3}) {
      const EngineOptions options = options_for_test(activations, cache);
      LoadedForTest loaded(golden_models() / GetParam(), options, 1);
      const std::vector<float> whole = loaded.logits(tokens);
      expect_same_bits(loaded.logits(tokens, 1), whole, "one token at a time");
      expect_same_bits(loaded.logits(tokens, 37), whole, "37 tokens at a time");
      LoadedForTest threaded(golden_models() / GetParam(), options, 3);
      expect_same_bits(threaded.logits(tokens, 60), whole, "three threads");
      CachedSequence first = threaded.engine.make_sequence(), second = threaded.engine.make_sequence();
      const EngineInput inputs[] = {{&second, others, true}, {&first, tokens, true}};
      const std::span<const float> both = threaded.engine.run(inputs);
      expect_same_bits({both.begin() + static_cast<ptrdiff_t>(whole.size()), both.end()}, whole, "beside another");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Invariance,
                         ::testing::Values("llama", "qwen3_moe_int4", "gpt_oss_mxfp4", "deepseek_v3_fp8", "minimax_m2"),
                         name_of);

// Streamed layer by layer, two sequences: the bits of the resident model.
TEST_P(Invariance, streaming_changes_nothing) {
  const std::vector<std::vector<TokenId>> sequences = {many_tokens(3), {7, 8, 9}};
  const EngineOptions options = options_for_test(ActivationKind::kInt8, CacheElement::kBF16);
  LoadedForTest loaded(golden_models() / GetParam(), options);
  std::vector<std::vector<float>> got(2);
  score(loaded.checkpoint, loaded.model, options, sequences, &loaded.pool,
        [&](uint64_t sequence, uint64_t first, uint64_t count, std::span<const float> logits) {
          EXPECT_EQ(first * 256, got[sequence].size());
          EXPECT_EQ(logits.size(), count * 256);
          got[sequence].insert(got[sequence].end(), logits.begin(), logits.end());
        });
  for (size_t s = 0; s < 2; ++s) expect_same_bits(got[s], loaded.logits(sequences[s]), "streamed");
}

// What rounding activations to INT8, or keys and values to 16 and 8 bits, does to these logits. Caches on a dense
// model: with experts a small change may choose another one.
TEST(Engine, coarser_arithmetic_is_near) {
  const auto difference = [&](const char* name, const EngineOptions& options) {
    const Expected expected = expected_of(name);
    return largest_difference(LoadedForTest(golden_models() / name, options).logits(expected.tokens), expected.logits);
  };
  const double int8 = difference("gpt_oss_mxfp4", options_for_test(ActivationKind::kInt8, CacheElement::kF32));
  EXPECT_GT(int8, 1e-3);
  EXPECT_LT(int8, 0.03);
  const double bf16 = difference("llama", options_for_test(ActivationKind::kF32, CacheElement::kBF16));
  EXPECT_GT(bf16, 5e-4);
  EXPECT_LT(bf16, 0.01);
  const double e4m3 = difference("llama", options_for_test(ActivationKind::kF32, CacheElement::kE4M3));
  EXPECT_GT(e4m3, bf16);
  EXPECT_LT(e4m3, 0.15);
}

TEST(Engine, tokens_outside_the_vocabulary_are_refused) {
  LoadedForTest loaded(golden_models() / "llama", exact_for_test());
  for (const TokenId bad : {-1, 256}) {
    CachedSequence sequence = loaded.engine.make_sequence();
    const std::vector<TokenId> tokens = {1, bad};
    const EngineInput input{&sequence, tokens, false};
    EXPECT_THROW(loaded.engine.run(std::span(&input, 1)), Error);
    EXPECT_EQ(sequence.tokens(), 0U);
  }
}

}  // namespace
}  // namespace nibble
