// As many tensors as the largest releases have (Kimi-K3: 497,000), all known, and none known.
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "nibble/models/model.h"
#include "nibble/models/model_data_test.h"
#include "nibble/testing/temp_dir.h"

namespace nibble {
namespace {

// Kimi-K3's layers and experts at a thousandth of its widths, experts as MXFP4: weight_packed and weight_scale.
Json narrow_kimi_k3() {
  Json config = testing::model_config("kimi-k3");
  Json& text = config["text_config"];
  const Json widths = parse_json(R"({"hidden_size": 64, "intermediate_size": 64, "moe_intermediate_size": 32,
    "routed_expert_hidden_size": 32, "q_lora_rank": 32, "kv_lora_rank": 32, "vocab_size": 64, "num_attention_heads": 2,
    "num_key_value_heads": 2, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16})",
                                 "");
  for (const auto& [key, value] : widths.items()) text[key] = value;
  text["linear_attn_config"]["num_heads"] = widths["num_attention_heads"];
  text["linear_attn_config"]["head_dim"] = widths["q_lora_rank"];
  return config;
}

std::vector<TensorDecl> packed_inventory(const Json& config, const std::string& experts_called) {
  std::vector<TensorDecl> decls;
  const Family* family = find_family(config);
  family->inventory(family->parse(config, ""), [&](ParamSpec&& param) {
    if (param.role != Role::kRoutedExpert) {
      decls.push_back({param.name, Dtype::kBF16, param.shape});
      return;
    }
    std::string module = param.name.substr(0, param.name.size() - 6);
    if (const size_t at = module.find(".experts."); !experts_called.empty()) module.replace(at + 1, 7, experts_called);
    decls.push_back({module + "weight_packed", Dtype::kU8, {param.shape[0], param.shape[1] / 2}});
    decls.push_back({module + "weight_scale", Dtype::kU8, {param.shape[0], param.shape[1] / 32}});
  });
  return decls;
}

// Headers only: the bytes are a hole in the file.
Path write_hollow(const Path& folder, const Json& config, const std::string& experts_called = "") {
  std::filesystem::create_directories(folder);
  write_atomically(folder / "config.json", json_text(config));
  const SafetensorsLayout layout = plan_safetensors(packed_inventory(config, experts_called), {});
  write_atomically(folder / "model.safetensors", layout.header);
  std::filesystem::resize_file(folder / "model.safetensors", layout.file_bytes);
  return folder;
}

struct Timed {
  Model model;
  Findings findings;
  double build_seconds = 0, all_seconds = 0;
};

Timed load(const Path& path) {
  const Checkpoint checkpoint = Checkpoint::open(path);
  EXPECT_EQ(checkpoint.tensors().size() / 1000, 497U);
  Timed timed;
  const auto seconds = [start = std::chrono::steady_clock::now()] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  WeightTable::build(checkpoint, &timed.findings);
  timed.build_seconds = seconds();
  timed.findings.clear();
  timed.model = load_model(checkpoint, &timed.findings);
  timed.all_seconds = seconds() - timed.build_seconds;
  return timed;
}

// Alone on a core of 2026's servers matching takes about 0.3 s; the bound leaves room for a busy machine and still
// fails if the work grows with the square of the tensors.
constexpr double kBound = 15;

TEST(ModelSize, half_a_million_tensors_match) {
  const testing::TempDir dir;
  const Timed timed = load(write_hollow(dir.path() / "m", narrow_kimi_k3()));
  for (const Finding& finding : timed.findings) ADD_FAILURE() << finding.rule << " " << finding.message;
  RecordProperty("build_seconds", std::to_string(timed.build_seconds));
  RecordProperty("match_seconds", std::to_string(timed.all_seconds - timed.build_seconds));
  std::printf("grouping %.2f s, matching %.2f s\n", timed.build_seconds, timed.all_seconds - timed.build_seconds);
  EXPECT_LT(timed.all_seconds - timed.build_seconds, kBound);
}

TEST(ModelSize, C53_a_quarter_of_a_million_unknown_names_cost_no_square) {
  const testing::TempDir dir;
  const Timed timed = load(write_hollow(dir.path() / "m", narrow_kimi_k3(), "switch_mlp"));
  std::printf("grouping %.2f s, matching %.2f s\n", timed.build_seconds, timed.all_seconds - timed.build_seconds);
  EXPECT_LT(timed.all_seconds - timed.build_seconds, kBound);
  ASSERT_FALSE(timed.findings.empty());
  EXPECT_EQ(timed.findings.size(), 7U);
  EXPECT_EQ(timed.findings[0].message.substr(0, 51), "247296 unmatched tensors, 247296 empty parameters: ");
}

}  // namespace
}  // namespace nibble
