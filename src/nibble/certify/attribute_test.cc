// One damaged group is named, and what swapping any group gives is what a checkpoint gives in which its tensors were
// swapped on disk.
#include "nibble/certify/attribute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "nibble/base/rng.h"
#include "nibble/base/strings.h"
#include "nibble/certify/report_json_attribution.h"
#include "nibble/engine/generate_batch.h"
#include "nibble/engine/loaded_for_test.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/tiny.h"

namespace nibble {
namespace {

using testing::TinyCheckpoint;

// Noise on every tensor of `names`, a share of its own size.
void damage(TinyCheckpoint* checkpoint, const std::vector<std::string>& names, double share, uint64_t seed) {
  for (const std::string& name : names) {
    std::vector<float> values = checkpoint->values(name);
    double squares = 0;
    for (const float v : values) squares += static_cast<double>(v) * static_cast<double>(v);
    const double size = share * std::sqrt(squares / static_cast<double>(values.size()));
    for (size_t i = 0; i < values.size(); ++i) values[i] += static_cast<float>(size * random_normal(seed, i));
    checkpoint->set_values(name, values);
    ++seed;
  }
}

std::vector<Chain> chains_of(const Path& reference, uint64_t count, uint64_t length) {
  LoadedForTest loaded(reference, exact_for_test());
  std::vector<std::vector<TokenId>> prompts;
  prompts.reserve(count);
  for (uint64_t p = 0; p < count; ++p) prompts.push_back(random_tokens_for_test(p, 2 + 3 * p));
  BatchGenerateOptions options;
  options.tokens = length;
  const std::vector<BatchAnswer> answers = generate_batch(&loaded.engine, prompts, options);
  std::vector<Chain> chains;
  chains.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    chains.push_back({.prompt = prompts[i], .answer = answers[i].tokens, .capped = true, .cluster = i});
  }
  return chains;
}

// A reference and a candidate on disk, and the chains that one writes and the other leaves.
class Attributed {
 public:
  Attributed(const Path& reference, const Path& candidate)
      : reference_(open_model(reference.string(), 2)), candidate_(open_model(candidate.string(), 2)) {
    chains = chains_of(reference, 12, 24);
    const auto tokens = read_tokens(chains);
    states_ = std::make_unique<ScoredStates>(reference_.checkpoint, reference_.model, exact_for_test(), tokens, &pool_);
    ScoredStates own(candidate_.checkpoint, candidate_.model, exact_for_test(), tokens, &pool_);
    forks =
        certify_candidate(chains, judge_chains(states_.get(), &own, chains, {}, &pool_), {}, 0, {.resamples = 0}).forks;
  }

  Attribution run(const AttributionOptions& options = {}) {
    const AttributionRequest request{.reference = &reference_,
                                     .candidate = &candidate_,
                                     .reference_options = exact_for_test(),
                                     .candidate_options = exact_for_test(),
                                     .chains = chains,
                                     .forks = forks,
                                     .judge = {},
                                     .options = options};
    return attribute(request, states_.get(), &pool_);
  }
  const Model& model() const { return candidate_.model; }

  std::vector<Chain> chains;
  std::vector<Fork> forks;

