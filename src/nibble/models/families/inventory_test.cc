// Whole inventories against what others say about the same models: counts published for them, the state dicts that
// transformers builds from the same configurations, and the headers of a release.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "nibble/base/strings.h"
#include "nibble/models/expert_forms.h"
#include "nibble/models/model_data_test.h"

namespace nibble {
namespace {

using testing::elements;
using testing::family_of;
using testing::model_spec;

struct Counts {
  uint64_t total = 0, mtp = 0, routed = 0;
};

Counts count(const ModelSpec& spec) {
  Counts counts;
  family_of(spec).inventory(spec, [&](ParamSpec&& param) {
    if (!param.counted) return;
    (param.role == Role::kMtp ? counts.mtp : counts.total) += elements(param);
    // The tables' routed experts include the biases of experts.
    const bool expert_bias = param.role == Role::kBias && (param.expert >= 0 || param.fusion != Fusion::kNone);
    if (param.role == Role::kRoutedExpert || expert_bias) counts.routed += elements(param);
  });
  return counts;
}

// Exact numbers: elements of the state dict that transformers 5.24.0 builds from the same file, index tables apart
// (tests/data/models/transformers_parameters.json; for DeepSeek-V4 less tid2eid, 3 · 129280 · 6). In 10^9, rounded: the
// published tables' totals, MTP (without copies of embedding and head), routed experts.
struct Expected {
  const char* model;
  uint64_t total;
  const char *billions, *mtp_billions, *routed_billions;
};

class InventoryCounts : public ::testing::TestWithParam<Expected> {};

std::string billions(uint64_t number, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, static_cast<double>(number) / 1e9);
  return text;
}

TEST_P(InventoryCounts, equal_those_published) {
  const Expected& expected = GetParam();
  const Counts counts = count(model_spec(expected.model));
  if (expected.total != 0) {
    EXPECT_EQ(counts.total, expected.total);
  }
  EXPECT_EQ(billions(counts.total, 3), expected.billions);
  EXPECT_EQ(billions(counts.mtp, 2), expected.mtp_billions);
  EXPECT_EQ(billions(counts.routed, 3), expected.routed_billions);
}

INSTANTIATE_TEST_SUITE_P(
    Models, InventoryCounts,
    ::testing::Values(Expected{"gpt-oss-20b", 20914757184, "20.915", "0.00", "19.117"},
                      Expected{"gpt-oss-120b", 116829156672, "116.829", "0.00", "114.702"},
                      Expected{"deepseek-v3", 671026419200, "671.026", "11.61", "653.909"},
                      Expected{"deepseek-r1", 671026419200, "671.026", "11.61", "653.909"},
                      Expected{"deepseek-v3.1", 671026419200, "671.026", "11.61", "653.909"},
                      Expected{"deepseek-v3.2", 671877944064, "671.878", "11.62", "653.909"},
                      Expected{"deepseek-v4-flash", 284334567511 - 2327040, "284.332", "6.61", "277.025"},
                      Expected{"deepseek-v4-pro", 1572999528803 - 2327040, "1572.997", "25.84", "1547.396"},
                      Expected{"kimi-k2-instruct", 1026408232448, "1026.408", "0.00", "1014.686"},
                      Expected{"kimi-k2-thinking", 1026408232448, "1026.408", "0.00", "1014.686"},
                      Expected{"kimi-k2.5", 1026408232448, "1026.408", "0.00", "1014.686"},
                      Expected{"kimi-k3", 0, "2779.484", "0.00", "2722.741"},
                      Expected{"qwen3-30b-a3b", 30532122624, "30.532", "0.00", "28.991"},
                      Expected{"qwen3-235b-a22b", 235093634560, "235.094", "0.00", "227.096"},
                      Expected{"qwen3-coder-480b-a35b", 480154875392, "480.155", "0.00", "468.084"},
                      Expected{"glm-4.5", 352797829024, "352.798", "3.99", "335.964"},
                      Expected{"glm-4.6", 352797829024, "352.798", "3.99", "335.964"},
                      Expected{"glm-4.7", 352797829024, "352.798", "3.99", "335.964"},
                      Expected{"glm-4.5-air", 106852251264, "106.852", "0.00", "99.657"},
                      Expected{"minimax-m2.5", 228689764864, "228.690", "0.00", "224.680"},
                      Expected{"minimax-m2.7", 228689764864, "228.690", "0.00", "224.680"},
                      Expected{"mixtral-8x7b", 46702792704, "46.703", "0.00", "45.097"},
                      Expected{"mixtral-8x22b", 140620634112, "140.621", "0.00", "135.291"}),
    [](const ::testing::TestParamInfo<Expected>& test) {
      std::string name = test.param.model;
      for (char& c : name) {
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
      }
      return name;
    });

// GLM-4.5: with the copies of embedding and head in its MTP layer, hubs show 358 billion.
TEST(Inventory, glm_mtp_copies_are_listed_and_not_counted) {
  const ModelSpec spec = model_spec("glm-4.5");
  uint64_t everything = 0;
  family_of(spec).inventory(spec, [&](ParamSpec&& param) { everything += elements(param); });
  EXPECT_EQ(billions(everything, 0), "358");
}

// C95, C101: numbers of experts' weights stated there.
TEST(Inventory, C95_C101_expert_weights) {
  EXPECT_EQ(count(model_spec("kimi-k2.5")).routed, 1014686023680U);
  EXPECT_EQ(count(model_spec("qwen3-30b-a3b")).routed, 28991029248U);
}

using Shapes = std::map<std::pair<std::string, std::vector<uint64_t>>, uint64_t>;

// "model.layers.3.x" -> "model.layers.#.x": whole components of digits.
std::string fold(std::string_view name) {
  std::string folded;
  for (const std::string_view part : split(name, '.')) {
    if (!folded.empty()) folded += '.';
    folded += part.find_first_not_of("0123456789") == std::string_view::npos ? "#" : std::string(part);
  }
  return folded;
}

Shapes shapes_of(const Json& rows) {
  Shapes shapes;
  for (const Json& row : rows)
    shapes[{row[0].get<std::string>(), row[1].get<std::vector<uint64_t>>()}] = row[2].get<uint64_t>();
  return shapes;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// The inventory as transformers holds it: experts fused gate then up, one module name for MLP and MoE, no MTP layers.
Shapes in_memory_shapes(const ModelSpec& spec) {
  Shapes shapes;
  const auto add = [&](const ParamSpec& param) {
    std::vector<uint64_t> shape = param.shape;
    if (param.transposed_when_dense) std::swap(shape[1], shape[2]);
    ++shapes[{replaced(fold(param.name), ".block_sparse_moe.", ".mlp."), shape}];
  };
  const bool fused = spec.expert_naming.native == Fusion::kInterleaved;
  std::set<int32_t> moe_layers;
  family_of(spec).inventory(spec, [&](ParamSpec&& param) {
    if (param.role == Role::kMtp) return;
    if (param.expert >= 0 && !fused)
      moe_layers.insert(param.layer);
    else
      add(param);
  });
  for (const int32_t layer : moe_layers)
    visit_experts(spec, layer, ExpertStorage::kGateThenUp, [&](ParamSpec&& param) { add(param); });
  return shapes;
}

TEST(Inventory, names_and_shapes_equal_those_of_transformers) {
  const Json known = read_json(testing::model_data("transformers_parameters.json"));
  size_t compared = 0;
  for (const auto& [model, entry] : known.items()) {
    if (!entry.is_object() || starts_with(model, "deepseek-v4")) continue;  // other names in memory than in files
    EXPECT_THAT(in_memory_shapes(model_spec(model)), ::testing::ContainerEq(shapes_of(entry["tensors"]))) << model;
    ++compared;
  }
  EXPECT_EQ(compared, 15U);
}

TEST(Inventory, deepseek_v4_equals_the_release) {
  const ModelSpec spec = model_spec("deepseek-v4-flash");
  Shapes shapes;
  family_of(spec).inventory(spec, [&](ParamSpec&& param) { ++shapes[{fold(param.name), param.shape}]; });
  EXPECT_THAT(shapes,
              ::testing::ContainerEq(shapes_of(read_json(testing::model_data("deepseek_v4_flash_tensors.json")))));
}

// FORMATS.md §4.4: shapes of experts of Kimi-K3, packed and not, and about 497,000 tensors with scales.
TEST(Inventory, kimi_k3_experts_live_in_the_latent_space) {
  const ModelSpec spec = model_spec("kimi-k3");
  const std::string moe = "language_model.model.layers.92.block_sparse_moe.";
  std::map<std::string, std::pair<Role, std::vector<uint64_t>>> seen;
  uint64_t tensors = 0;
  family_of(spec).inventory(spec, [&](ParamSpec&& param) {
    tensors += param.role == Role::kRoutedExpert ? 2 : 1;
    if (starts_with(param.name, moe)) seen[param.name.substr(moe.size())] = {param.role, param.shape};
  });
  using Entry = std::pair<Role, std::vector<uint64_t>>;
  EXPECT_EQ(seen["experts.895.w1.weight"], (Entry{Role::kRoutedExpert, {3072, 3584}}));
  EXPECT_EQ(seen["experts.895.w2.weight"], (Entry{Role::kRoutedExpert, {3584, 3072}}));
  EXPECT_EQ(seen["experts.0.w3.weight"], (Entry{Role::kRoutedExpert, {3072, 3584}}));
  EXPECT_EQ(seen["routed_expert_down_proj.weight"], (Entry{Role::kLatent, {3584, 7168}}));
  EXPECT_EQ(seen["routed_expert_up_proj.weight"], (Entry{Role::kLatent, {7168, 3584}}));
  EXPECT_EQ(seen["shared_experts.up_proj.weight"], (Entry{Role::kSharedExpert, {6144, 7168}}));
  EXPECT_EQ(tensors / 1000, 497U);
}

// The rows above do not see roles: one of each kind, by name.
TEST(Inventory, roles) {
  std::map<std::string, Role> roles;
  for (const char* model : {"deepseek-v3.2", "kimi-k2.5", "gpt-oss-20b", "glm-4.5", "minimax-m2.7"}) {
    const ModelSpec spec = model_spec(model);
    family_of(spec).inventory(spec, [&](ParamSpec&& param) { roles[spec.family + ":" + param.name] = param.role; });
  }
  const std::map<std::string, Role> expected{
      {"deepseek_v3:model.embed_tokens.weight", Role::kEmbedding},
      {"deepseek_v3:lm_head.weight", Role::kHead},
      {"deepseek_v3:model.layers.2.mlp.gate_proj.weight", Role::kDenseMlp},
      {"deepseek_v3:model.layers.3.mlp.gate.weight", Role::kRouter},
      {"deepseek_v3:model.layers.3.mlp.gate.e_score_correction_bias", Role::kRouter},
      {"deepseek_v3:model.layers.60.mlp.experts.255.down_proj.weight", Role::kRoutedExpert},
      {"deepseek_v3:model.layers.60.mlp.shared_experts.up_proj.weight", Role::kSharedExpert},
      {"deepseek_v3:model.layers.0.self_attn.indexer.wq_b.weight", Role::kAttention},
      {"deepseek_v3:model.layers.0.self_attn.indexer.k_norm.bias", Role::kNorm},
      {"deepseek_v3:model.layers.61.eh_proj.weight", Role::kMtp},
      {"deepseek_v3:model.layers.61.mlp.experts.0.gate_proj.weight", Role::kMtp},
      {"kimi_k25:language_model.lm_head.weight", Role::kHead},
      {"kimi_k25:language_model.model.layers.1.mlp.experts.383.up_proj.weight", Role::kRoutedExpert},
      {"gpt_oss:model.layers.0.mlp.experts.gate_up_proj", Role::kRoutedExpert},
      {"gpt_oss:model.layers.0.mlp.experts.gate_up_proj_bias", Role::kBias},
      {"gpt_oss:model.layers.0.mlp.router.bias", Role::kRouter},
      {"gpt_oss:model.layers.0.self_attn.sinks", Role::kAttention},
      {"gpt_oss:model.layers.0.self_attn.q_proj.bias", Role::kBias},
      {"glm4_moe:model.layers.92.shared_head.head.weight", Role::kMtp},
      {"minimax_m2:model.layers.0.block_sparse_moe.e_score_correction_bias", Role::kRouter},
      {"minimax_m2:model.layers.0.self_attn.q_norm.weight", Role::kNorm},
  };
  for (const auto& [name, role] : expected) {
    ASSERT_TRUE(roles.contains(name)) << name;
    EXPECT_EQ(role_name(roles[name]), role_name(role)) << name;
  }
}

}  // namespace
}  // namespace nibble
