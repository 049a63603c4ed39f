// Models too small to say anything of speed: that rows hold what they should.
#include "nibble/engine/bench/model_bench.h"

#include <gtest/gtest.h>

#include "nibble/base/error.h"
#include "nibble/engine/generate.h"
#include "nibble/engine/open_model.h"
#include "nibble/ledger/attention_cost.h"
#include "nibble/ledger/kv_cache.h"

namespace nibble {
namespace {

const Path kModels = Path(NIBBLE_SOURCE_DIR) / "tests/golden/models";

class Models : public ::testing::TestWithParam<const char*> {};

TEST_P(Models, are_measured_and_checked) {
  const OpenedModel opened = open_model((kModels / GetParam()).string(), 1);
  ThreadPool pool(2);
  EngineOptions options;
  options.arithmetic.integer_activations = ActivationKind::kInt8;
  Engine engine(opened.checkpoint, opened.model, options, &pool);
  ModelBench bench(&engine, &pool, 0);
  EXPECT_EQ(bench.check(), 0);
  EXPECT_EQ(engine.options().arithmetic.kernel, "");

  const PassRow prefill = bench.prefill(70);
  EXPECT_EQ(prefill.op, "prefill");
  EXPECT_EQ(prefill.tokens, 70U);
  EXPECT_EQ(prefill.context, 0U);
  EXPECT_EQ(prefill.runs, 1U);
  EXPECT_GT(prefill.seconds, 0);
  // The pass' products, and attention as the ledger counts it.
  EXPECT_EQ(prefill.steps.size(), 1 + engine.work().size());
  EXPECT_EQ(sum_of(prefill.steps).flops(),
            sum_of(engine.work()).flops() + prefill_attention_flops(engine.spec(), 70).sum());

  for (const uint64_t context : {uint64_t{0}, uint64_t{100}}) {
    const PassRow decode = bench.decode(context, 3);
    EXPECT_EQ(decode.op, "decode");
    EXPECT_EQ(decode.tokens, 1U);
    EXPECT_EQ(decode.context, context);
    EXPECT_EQ(decode.runs, 3U);
    ASSERT_EQ(decode.steps.size(), 1U);
    // Keys and values of the middle one of three tokens, behind one that was not measured.
    const double cache = static_cast<double>(KvCache(engine.spec()).read_bytes(context + 3, 2));
    EXPECT_GT(decode.steps[0].bytes, cache);
    EXPECT_LE(decode.steps[0].bytes, cache + static_cast<double>(engine.weight_bytes()));
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, Models,
                         ::testing::Values("llama", "qwen3_moe_int4", "gpt_oss_gguf/model.gguf", "deepseek_v3_fp8"),
                         [](const auto& model) {
                           const std::string path = model.param;
                           return path.substr(0, path.find('/'));
                         });

TEST(ModelBench, a_long_prompt_is_cut_into_passes) {
  const OpenedModel opened = open_model((kModels / "deepseek_v3_fp8").string(), 1);  // the one of enough positions
  ThreadPool pool(2);
  Engine engine(opened.checkpoint, opened.model, {}, &pool);
  ModelBench bench(&engine, &pool, 0);
  const PassRow row = bench.prefill(kPrefillTokens + 1);
  EXPECT_EQ(row.steps.size(), 1 + 2 * engine.work().size());
  EXPECT_GT(sum_of(row.steps).bytes, 2 * sum_of(engine.work()).bytes);  // the longer pass reads more experts
}

TEST(ModelBench, positions_end) {
  ModelSpec spec;
  spec.max_positions = 512;
  EXPECT_NO_THROW(check_positions(spec, 512));
  EXPECT_THROW(check_positions(spec, 513), Error);
  spec.max_positions = 0;
  EXPECT_NO_THROW(check_positions(spec, 513));
}

}  // namespace
}  // namespace nibble
