// Families under GGUF's keys and names, from key/value pairs made here (the golden files are model_test.cc's).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/models/bundled_models.h"
#include "nibble/models/family.h"

namespace nibble {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void set(GgufFile* file, const std::string& key, GgufValue value) {
  file->metadata.emplace_back(key, std::move(value));
}
GgufValue uint_value(uint64_t v) { return {v}; }
GgufValue f32_value(float v) { return {static_cast<double>(v)}; }
GgufValue text_value(const char* v) { return {std::string(v)}; }

void add_tensor(GgufFile* file, const std::string& name, std::vector<uint64_t> shape, Dtype dtype = Dtype::kBF16) {
  StoredTensor tensor;
  tensor.name = name;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  file->tensors.push_back(std::move(tensor));
}

// The values of SmolLM2-135M-Instruct's file.
GgufFile smollm2() {
  GgufFile file;
  set(&file, "general.architecture", text_value("llama"));
  for (const auto& [key, value] : std::vector<std::pair<const char*, uint64_t>>{{"block_count", 30},
                                                                                {"context_length", 8192},
                                                                                {"embedding_length", 576},
                                                                                {"feed_forward_length", 1536},
                                                                                {"attention.head_count", 9},
                                                                                {"attention.head_count_kv", 3},
                                                                                {"vocab_size", 49152},
                                                                                {"rope.dimension_count", 64}})
    set(&file, std::string("llama.") + key, uint_value(value));
  set(&file, "llama.rope.freq_base", f32_value(100000));
  set(&file, "llama.attention.layer_norm_rms_epsilon", f32_value(1e-5F));
  set(&file, "tokenizer.ggml.bos_token_id", uint_value(1));
  set(&file, "tokenizer.ggml.eos_token_id", uint_value(2));
  set(&file, "tokenizer.ggml.padding_token_id", uint_value(2));
  add_tensor(&file, "token_embd.weight", {49152, 576}, Dtype::kGgufBlock);
  return file;
}

GgufFile gpt_oss() {
  GgufFile file;
  set(&file, "general.architecture", text_value("gpt-oss"));
  for (const auto& [key, value] :
       std::vector<std::pair<const char*, uint64_t>>{{"block_count", 24},
                                                     {"context_length", 131072},
                                                     {"embedding_length", 2880},
                                                     {"feed_forward_length", 2880},
                                                     {"attention.head_count", 64},
                                                     {"attention.head_count_kv", 8},
                                                     {"attention.key_length", 64},
                                                     {"attention.value_length", 64},
                                                     {"attention.sliding_window", 128},
                                                     {"expert_count", 32},
                                                     {"expert_used_count", 4},
                                                     {"expert_feed_forward_length", 2880},
                                                     {"rope.scaling.original_context_length", 4096}})
    set(&file, std::string("gpt-oss.") + key, uint_value(value));
  set(&file, "gpt-oss.rope.freq_base", f32_value(150000));
  set(&file, "gpt-oss.rope.scaling.type", text_value("yarn"));
  set(&file, "gpt-oss.rope.scaling.factor", f32_value(32));
  set(&file, "gpt-oss.attention.layer_norm_rms_epsilon", f32_value(1e-5F));
  add_tensor(&file, "token_embd.weight", {201088, 2880});
  add_tensor(&file, "output.weight", {201088, 2880});
  return file;
}

GgufFile qwen3_30b_a3b() {
  GgufFile file;
  set(&file, "general.architecture", text_value("qwen3moe"));
  for (const auto& [key, value] : std::vector<std::pair<const char*, uint64_t>>{{"block_count", 48},
                                                                                {"context_length", 40960},
                                                                                {"embedding_length", 2048},
                                                                                {"feed_forward_length", 6144},
                                                                                {"attention.head_count", 32},
                                                                                {"attention.head_count_kv", 4},
                                                                                {"attention.key_length", 128},
                                                                                {"attention.value_length", 128},
                                                                                {"expert_count", 128},
                                                                                {"expert_used_count", 8},
                                                                                {"expert_feed_forward_length", 768}})
    set(&file, std::string("qwen3moe.") + key, uint_value(value));
  set(&file, "qwen3moe.rope.freq_base", f32_value(1000000));
  set(&file, "qwen3moe.attention.layer_norm_rms_epsilon", f32_value(1e-6F));
  add_tensor(&file, "token_embd.weight", {151936, 2048}, Dtype::kGgufBlock);
  add_tensor(&file, "output.weight", {151936, 2048}, Dtype::kGgufBlock);
  return file;
}

TEST(Gguf, smollm2_as_a_configuration_that_transformers_loads) {
  const GgufFile file = smollm2();
  const Family* family = find_gguf_family(file);
  ASSERT_NE(family, nullptr);
  const ModelSpec spec = family->parse_gguf(file, "m.gguf");
  EXPECT_EQ(spec.head_dim, 64U);
  EXPECT_TRUE(spec.tied_embeddings);  // no output.weight
  EXPECT_EQ(spec.rms_norm_eps, 1e-5);
  const Json config = family->config_from_gguf(file, spec);
  // The values of the model's own config.json.
  const Json expected = parse_json(R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2, "head_dim": 64,
    "hidden_act": "silu", "hidden_size": 576, "initializer_range": 0.02, "max_position_embeddings": 8192,
    "model_type": "llama", "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3,
    "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 100000.0, "tie_word_embeddings": true,
    "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 49152, "intermediate_size": 1536, "mlp_bias": false,
    "pretraining_tp": 1})",
                                   "");
  for (const auto& [key, value] : expected.items()) EXPECT_EQ(config[key].dump(), value.dump()) << key;
  EXPECT_EQ(config.size(), expected.size());
  // Read back, it is the same model.
  EXPECT_EQ(find_family(config)->parse(parse_json(config.dump(), ""), ""), spec);
}

