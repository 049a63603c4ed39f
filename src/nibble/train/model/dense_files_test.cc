// Weights through the trainer's form and back: the same bytes under the same names, for every family.
#include "nibble/train/model/dense_files.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/tiny.h"

namespace nibble {
namespace {

using testing::TempDir;
using testing::TinyCheckpoint;

struct Opened {
  Checkpoint checkpoint;
  Findings findings;
  Model model;
  explicit Opened(const Path& path) : checkpoint(Checkpoint::open(path)), model(load_model(checkpoint, &findings)) {}
};

TrainedTensors read(const Path& path) {
  const Opened opened(path);
  TrainedTensors tensors(*opened.model.family, opened.model.spec);
  read_values(opened.checkpoint, opened.model, &tensors);
  return tensors;
}

void expect_same_tensors(const Path& wanted, const Path& got) {
  const Checkpoint before = Checkpoint::open(wanted), after = Checkpoint::open(got);
  ASSERT_EQ(before.tensors().size(), after.tensors().size());
  for (const StoredTensor& tensor : before.tensors()) {
    const int64_t index = after.find(tensor.name);
    ASSERT_GE(index, 0) << tensor.name;
    const StoredTensor& other = after.tensors()[static_cast<size_t>(index)];
    EXPECT_EQ(other.shape, tensor.shape) << tensor.name;
    EXPECT_EQ(after.read_all(other), before.read_all(tensor)) << tensor.name;
  }
}

class FamilyFiles : public ::testing::TestWithParam<const char*> {};

TEST_P(FamilyFiles, come_out_as_they_went_in) {
  const TempDir dir;
  const Path source = testing::golden_dir() / "models" / GetParam();
  const TrainedTensors tensors = read(source);
  write_dense(dir.path() / "out", Checkpoint::open(source).config(), tensors);
  const Opened written(dir.path() / "out");
  EXPECT_TRUE(written.findings.empty());
  // The goldens hold 32 bits where the model's type is another one: their BF16 values are what can come back.
  EXPECT_EQ(read(dir.path() / "out").parameters(), tensors.parameters());
  write_dense(dir.path() / "again", Checkpoint::open(source).config(), read(dir.path() / "out"));
  expect_same_tensors(dir.path() / "out", dir.path() / "again");
}

INSTANTIATE_TEST_SUITE_P(All, FamilyFiles, ::testing::Values("qwen3_moe", "llama", "mixtral", "gpt_oss"));

TEST(DenseFiles, bf16_weights_keep_every_byte) {
  const TempDir dir;
  for (const bool gpt_oss : {false, true}) {
    const TinyCheckpoint tiny = gpt_oss ? TinyCheckpoint::gpt_oss() : TinyCheckpoint::qwen3_moe();
    const Path source = dir.path() / (gpt_oss ? "g" : "q"), target = dir.path() / (gpt_oss ? "g2" : "q2");
    tiny.write(source, 2);
    write_dense(target, Checkpoint::open(source).config(), read(source));
    expect_same_tensors(source, target);
  }
}

// One number in each projection: it must lie where the passes look for it.
TEST(DenseFiles, rows_of_gate_up_and_of_q_k_v_lie_one_below_the_other) {
  const TempDir dir;
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  const auto mark = [&](const std::string& name, size_t row, float value) {
    std::vector<float> values = tiny.values(name);
    values[row * tiny.at(name).shape[1]] = value;
    tiny.set_values(name, values);
  };
  mark("model.layers.1.mlp.experts.3.gate_proj.weight", 5, 2);
  mark("model.layers.1.mlp.experts.3.up_proj.weight", 6, 3);
  mark("model.layers.1.self_attn.q_proj.weight", 1, 4);
  mark("model.layers.1.self_attn.k_proj.weight", 2, 5);
  mark("model.layers.1.self_attn.v_proj.weight", 3, 6);
  tiny.write(dir.path() / "in");
  const TrainedTensors tensors = read(dir.path() / "in");
  const TrainedTensor& experts = tensors.at("model.layers.1.mlp.experts.gate_up");
  ASSERT_EQ(experts.shape, (std::vector<uint64_t>{4, 64, 64}));  // (E, 2I, H)
  EXPECT_EQ(experts.values[(3 * 64 + 5) * 64], 2);
  EXPECT_EQ(experts.values[(3 * 64 + 32 + 6) * 64], 3);
  const TrainedTensor& qkv = tensors.at("model.layers.1.self_attn.qkv_proj");
  ASSERT_EQ(qkv.shape, (std::vector<uint64_t>{128, 64}));  // 4 · 16 + 2 · 16 + 2 · 16 rows
  EXPECT_EQ(qkv.values[1 * 64], 4);
  EXPECT_EQ(qkv.values[(64 + 2) * 64], 5);
  EXPECT_EQ(qkv.values[(96 + 3) * 64], 6);
}

// gpt-oss's dense stacks are (E, H, 2I) with gate and up in turn.
TEST(DenseFiles, interleaved_transposed_stacks_are_taken_apart) {
  const TempDir dir;
  TinyCheckpoint tiny = TinyCheckpoint::gpt_oss();
  const std::string name = "model.layers.0.mlp.experts.gate_up_proj";
  std::vector<float> values = tiny.values(name);
  const uint64_t hidden = 64, wide = 64;             // 2I
  values[(2 * hidden + 7) * wide + 2 * 9] = 8;       // expert 2, input 7, gate of row 9
  values[(2 * hidden + 7) * wide + 2 * 9 + 1] = 16;  // … and its up
  tiny.set_values(name, values);
  std::vector<float> biases = tiny.values(name + "_bias");
  biases[2 * wide + 2 * 9 + 1] = 32;
  tiny.set_values(name + "_bias", biases);
  tiny.write(dir.path() / "in");
  const TrainedTensors tensors = read(dir.path() / "in");
  const TrainedTensor& experts = tensors.at("model.layers.0.mlp.experts.gate_up");
  EXPECT_EQ(experts.values[(2 * 64 + 9) * 64 + 7], 8);
  EXPECT_EQ(experts.values[(2 * 64 + 32 + 9) * 64 + 7], 16);
  EXPECT_EQ(tensors.at("model.layers.0.mlp.experts.gate_up.bias").values[2 * 64 + 32 + 9], 32);
}

TEST(DenseFiles, low_bit_weights_are_decoded) {
  const TempDir dir;
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize("compressed-tensors", "int4-g32");
  tiny.write(dir.path() / "low");
  const Opened opened(dir.path() / "low");
  const TrainedTensors tensors = read(dir.path() / "low");
  const int64_t index = opened.model.table.find("model.layers.0.mlp.experts.1.up_proj.weight");
  const std::vector<float> decoded =
      read_rows_f32(opened.checkpoint, opened.model.table.weights()[static_cast<size_t>(index)], 0, 0, 32);
  const TrainedTensor& experts = tensors.at("model.layers.0.mlp.experts.gate_up");
  EXPECT_TRUE(std::equal(decoded.begin(), decoded.end(), experts.values.begin() + (64 + 32) * 64));
}

TEST(DenseFiles, a_missing_tensor_is_named) {
  const TempDir dir;
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.drop("model.layers.1.mlp.experts.2.up_proj.weight");
  tiny.write(dir.path() / "in");
  try {
    read(dir.path() / "in");
    FAIL() << "read";
  } catch (const Error& error) {
    EXPECT_EQ(error.tensor(), "model.layers.1.mlp.experts.gate_up");
    EXPECT_NE(std::string(error.what()).find("elements 14336, elements_expected 16384"), std::string::npos)
        << error.what();
  }
}

TEST(TrainedTensors, counts_and_refuses) {
  const Json config = {{"model_type", "qwen3_moe"},
                       {"vocab_size", 64},
                       {"hidden_size", 64},
                       {"intermediate_size", 64},
                       {"num_hidden_layers", 2},
                       {"num_attention_heads", 2},
                       {"num_key_value_heads", 1},
                       {"head_dim", 64},
                       {"rms_norm_eps", 1e-6},
                       {"max_position_embeddings", 1},
                       {"rope_theta", 10000},
                       {"tie_word_embeddings", false},
                       {"num_experts", 4},
                       {"num_experts_per_tok", 2},
                       {"moe_intermediate_size", 32},
                       {"hidden_act", "silu"},
                       {"decoder_sparse_step", 1},
                       {"mlp_only_layers", Json::array()},
                       {"norm_topk_prob", true}};
  const Family* family = find_family(config);
  TrainedTensors tensors(*family, family->parse(config, ""));
  EXPECT_EQ(tensors.parameters(), 107584U);  // the published recipe's count
  initialize(&tensors, 3);
  const TrainedTensor& norm = tensors.at("model.norm.weight");
  EXPECT_TRUE(std::ranges::all_of(norm.values, [](float value) { return value == 1; }));
  double squares = 0;
  const TrainedTensor& experts = tensors.at("model.layers.0.mlp.experts.gate_up");
  for (const float value : experts.values) squares += static_cast<double>(value) * static_cast<double>(value);
  EXPECT_NEAR(squares / static_cast<double>(experts.values.size()), 1.0 / 64, 0.001);  // 1 / inputs
  ModelSpec other = tensors.spec();
  other.router = RouterKind::kSigmoidBias;
  EXPECT_THROW(TrainedTensors(*family, other), Error);
}

}  // namespace
}  // namespace nibble
