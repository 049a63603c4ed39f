// Cases from the field that concern the engine as a whole, and what it refuses before it computes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/engine/loaded_for_test.h"
#include "nibble/engine/memory_check.h"
#include "nibble/engine/score.h"
#include "nibble/engine/supports.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/tiny.h"

namespace nibble {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class C69_batches : public ::testing::TestWithParam<const char*> {};

// The logits of a prompt's last token and of one more, with `others` beside it at place `place` of the batch.
std::vector<float> beside(LoadedForTest* loaded, const std::vector<TokenId>& prompt, uint64_t others, uint64_t place) {
  std::vector<CachedSequence> sequences;
  std::vector<std::vector<TokenId>> tokens;
  for (uint64_t i = 0; i <= others; ++i) {
    sequences.push_back(loaded->engine.make_sequence());
    tokens.push_back(i == place ? prompt : random_tokens_for_test(100 + i, 1 + 7 * i % 20));
  }
  std::vector<float> logits;
  for (const bool next : {false, true}) {
    std::vector<EngineInput> inputs;
    for (uint64_t i = 0; i <= others; ++i) {
      inputs.push_back({&sequences[i], next ? std::span(tokens[i]).first(1) : std::span(tokens[i])});
    }
    const std::span<const float> row = loaded->engine.run(inputs).subspan(place * 256, 256);
    logits.insert(logits.end(), row.begin(), row.end());
  }
  return logits;
}

// Alone, with 31 and with 32 others, first, last and between them, and after a restart: the same bits.
TEST_P(C69_batches, neighbours_places_and_restarts_change_no_bit) {
  const std::vector<TokenId> prompt = random_tokens_for_test(9, 40);
  for (const ActivationKind activations : {ActivationKind::kF32, ActivationKind::kInt8}) {
    const EngineOptions options = options_for_test(activations, CacheElement::kBF16);
    LoadedForTest loaded(golden_model(GetParam()), options);
    const std::vector<float> alone = beside(&loaded, prompt, 0, 0);
    expect_same_bits(beside(&loaded, prompt, 31, 0), alone, "first of 32");
    expect_same_bits(beside(&loaded, prompt, 31, 17), alone, "the 18th of 32");
    expect_same_bits(beside(&loaded, prompt, 32, 32), alone, "last of 33");
    LoadedForTest restarted(golden_model(GetParam()), options, 1);
    expect_same_bits(beside(&restarted, prompt, 32, 5), alone, "after a restart, the sixth of 33");
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, C69_batches,
                         ::testing::Values("deepseek_v3_fp8", "gpt_oss_mxfp4", "qwen3_moe_nvfp4", "qwen3_moe_int4"),
                         [](const auto& one) { return std::string(one.param); });

// What is asked for before weights are read is what is held when they are.
TEST(Engine, C79_resident_bytes_are_the_plans) {
  for (const char* name : {"llama", "llama_gguf", "qwen3_moe", "qwen3_moe_int4", "qwen3_moe_nvfp4", "gpt_oss",
                           "gpt_oss_mxfp4", "glm4_moe", "minimax_m2", "mixtral"}) {
    LoadedForTest loaded(golden_model(name), {});
    const auto held = static_cast<double>(loaded.engine.weight_bytes());
    const auto planned = static_cast<double>(resident_bytes(loaded.checkpoint, loaded.model));
    EXPECT_NEAR(held / planned, 1, 0.02) << name;
    const auto layer = static_cast<double>(largest_layer_bytes(loaded.checkpoint, loaded.model));
    EXPECT_GE(layer, planned / 4) << name;  // two layers, embedding, head
    EXPECT_LT(layer, planned) << name;
  }
}

std::string refusal(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_FALSE(error.ways_out().empty());
    return error.what();
  }
  return "not refused";
}

TEST(Engine, more_experts_a_token_than_there_are_is_refused) {
  const Checkpoint checkpoint = Checkpoint::open(golden_model("mixtral"));
  Findings findings;
  const Model model = load_model(checkpoint, &findings);
  ThreadPool pool(1);
  EngineOptions options;
  options.experts_per_token = 5;
  const auto says = AllOf(HasSubstr("experts_per_token 5"), HasSubstr("experts 4"));
  EXPECT_THAT(refusal([&] { Engine(checkpoint, model, options, &pool); }), says);
  const auto ignore = [](uint64_t, uint64_t, uint64_t, std::span<const float>) {};
  EXPECT_THAT(refusal([&] { score(checkpoint, model, options, {{1}}, &pool, ignore); }), says);
}

// Groups that do not divide the experts would index beyond them.
TEST(Engine, groups_of_experts_that_do_not_come_out_even_are_refused) {
  testing::TinyCheckpoint tiny = testing::TinyCheckpoint::load(golden_model("deepseek_v3"));
  for (const auto& [groups, chosen] :
       {std::pair{3, 1}, std::pair{8, 1}, std::pair{4, 1}, std::pair{2, 0}, std::pair{2, 3}}) {
    const testing::TempDir dir;
    tiny.config()["n_group"] = groups;
    tiny.config()["topk_group"] = chosen;
    tiny.write(dir.path());
    const Checkpoint checkpoint = Checkpoint::open(dir.path());
    Findings findings;
    const Model model = load_model(checkpoint, &findings);
    const std::string said = refusal([&] { refuse_unsupported(model, "there"); });
    EXPECT_THAT(said, HasSubstr(std::to_string(chosen) + " of " + std::to_string(groups) + " groups of 4 experts"));
  }
}

TEST(Engine, memory_is_refused_with_both_numbers) {
  EXPECT_THAT(refusal([] { check_memory("there", 3'000'000'000, 2'000'000'000); }),
              AllOf(HasSubstr("there"), HasSubstr("3.00 GB"), HasSubstr("2.00 GB")));
  EXPECT_EQ(refusal([] { check_memory("there", 2'000'000'000, 2'000'000'000); }), "not refused");
  EXPECT_EQ(refusal([] { check_memory("there", 3'000'000'000, 0); }), "not refused");  // not known
}

}  // namespace
}  // namespace nibble
