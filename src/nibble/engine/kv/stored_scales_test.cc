#include "nibble/engine/kv/stored_scales.h"

#include <gmock/gmock.h>

#include "nibble/base/error.h"
#include "nibble/engine/loaded_for_test.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/tiny.h"

namespace nibble {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kLayer0 = "model.layers.0.self_attn.", kLayer1 = "model.layers.1.self_attn.";

// The small Qwen3-MoE model with scales of its cache.
class StoredScales : public ::testing::Test {
 protected:
  void add(const std::string& name, const std::vector<float>& values, const std::vector<uint64_t>& shape) {
    tiny_.add(name, Dtype::kF32, shape, std::vector<std::byte>(values.size() * 4));
    tiny_.set_values(name, values);
  }
  void add(const std::string& name, float value) { add(name, {value}, {1}); }

  std::vector<CacheScales> read() {
    tiny_.write(dir_.path());
    const Checkpoint checkpoint = Checkpoint::open(dir_.path());
    Findings findings;
    return stored_cache_scales(checkpoint, load_model(checkpoint, &findings));
  }

  std::string refusal() {
    try {
      read();
    } catch (const Error& error) {
      EXPECT_FALSE(error.ways_out().empty());
      return error.what();
    }
    return "not refused";
  }

  testing::TinyCheckpoint tiny_ = testing::TinyCheckpoint::qwen3_moe();
  testing::TempDir dir_;
};

TEST_F(StoredScales, C63_a_checkpoint_without_scales_gives_none) { EXPECT_TRUE(read().empty()); }

TEST_F(StoredScales, one_for_all_heads_or_one_a_head) {
  add(kLayer0 + "k_scale", 0.5F);
  add(kLayer0 + "v_scale", {0.25F}, {});
  add(kLayer1 + "k_scale", {1, 2}, {2});
  add(kLayer1 + "v_scale", {3, 4}, {2, 1});
  const std::vector<CacheScales> scales = read();
  ASSERT_EQ(scales.size(), 2U);
  EXPECT_THAT(scales[0].keys, ElementsAre(0.5F));
  EXPECT_THAT(scales[0].values, ElementsAre(0.25F));
  EXPECT_THAT(scales[1].keys, ElementsAre(1, 2));
  EXPECT_THAT(scales[1].values, ElementsAre(3, 4));
}

TEST_F(StoredScales, refusals_name_tensor_and_numbers) {
  add(kLayer0 + "k_scale", 0.5F);
  add(kLayer0 + "v_scale", 0.5F);
  EXPECT_THAT(refusal(), AllOf(HasSubstr(kLayer1 + "k_scale"), HasSubstr("layers 2"), HasSubstr("with_scales 1")));
  add(kLayer1 + "k_scale", 0.5F);
  EXPECT_THAT(refusal(), HasSubstr(kLayer1 + "v_scale"));
  add(kLayer1 + "v_scale", {1, 2, 3}, {3});
  EXPECT_THAT(refusal(), AllOf(HasSubstr(kLayer1 + "v_scale"), HasSubstr("scales 3"), HasSubstr("heads 2")));
  add(kLayer1 + "v_scale", 0.0F);
  EXPECT_THAT(refusal(), AllOf(HasSubstr(kLayer1 + "v_scale"), HasSubstr("not above zero")));
  add(kLayer1 + "v_scale", 0.5F);
  EXPECT_EQ(read().size(), 2U);
  add(kLayer1 + "v_proj.v_scale", 0.75F);
  EXPECT_THAT(refusal(), AllOf(HasSubstr(kLayer1 + "v_proj.v_scale"), HasSubstr(kLayer1 + "v_scale")));
  tiny_.drop(kLayer1 + "v_proj.v_scale");
  add(kLayer0 + "k_proj.k_bias", 0.5F);
  EXPECT_THAT(refusal(), HasSubstr(kLayer0 + "k_proj.k_bias"));
}

// What two pages of a layer hold, head by head.
std::vector<float> content(LoadedForTest* loaded, const std::vector<TokenId>& tokens) {
  CachedSequence sequence = loaded->engine.make_sequence();
  const EngineInput input{&sequence, tokens, false};
  loaded->engine.run(std::span(&input, 1));
  std::vector<float> all;
  for (uint64_t layer = 0; layer < 2; ++layer) {
    const CacheLayout& layout = sequence.layer(layer).layout();
    for (uint64_t page = 0; page < 2; ++page) {
      for (uint64_t head = 0; head < layout.heads; ++head) {
        std::vector<float> keys(layout.key_dim * kPageTokens), values(layout.value_dim * kPageTokens);
        sequence.layer(layer).load(page, head, keys.data(), values.data());
        all.insert(all.end(), keys.begin(), keys.end());
        all.insert(all.end(), values.begin(), values.end());
      }
    }
  }
  return all;
}

// Four files that differ only in what the scales are called.
TEST_F(StoredScales, C65_every_spelling_gives_the_same_cache) {
  const std::vector<TokenId> tokens = random_tokens_for_test(5, 100);
  EngineOptions options = options_for_test(ActivationKind::kF32, CacheElement::kE4M3);
  tiny_.write(dir_.path());
  options.cache_scales.assign(1, CacheScales{{0.02F}, {0.02F}});
  LoadedForTest by_hand(dir_.path(), options);
  const std::vector<float> wanted = content(&by_hand, tokens);
  options.cache_scales.assign(1, CacheScales{{1.0F}, {1.0F}});
  LoadedForTest with_one(dir_.path(), options);
  EXPECT_NE(content(&with_one, tokens), wanted);
  const std::vector<std::vector<std::string>> spellings = {{"k_scale", "v_scale"},
                                                           {"k_proj.k_scale", "v_proj.v_scale"},
                                                           {"kv_scale"},
                                                           {"k_proj.output_scale", "v_proj.output_scale"}};
  for (const std::vector<std::string>& spelling : spellings) {
    for (const std::string& prefix : {kLayer0, kLayer1}) {
      for (const std::string& name : spelling) add(prefix + name, 0.02F);
    }
    options.cache_scales = read();
    ASSERT_EQ(options.cache_scales.size(), 2U) << spelling.front();
    LoadedForTest loaded(dir_.path(), options);
    expect_same_bits(content(&loaded, tokens), wanted, spelling.front());
    for (const std::string& prefix : {kLayer0, kLayer1}) {
      for (const std::string& name : spelling) tiny_.drop(prefix + name);
    }
  }
}

}  // namespace
}  // namespace nibble