 private:
  OpenedModel reference_, candidate_;
  ThreadPool pool_{2};
  std::unique_ptr<ScoredStates> states_;
};

struct Damage {
  const char *name, *glob, *place;
};

class OneDamagedGroup : public ::testing::TestWithParam<Damage> {};

TEST_P(OneDamagedGroup, is_the_one_that_is_named) {
  const testing::TempDir dir;
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe({.layers = 4});
  tiny.write(dir / "reference");
  damage(&tiny, tiny.matching(GetParam().glob), 0.5, 7);
  tiny.write(dir / "candidate");
  Attributed pair(dir / "reference", dir / "candidate");
  ASSERT_GE(pair.forks.size(), 3U);
  const Attribution result = pair.run();
  ASSERT_EQ(result.groups.size(), 1U);
  const AttributedGroup& group = result.groups.front();
  EXPECT_EQ(place_name(group.place), GetParam().place);
  EXPECT_EQ(result.of, pair.forks.size());
  EXPECT_EQ(group.healed, result.of);
  EXPECT_EQ(group.kl_after, 0);
  EXPECT_GT(result.kl_before, 0);
  EXPECT_GT(group.margin_gain, 0);
  // Norm, attention, router and experts of four layers, embedding, final norm and head.
  EXPECT_EQ(result.same.size(), 4U * 4 + 3 - 1);
  EXPECT_EQ(result.sweeps, 1U);
}

INSTANTIATE_TEST_SUITE_P(
    Places, OneDamagedGroup,
    ::testing::Values(Damage{"experts", "*.layers.2.mlp.experts.*", "layer 2, routed_expert"},
                      Damage{"first_attention", "*.layers.0.self_attn.?_proj.weight", "layer 0, attention"},
                      Damage{"router", "*.layers.3.mlp.gate.weight", "layer 3, router"},
                      Damage{"norm", "*.layers.1.post_attention_layernorm.weight", "layer 1, norm"},
                      Damage{"embedding", "model.embed_tokens.weight", "embedding"},
                      Damage{"final_norm", "model.norm.weight", "final norm"},
                      Damage{"head", "lm_head.weight", "head"}),
    [](const auto& one) { return std::string(one.param.name); });

// Tensors of a group: those of its role, and the biases of its modules.
std::vector<std::string> tensors_of(const Model& model, const WeightPlace& place, bool tied) {
  const int32_t layer = place.layer ? static_cast<int32_t>(*place.layer) : -1;
  std::set<std::string> modules;
  const auto module_of = [](const std::string& name, std::string_view end) {
    return ends_with(name, end) ? name.substr(0, name.size() - end.size()) : name;
  };
  std::vector<std::string> names;
  for (const ParamSpec& param : model.params) {
    const bool is_head = tied && place.role == Role::kEmbedding && param.role == Role::kHead;
    if (param.layer != layer || (param.role != place.role && !is_head)) continue;
    names.push_back(param.name);
    modules.insert(module_of(param.name, ".weight"));
  }
  for (const ParamSpec& param : model.params) {
    if (param.layer != layer || param.role != Role::kBias) continue;
    if (modules.contains(module_of(module_of(param.name, ".bias"), "_bias"))) names.push_back(param.name);
  }
  return names;
}

// What a checkpoint says whose group lies swapped on disk.
AttributedGroup by_brute_force(const Attributed& pair, LoadedForTest* reference, const Path& swapped,
                               double* margin_before, double* kl_before, LoadedForTest* candidate) {
  LoadedForTest mixed(swapped, exact_for_test());
  AttributedGroup group;
  *margin_before = *kl_before = 0;
  const auto count = static_cast<double>(pair.forks.size());
  for (const Fork& fork : pair.forks) {
    const Chain& chain = pair.chains[fork.chain];
    std::vector<TokenId> prefix = chain.prompt;
    prefix.insert(prefix.end(), chain.answer.begin(), chain.answer.begin() + static_cast<ptrdiff_t>(fork.position));
    const auto last = [&](LoadedForTest* loaded) {
      const std::vector<float> all = loaded->logits(prefix);
      return std::vector<float>(all.end() - static_cast<ptrdiff_t>(loaded->model.spec.vocabulary), all.end());
    };
    const auto margin = [&](const std::vector<float>& logits) {
      return static_cast<double>(logits[static_cast<size_t>(fork.token)]) -
             static_cast<double>(logits[static_cast<size_t>(fork.candidate)]);
    };
    const std::vector<float> wanted = last(reference), got = last(&mixed), own = last(candidate);
    const Choice choice = judge_choice(wanted, got, fork.token, {}, fork.chain, prefix.size());
    group.healed += choice.candidate == fork.token ? 1U : 0U;
    group.kl_after += static_cast<double>(choice.kl) / count;
    group.margin_gain += margin(got) / count;
    *margin_before += margin(own) / count;
    *kl_before += static_cast<double>(judge_choice(wanted, own, fork.token, {}, 0, 0).kl) / count;
  }
  group.margin_gain -= *margin_before;
  return group;
}

class AttributedFamilies : public ::testing::TestWithParam<const char*> {};

TEST_P(AttributedFamilies, swapped_groups_are_checkpoints_that_were_swapped_on_disk) {
  const testing::TempDir dir;
  TinyCheckpoint original = TinyCheckpoint::load(golden_model(GetParam()));
  TinyCheckpoint noisy = original;
  damage(&noisy, noisy.matching("*"), 0.05, 3);
  original.write(dir / "reference");
  noisy.write(dir / "candidate");
  Attributed pair(dir / "reference", dir / "candidate");
  ASSERT_GE(pair.forks.size(), 2U);
  const Attribution result = pair.run();
  EXPECT_TRUE(result.same.empty());
  EXPECT_GE(result.groups.size(), 2U * 3 + 2);
  const bool tied = std::none_of(result.groups.begin(), result.groups.end(),
                                 [](const AttributedGroup& group) { return group.place.role == Role::kHead; });
  LoadedForTest reference(dir / "reference", exact_for_test()), candidate(dir / "candidate", exact_for_test());
  for (const AttributedGroup& group : result.groups) {
    TinyCheckpoint swapped = noisy;
    const std::vector<std::string> names = tensors_of(pair.model(), group.place, tied);
    for (const std::string& name : names) swapped.at(name) = original.at(name);
    swapped.write(dir / place_name(group.place));
    double margin_before = 0, kl_before = 0;
    const AttributedGroup wanted =
        by_brute_force(pair, &reference, dir / place_name(group.place), &margin_before, &kl_before, &candidate);
    EXPECT_EQ(group.healed, wanted.healed) << place_name(group.place);
    EXPECT_DOUBLE_EQ(group.kl_after, wanted.kl_after) << place_name(group.place);
    EXPECT_DOUBLE_EQ(group.margin_gain, wanted.margin_gain) << place_name(group.place);
    EXPECT_DOUBLE_EQ(result.kl_before, kl_before);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, AttributedFamilies,
                         ::testing::Values("llama", "qwen3_moe", "gpt_oss", "deepseek_v3", "glm4_moe"),
                         [](const auto& one) { return std::string(one.param); });

// Damaged everywhere.
struct Everywhere {
  testing::TempDir dir;
  std::unique_ptr<Attributed> pair;
  Everywhere() {
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe({.layers = 3});
    tiny.write(dir / "reference");
    damage(&tiny, tiny.matching("*"), 0.1, 5);
    tiny.write(dir / "candidate");
    pair = std::make_unique<Attributed>(dir / "reference", dir / "candidate");
  }
};

auto figures(const Attribution& a) {
  std::vector<std::tuple<std::string, uint64_t, double, double>> all;
  all.reserve(a.groups.size());
  for (const AttributedGroup& group : a.groups) {
    all.emplace_back(place_name(group.place), group.healed, group.margin_gain, group.kl_after);
  }
  return all;
}

TEST(Attribution, little_memory_costs_sweeps_and_changes_nothing) {
  const Everywhere all;
  const Attribution together = all.pair->run(), one_by_one = all.pair->run({.state_bytes = 1});
  EXPECT_EQ(together.sweeps, 1U);
  // Embedding and four groups a layer, one a sweep; norm and head need none of their own.
  EXPECT_EQ(one_by_one.sweeps, 1U + 3 * 4);
  EXPECT_EQ(figures(one_by_one), figures(together));
  EXPECT_EQ(one_by_one.kl_before, together.kl_before);
  // Every layer behind a group, and the candidate's own: 3 + (4 · 3 + 4 · 2 + 4 · 1) + 3.
  EXPECT_EQ(together.layer_passes, 3U + 24 + 3);
  EXPECT_EQ(one_by_one.layer_passes, together.layer_passes);
}

TEST(Attribution, draws_places_by_seed_and_leaves_out_what_nothing_heals) {
  const Everywhere all;
  Attributed& pair = *all.pair;
  ASSERT_GE(pair.forks.size(), 6U);
  const Attribution few = pair.run({.most_places = 3, .seed = 1}), again = pair.run({.most_places = 3, .seed = 1});
  EXPECT_EQ(few.of, 3U);
  EXPECT_EQ(few.divergences, pair.forks.size());
  EXPECT_EQ(figures(few), figures(again));
  std::set<double> seen;
  for (uint64_t seed = 0; seed < 8; ++seed) seen.insert(pair.run({.most_places = 3, .seed = seed}).kl_before);
  EXPECT_GT(seen.size(), 1U);
  // Chains from elsewhere: where the reference itself says something else no swap brings their token back.
  for (Fork& fork : pair.forks) fork.reference = fork.token + 1;
  const Attribution none = pair.run();
  EXPECT_EQ(none.of, 0U);
  EXPECT_EQ(none.left_out, pair.forks.size());
  EXPECT_TRUE(none.groups.empty());
  pair.forks.clear();
  EXPECT_THAT(attribution_verdict(pair.run()), ::testing::HasSubstr("leaves no chain"));
}

TEST(Attribution, ranks_by_healed_then_by_divergence) {
  const Everywhere all;
  const Attribution result = all.pair->run();
  const bool ranked = std::is_sorted(result.groups.begin(), result.groups.end(),
                                     [](const AttributedGroup& a, const AttributedGroup& b) {
                                       return std::tuple(-static_cast<double>(a.healed), a.kl_after) <
                                              std::tuple(-static_cast<double>(b.healed), b.kl_after);
                                     });
  EXPECT_TRUE(ranked);
  const Json rows = attribution_json(result);
  ASSERT_EQ(rows.size(), result.groups.size());
  for (const char* key : {"layer", "role", "tensors", "healed", "of", "margin_gain", "kl_before", "kl_after"}) {
    EXPECT_TRUE(rows.at(0).contains(key)) << key;
  }
  for (const Json& row : rows) {
    if (row.at("role") == "routed_expert") {
      EXPECT_EQ(row.at("tensors"), 12);  // four experts of three matrices
    }
    EXPECT_EQ(row.at("layer").is_null(), row.at("role") == "head" || row.at("role") == "embedding" ||
                                             (row.at("role") == "norm" && row.at("tensors") == 1));
  }
}

}  // namespace
}  // namespace nibble
