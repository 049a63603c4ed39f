// Greedy choices of every family against transformers' own search in float32 (tests/golden/greedy,
// tools/make_greedy_goldens.py): four prompts, 64 tokens each, every step judged behind the tokens that transformers
// chose, so that one other choice is one difference and not all that follow.
//
// Where two logits are closer than what the sums of float32 leave open, either may be chosen, and only there: a
// mismatch is allowed if the reference's margin is at most twice the error measured over all steps, for one logit may
// be that much too low and the other that much too high. The goldens' prompts have no such step in float32.
#include <gtest/gtest.h>

#include <cstdio>

#include "nibble/checkpoint/safetensors.h"
#include "nibble/engine/generate.h"
#include "nibble/engine/loaded_for_test.h"
#include "nibble/testing/temp_dir.h"

namespace nibble {
namespace {

constexpr uint64_t kSteps = 64, kPrompts = 4, kVocabulary = 256;
constexpr double kFloat32 = 2e-5;  // as engine_test.cc has it: float32 sums in another order

struct GreedyCase {
  std::vector<TokenId> prompt, tokens;  // tokens: what was chosen
  std::vector<int32_t> ids;             // (steps, 2): the best and the second
  std::vector<float> logits;            // (steps, 2)

  // The prompt and the first `steps` chosen tokens.
  std::vector<TokenId> behind(uint64_t steps) const {
    std::vector<TokenId> all = prompt;
    all.insert(all.end(), tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(steps));
    return all;
  }
};

template <typename T>
std::vector<T> read_as(const Checkpoint& file, const std::string& name) {
  const std::vector<std::byte> bytes = file.read_all(file.tensors().at(static_cast<size_t>(file.find(name))));
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<GreedyCase> greedy_cases(const std::string& family) {
  const Checkpoint file = Checkpoint::open(nibble::testing::golden_dir() / "greedy" / (family + ".safetensors"));
  std::vector<GreedyCase> cases(kPrompts);
  for (uint64_t i = 0; i < kPrompts; ++i) {
    const std::string number = std::to_string(i);
    for (const int32_t id : read_as<int32_t>(file, number + ".prompt")) cases[i].prompt.push_back(id);
    cases[i].ids = read_as<int32_t>(file, number + ".ids");
    cases[i].logits = read_as<float>(file, number + ".logits");
    for (uint64_t s = 0; s < kSteps; ++s) cases[i].tokens.push_back(cases[i].ids.at(2 * s));
  }
  return cases;
}

using Rows = std::vector<std::vector<float>>;  // of each case the logits (steps, V) that choose its tokens

// All of a case at once.
Rows in_one_call(LoadedForTest* loaded, const std::vector<GreedyCase>& cases) {
  Rows rows;
  for (const GreedyCase& one : cases) {
    const std::vector<float> all = loaded->logits(one.behind(kSteps - 1));
    rows.emplace_back(all.end() - static_cast<ptrdiff_t>(kSteps * kVocabulary), all.end());
  }
  return rows;
}

// The prompts, then a token a call, all cases side by side.
Rows token_by_token(LoadedForTest* loaded, std::span<const GreedyCase> cases) {
  std::vector<CachedSequence> sequences;
  sequences.reserve(cases.size());
  for (size_t i = 0; i < cases.size(); ++i) sequences.push_back(loaded->engine.make_sequence());
  Rows rows(cases.size());
  for (uint64_t s = 0; s < kSteps; ++s) {
    std::vector<EngineInput> inputs;
    inputs.reserve(cases.size());
    for (size_t i = 0; i < cases.size(); ++i) {
      inputs.push_back({&sequences[i], s == 0 ? std::span(cases[i].prompt) : std::span(&cases[i].tokens[s - 1], 1)});
    }
    const std::span<const float> logits = loaded->engine.run(inputs);
    for (size_t i = 0; i < cases.size(); ++i) {
      const auto row = logits.subspan(i * kVocabulary, kVocabulary);
      rows[i].insert(rows[i].end(), row.begin(), row.end());
    }
  }
  return rows;
}

// Every step from nothing: no key and no value is kept.
Rows without_cache(LoadedForTest* loaded, std::span<const GreedyCase> cases) {
  Rows rows(cases.size());
  for (uint64_t s = 0; s < kSteps; ++s) {
    std::vector<CachedSequence> sequences;
    std::vector<std::vector<TokenId>> tokens;
    sequences.reserve(cases.size());
    tokens.reserve(cases.size());
    for (const GreedyCase& one : cases) {
      sequences.push_back(loaded->engine.make_sequence());
      tokens.push_back(one.behind(s));
    }
    std::vector<EngineInput> inputs;
    inputs.reserve(cases.size());
    for (size_t i = 0; i < cases.size(); ++i) inputs.push_back({&sequences[i], tokens[i]});
    const std::span<const float> logits = loaded->engine.run(inputs);
    for (size_t i = 0; i < cases.size(); ++i) {
      const auto row = logits.subspan(i * kVocabulary, kVocabulary);
      rows[i].insert(rows[i].end(), row.begin(), row.end());
    }
  }
  return rows;
}

struct Judgement {
  double error = 0;  // of the reference's two best logits, over all steps
  uint64_t mismatches = 0;
  double largest_margin = 0;  // of a mismatch: the reference's best logit above the second
};

// Lists every mismatch with its margin.
Judgement judge(const std::string& what, const std::vector<GreedyCase>& cases, const Rows& rows) {
  Judgement judgement;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (uint64_t s = 0; s < kSteps; ++s) {
      const float* row = rows[i].data() + s * kVocabulary;
      const float* wanted = cases[i].logits.data() + 2 * s;
      for (uint64_t k = 0; k < 2; ++k) {
        const double error =
            std::abs(static_cast<double>(row[cases[i].ids[2 * s + k]]) - static_cast<double>(wanted[k]));
        judgement.error = error <= judgement.error ? judgement.error : error;  // NaN stays
      }
      const auto best = static_cast<TokenId>(std::max_element(row, row + kVocabulary) - row);
      if (best == cases[i].tokens[s]) continue;
      const double margin = static_cast<double>(wanted[0]) - static_cast<double>(wanted[1]);
      ++judgement.mismatches;
      judgement.largest_margin = std::max(judgement.largest_margin, margin);
      std::printf("%s, prompt %zu, step %llu: %d instead of %d, margin %.2e\n", what.c_str(), i,
                  static_cast<unsigned long long>(s), best, cases[i].tokens[s], margin);
    }
  }
  std::printf("%s: error %.2e, %llu mismatches\n", what.c_str(), judgement.error,
              static_cast<unsigned long long>(judgement.mismatches));
  return judgement;
}

class Greedy : public ::testing::TestWithParam<const char*> {};

TEST_P(Greedy, choices_are_transformers_with_and_without_a_cache_in_batches_of_1_and_4) {
  const std::vector<GreedyCase> cases = greedy_cases(GetParam());
  LoadedForTest loaded(golden_model(GetParam()), exact_for_test());
  const Rows whole = in_one_call(&loaded, cases);
  const Judgement judgement = judge(GetParam(), cases, whole);
  EXPECT_LT(judgement.error, kFloat32);
  EXPECT_EQ(judgement.mismatches, 0U);
  EXPECT_LE(judgement.largest_margin, 2 * judgement.error);
  // The other ways give the same bits, and so the same choices.
  const Rows four = token_by_token(&loaded, cases), fresh = without_cache(&loaded, cases);
  const Rows fresh_one = without_cache(&loaded, std::span(cases).first(1));
  expect_same_bits(fresh_one[0], whole[0], "without a cache, alone");
  for (uint64_t i = 0; i < kPrompts; ++i) {
    const Rows one = token_by_token(&loaded, std::span(cases).subspan(i, 1));
    expect_same_bits(one[0], whole[i], "token by token, alone");
    expect_same_bits(four[i], whole[i], "token by token, four at once");
    expect_same_bits(fresh[i], whole[i], "without a cache, four at once");
  }
}

TEST_P(Greedy, generate_writes_transformers_tokens) {
  LoadedForTest loaded(golden_model(GetParam()), exact_for_test());
  for (const GreedyCase& one : greedy_cases(GetParam())) {
    GenerateOptions options;
    options.tokens = kSteps;
    EXPECT_EQ(generate(&loaded.engine, nullptr, one.prompt, options, {}).tokens, one.tokens);
  }
}

// Coarser caches choose otherwise now and then: only where the reference was within their error. Their limits are for
// logits of about 1; measured are 0.001 to 0.04 in 16 bits and 0.02 to 0.37 in 8, most where a router is near a tie.
TEST_P(Greedy, coarser_caches_choose_otherwise_only_within_their_error) {
  struct Coarse {
    const char* name;
    CacheElement cache;
    double limit;
  };
  const std::vector<GreedyCase> cases = greedy_cases(GetParam());
  for (const auto& [name, cache, limit] :
       {Coarse{"bf16", CacheElement::kBF16, 0.06}, Coarse{"fp8", CacheElement::kE4M3, 0.5}}) {
    LoadedForTest loaded(golden_model(GetParam()), options_for_test(ActivationKind::kF32, cache));
    const Judgement judgement =
        judge(std::string(GetParam()) + ", cache in " + name, cases, in_one_call(&loaded, cases));
    EXPECT_GT(judgement.error, kFloat32) << name;
    EXPECT_LE(judgement.largest_margin, 2 * judgement.error) << name;
    EXPECT_LT(judgement.error, limit) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Greedy,
                         ::testing::Values("llama", "qwen3_moe", "gpt_oss", "deepseek_v3", "kimi_k2", "glm4_moe",
                                           "minimax_m2", "mixtral"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace nibble