TEST(Gguf, gpt_oss_there_and_back) {
  const GgufFile file = gpt_oss();
  const Family* family = find_gguf_family(file);
  ASSERT_NE(family, nullptr);
  const ModelSpec spec = family->parse_gguf(file, "m.gguf");
  EXPECT_FALSE(spec.tied_embeddings);
  EXPECT_EQ(spec.layers[0].sliding_window, 128U);
  EXPECT_EQ(spec.layers[1].sliding_window, 0U);
  EXPECT_FALSE(spec.rope.truncate);
  const Json config = family->config_from_gguf(file, spec);
  EXPECT_EQ(find_family(config)->parse(parse_json(config.dump(), ""), ""), spec);
}

// The same model as its bundled config.json, and back from a configuration of our own.
TEST(Gguf, qwen3_moe_is_the_released_model) {
  const GgufFile file = qwen3_30b_a3b();
  const Family* family = find_gguf_family(file);
  ASSERT_NE(family, nullptr);
  const ModelSpec spec = family->parse_gguf(file, "m.gguf");
  const EmbeddedFile* released = find_bundled_model("qwen3-30b-a3b");
  ASSERT_NE(released, nullptr);
  EXPECT_EQ(family->parse(parse_json(released->text, ""), ""), spec);
  const Json config = family->config_from_gguf(file, spec);
  EXPECT_EQ(find_family(config)->parse(parse_json(config.dump(), ""), ""), spec);
  EXPECT_EQ(family->name_from_gguf("blk.7.ffn_up_exps.weight"), "model.layers.7.mlp.experts.up_proj");
  EXPECT_EQ(family->name_from_gguf("blk.7.attn_k_norm.weight"), "model.layers.7.self_attn.k_norm.weight");
  EXPECT_FALSE(family->gguf_rotary_pairs());
}

TEST(Gguf, names) {
  const Family* llama = find_gguf_family(smollm2());
  EXPECT_EQ(llama->name_from_gguf("blk.3.attn_q.weight"), "model.layers.3.self_attn.q_proj.weight");
  EXPECT_EQ(llama->name_from_gguf("blk.29.ffn_norm.weight"), "model.layers.29.post_attention_layernorm.weight");
  EXPECT_EQ(llama->name_from_gguf("output_norm.weight"), "model.norm.weight");
  for (const char* unknown : {"blk.x.attn_q.weight", "blk..attn_q.weight", "blk.3", "blk.3.", "rope_freqs.weight", ""})
    EXPECT_EQ(llama->name_from_gguf(unknown), "") << unknown;
  EXPECT_TRUE(llama->gguf_rotary_pairs());
  const Family* oss = find_gguf_family(gpt_oss());
  EXPECT_EQ(oss->name_from_gguf("blk.0.ffn_down_exps.bias"), "model.layers.0.mlp.experts.down_proj_bias");
  EXPECT_EQ(oss->name_from_gguf("blk.0.attn_sinks.weight"), "model.layers.0.self_attn.sinks");
  EXPECT_EQ(oss->name_from_gguf("blk.0.post_attention_norm.weight"), "model.layers.0.post_attention_layernorm.weight");
  EXPECT_FALSE(oss->gguf_rotary_pairs());
}

std::string refusal(const GgufFile& file) {
  try {
    const Family* family = find_gguf_family(file);
    family->config_from_gguf(file, family->parse_gguf(file, "m.gguf"));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Gguf, what_cannot_be_read_is_refused) {
  GgufFile file = smollm2();
  std::erase_if(file.metadata, [](const auto& entry) { return entry.first == "llama.block_count"; });
  EXPECT_THAT(refusal(file), HasSubstr("llama.block_count"));
  file = smollm2();
  add_tensor(&file, "blk.0.ffn_gate_inp.weight", {8, 576});
  EXPECT_THAT(refusal(file), HasSubstr("blk.0.ffn_gate_inp.weight"));
  file = smollm2();
  add_tensor(&file, "rope_freqs.weight", {32});
  EXPECT_THAT(refusal(file), HasSubstr("rope_freqs.weight"));
  file = smollm2();
  file.metadata[1].second = uint_value(uint64_t{1} << 40);
  EXPECT_THAT(refusal(file), HasSubstr("1099511627776"));
  EXPECT_EQ(refusal(smollm2()), "");
}

TEST(Gguf, more_experts_a_token_than_experts_are_refused) {
  GgufFile file = qwen3_30b_a3b();
  for (auto& [key, value] : file.metadata) {
    if (key == "qwen3moe.expert_used_count") value = uint_value(129);
  }
  EXPECT_THAT(refusal(file), AllOf(HasSubstr("expert_used_count"), HasSubstr("128")));
}

TEST(Gguf, other_architectures_are_unknown) {
  GgufFile file;
  EXPECT_EQ(find_gguf_family(file), nullptr);
  set(&file, "general.architecture", text_value("qwen2moe"));
  EXPECT_EQ(find_gguf_family(file), nullptr);
}

}  // namespace
}  // namespace nibble
