// As many tensors as the largest releases have (Kimi-K3: 497,000), all known, and none known.
#include <gtest/gtest.h>

#include <ctime>
#include <functional>
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

std::vector<TensorDecl> packed_inventory(const Json& config) {
  std::vector<TensorDecl> decls;
  const Family* family = find_family(config);
  family->inventory(family->parse(config, ""), [&](ParamSpec&& param) {
    if (param.role != Role::kRoutedExpert) {
      decls.push_back({param.name, Dtype::kBF16, param.shape});
      return;
    }
    const std::string module = param.name.substr(0, param.name.size() - 6);
    decls.push_back({module + "weight_packed", Dtype::kU8, {param.shape[0], param.shape[1] / 2}});
    decls.push_back({module + "weight_scale", Dtype::kU8, {param.shape[0], param.shape[1] / 32}});
  });
  return decls;
}

// Processor time: the machine may be busy with other things.
double seconds_of(const std::function<void()>& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

class ModelSize : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { layout() = plan_safetensors(packed_inventory(narrow_kimi_k3()), {}); }
  static void TearDownTestSuite() { layout() = {}; }
  static SafetensorsLayout& layout() {
    static SafetensorsLayout instance;
    return instance;
  }

  // Headers only: the bytes are a hole in the file. `experts_called` has seven letters too.
  void load(const std::string& experts_called) {
    std::string header = layout().header;
    for (size_t at = 0; (at = header.find(".experts.", at)) != std::string::npos; at += 9)
      header.replace(at + 1, 7, experts_called);
    write_atomically(dir_ / "config.json", json_text(narrow_kimi_k3()));
    write_atomically(dir_ / "model.safetensors", header);
    std::filesystem::resize_file(dir_ / "model.safetensors", layout().file_bytes);
    const Checkpoint checkpoint = Checkpoint::open(dir_.path());
    EXPECT_EQ(checkpoint.tensors().size() / 1000, 497U);
    const double grouping = seconds_of([&] { WeightTable::build(checkpoint, &findings_); });
    findings_.clear();
    seconds_ = seconds_of([&] { load_model(checkpoint, &findings_); }) - grouping;
    std::printf("grouping %.2f s, matching %.2f s\n", grouping, seconds_);
  }

  testing::TempDir dir_;
  Findings findings_;
  double seconds_ = 0;
};

// Matching takes 0.3 s of an EPYC core at 2.4 GHz. The bound leaves room for sanitizers and still fails if the work
// grows with the square of the tensors.
constexpr double kBound = 10;

TEST_F(ModelSize, half_a_million_tensors_match) {
  load("experts");
  for (const Finding& finding : findings_) ADD_FAILURE() << finding.rule << " " << finding.message;
  EXPECT_LT(seconds_, kBound);
}

TEST_F(ModelSize, C53_a_quarter_of_a_million_unknown_names_cost_no_square) {
  load("switchm");
  EXPECT_LT(seconds_, kBound);
  ASSERT_EQ(findings_.size(), 7U);  // a summary, three kinds of names, three kinds of parameters
  EXPECT_EQ(findings_[0].message.substr(0, 51), "247296 unmatched tensors, 247296 empty parameters: ");
}

}  // namespace
}  // namespace nibble
