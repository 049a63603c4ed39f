#include "nibble/testing/tiny.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "nibble/base/check.h"
#include "nibble/base/rng.h"
#include "nibble/base/strings.h"
#include "nibble/checkpoint/checkpoint.h"
#include "nibble/checkpoint/shard_index.h"
#include "nibble/numerics/decode.h"

namespace nibble::testing {
namespace {

uint64_t elements_of(const std::vector<uint64_t>& shape) {
  uint64_t count = 1;
  for (const uint64_t dim : shape) count *= dim;
  return count;
}

DenseView floats_view(std::span<const float> values) {
  return {reinterpret_cast<const std::byte*>(values.data()), Element::kF32, 1, values.size(), values.size_bytes()};
}

Json common_config(const TinyOptions& o) {
  return {{"hidden_size", o.hidden},        {"num_hidden_layers", o.layers},
          {"num_attention_heads", o.heads}, {"num_key_value_heads", o.kv_heads},
          {"head_dim", o.head_dim},         {"vocab_size", o.vocabulary},
          {"hidden_act", "silu"},           {"max_position_embeddings", 512},
          {"rms_norm_eps", 1e-6},           {"tie_word_embeddings", false},
          {"torch_dtype", "bfloat16"}};
}

}  // namespace

TinyCheckpoint::TinyCheckpoint() : config_(std::make_unique<Json>()) {}
TinyCheckpoint::TinyCheckpoint(const TinyCheckpoint& other)
    : tensors_(other.tensors_), config_(std::make_unique<Json>(*other.config_)) {}
TinyCheckpoint& TinyCheckpoint::operator=(const TinyCheckpoint& other) {
  tensors_ = other.tensors_;
  *config_ = *other.config_;
  return *this;
}
TinyCheckpoint::~TinyCheckpoint() = default;

Json& TinyCheckpoint::config() { return *config_; }

TinyCheckpoint TinyCheckpoint::qwen3_moe(const TinyOptions& o) {
  TinyCheckpoint tiny;
  *tiny.config_ = common_config(o);
  tiny.config_->update(Json{{"architectures", {"Qwen3MoeForCausalLM"}},
                            {"model_type", "qwen3_moe"},
                            {"num_experts", o.experts},
                            {"num_experts_per_tok", 2},
                            {"moe_intermediate_size", o.intermediate},
                            {"intermediate_size", 2 * o.hidden},
                            {"decoder_sparse_step", 1},
                            {"mlp_only_layers", Json::array()},
                            {"norm_topk_prob", true},
                            {"rope_theta", 1e6},
                            {"attention_bias", false}});
  tiny.add_normal("model.embed_tokens.weight", {o.vocabulary, o.hidden}, o);
  for (uint64_t layer = 0; layer < o.layers; ++layer) {
    const std::string p = fmt::format("model.layers.{}.", layer);
    tiny.add_normal(p + "input_layernorm.weight", {o.hidden}, o, 1);
    tiny.add_normal(p + "post_attention_layernorm.weight", {o.hidden}, o, 1);
    tiny.add_normal(p + "self_attn.q_proj.weight", {o.heads * o.head_dim, o.hidden}, o);
    tiny.add_normal(p + "self_attn.k_proj.weight", {o.kv_heads * o.head_dim, o.hidden}, o);
    tiny.add_normal(p + "self_attn.v_proj.weight", {o.kv_heads * o.head_dim, o.hidden}, o);
    tiny.add_normal(p + "self_attn.o_proj.weight", {o.hidden, o.heads * o.head_dim}, o);
    tiny.add_normal(p + "self_attn.q_norm.weight", {o.head_dim}, o, 1);
    tiny.add_normal(p + "self_attn.k_norm.weight", {o.head_dim}, o, 1);
    tiny.add_normal(p + "mlp.gate.weight", {o.experts, o.hidden}, o);
    for (uint64_t e = 0; e < o.experts; ++e) {
      tiny.add_normal(fmt::format("{}mlp.experts.{}.gate_proj.weight", p, e), {o.intermediate, o.hidden}, o);
      tiny.add_normal(fmt::format("{}mlp.experts.{}.up_proj.weight", p, e), {o.intermediate, o.hidden}, o);
      tiny.add_normal(fmt::format("{}mlp.experts.{}.down_proj.weight", p, e), {o.hidden, o.intermediate}, o);
    }
  }
  tiny.add_normal("model.norm.weight", {o.hidden}, o, 1);
  tiny.add_normal("lm_head.weight", {o.vocabulary, o.hidden}, o);
  return tiny;
}

TinyCheckpoint TinyCheckpoint::gpt_oss(const TinyOptions& o) {
  TinyCheckpoint tiny;
  *tiny.config_ = common_config(o);
  Json layer_types = Json::array();
  for (uint64_t layer = 0; layer < o.layers; ++layer)
    layer_types.push_back(layer % 2 == 0 ? "sliding_attention" : "full_attention");
  tiny.config_->update(Json{{"architectures", {"GptOssForCausalLM"}},
                            {"model_type", "gpt_oss"},
                            {"num_local_experts", o.experts},
                            {"num_experts_per_tok", 2},
                            {"experts_per_token", 2},
                            {"intermediate_size", o.intermediate},
                            {"sliding_window", 128},
                            {"layer_types", layer_types},
                            {"swiglu_limit", 7.0},
                            {"rope_theta", 150000},
                            {"attention_bias", true}});
  tiny.add_normal("model.embed_tokens.weight", {o.vocabulary, o.hidden}, o);
  for (uint64_t layer = 0; layer < o.layers; ++layer) {
    const std::string p = fmt::format("model.layers.{}.", layer);
    tiny.add_normal(p + "input_layernorm.weight", {o.hidden}, o, 1);
    tiny.add_normal(p + "post_attention_layernorm.weight", {o.hidden}, o, 1);
    const std::pair<const char*, uint64_t> inputs[] = {{"q", o.heads}, {"k", o.kv_heads}, {"v", o.kv_heads}};
    for (const auto& [name, heads] : inputs) {
      tiny.add_normal(fmt::format("{}self_attn.{}_proj.weight", p, name), {heads * o.head_dim, o.hidden}, o);
      tiny.add_normal(fmt::format("{}self_attn.{}_proj.bias", p, name), {heads * o.head_dim}, o);
    }
    tiny.add_normal(p + "self_attn.o_proj.weight", {o.hidden, o.heads * o.head_dim}, o);
    tiny.add_normal(p + "self_attn.o_proj.bias", {o.hidden}, o);
    tiny.add_normal(p + "self_attn.sinks", {o.heads}, o);
    tiny.add_normal(p + "mlp.router.weight", {o.experts, o.hidden}, o);
    tiny.add_normal(p + "mlp.router.bias", {o.experts}, o);
    tiny.add_normal(p + "mlp.experts.gate_up_proj", {o.experts, o.hidden, 2 * o.intermediate}, o);
    tiny.add_normal(p + "mlp.experts.gate_up_proj_bias", {o.experts, 2 * o.intermediate}, o);
    tiny.add_normal(p + "mlp.experts.down_proj", {o.experts, o.intermediate, o.hidden}, o);
    tiny.add_normal(p + "mlp.experts.down_proj_bias", {o.experts, o.hidden}, o);
  }
  tiny.add_normal("model.norm.weight", {o.hidden}, o, 1);
  tiny.add_normal("lm_head.weight", {o.vocabulary, o.hidden}, o);
  return tiny;
}

TinyCheckpoint TinyCheckpoint::load(const Path& folder) {
  TinyCheckpoint tiny;
  const Checkpoint checkpoint = Checkpoint::open(folder);
  for (const StoredTensor& tensor : checkpoint.tensors())
    tiny.add(tensor.name, tensor.dtype, tensor.shape, checkpoint.read_all(tensor));
  *tiny.config_ = checkpoint.config();
  return tiny;
}

TinyTensor& TinyCheckpoint::at(const std::string& name) {
  const auto found = tensors_.find(name);
  NIBBLE_CHECK(found != tensors_.end());
  return found->second;
}

void TinyCheckpoint::add(const std::string& name, Dtype dtype, std::vector<uint64_t> shape,
                         std::vector<std::byte> data) {
  tensors_[name] = {dtype, std::move(shape), std::move(data)};
}

void TinyCheckpoint::drop(const std::string& name) { NIBBLE_CHECK(tensors_.erase(name) == 1); }

size_t TinyCheckpoint::rename(std::string_view from, std::string_view to) {
  std::map<std::string, TinyTensor> renamed;
  size_t count = 0;
  for (auto& [name, tensor] : tensors_) {
    std::string changed = name;
    if (const size_t at = changed.find(from); at != std::string::npos) {
      changed.replace(at, from.size(), to);
      ++count;
    }
    renamed[changed] = std::move(tensor);
  }
  tensors_ = std::move(renamed);
  return count;
}

std::vector<std::string> TinyCheckpoint::matching(std::string_view glob) const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) {
    if (glob_match(glob, name)) names.push_back(name);
  }
  return names;
}

std::vector<float> TinyCheckpoint::values(const std::string& name) const {
  const TinyTensor& tensor = tensors_.at(name);
  const auto element = dense_element(tensor.dtype);
  NIBBLE_CHECK(element.has_value());
  Format format;
  format.element = *element;
  EncodedMatrix dense = EncodedMatrix::make(format, 1, elements_of(tensor.shape));
  dense.codes.assign(tensor.data.begin(), tensor.data.end());
  std::vector<float> out(dense.cols);
  decode(dense, out);
  return out;
}

void TinyCheckpoint::set_values(const std::string& name, std::span<const float> values) {
  TinyTensor& tensor = at(name);
  const auto element = dense_element(tensor.dtype);
  NIBBLE_CHECK(element.has_value() && elements_of(tensor.shape) == values.size());
  convert(floats_view(values), *element, tensor.data.data());
}

void TinyCheckpoint::scale_values(const std::string& name, float factor) {
  std::vector<float> scaled = values(name);
  for (float& x : scaled) x *= factor;
  set_values(name, scaled);
}

void TinyCheckpoint::add_normal(const std::string& name, std::vector<uint64_t> shape, const TinyOptions& options,
                                double mean) {
  // Every tensor has a stream of its own: adding one does not change the others.
  const uint64_t stream = std::hash<std::string>{}(name) ^ options.seed;
  std::vector<float> drawn(elements_of(shape));
  for (uint64_t i = 0; i < drawn.size(); ++i)
    drawn[i] = static_cast<float>(mean + options.deviation * random_normal(stream, i));
  std::vector<std::byte> data(2 * drawn.size());
  add(name, Dtype::kBF16, std::move(shape), std::move(data));
  set_values(name, drawn);
}

void TinyCheckpoint::write(const Path& folder, uint64_t shards) const {
  std::filesystem::create_directories(folder);
  ShardIndex index;
  index.total_size = 0;
  for (uint64_t shard = 0; shard < shards; ++shard) {
    const std::string file =
        shards == 1 ? "model.safetensors" : fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, shards);
    index.files.push_back(file);
    std::vector<TensorDecl> declared;
    std::vector<std::vector<std::byte>> data;
    uint64_t number = 0;
    for (const auto& [name, tensor] : tensors_) {
      if (number++ % shards != shard) continue;
      declared.push_back({name, tensor.dtype, tensor.shape});
      data.push_back(tensor.data);
      index.weights.emplace_back(name, static_cast<uint32_t>(shard));
      *index.total_size += tensor.data.size();
    }
    write_safetensors(folder / file, declared, data, {{"format", "pt"}});
  }
  if (shards > 1) write_atomically(folder / "model.safetensors.index.json", shard_index_text(index));
  if (!config_->is_null()) write_atomically(folder / "config.json", json_text(*config_));
}

}  // namespace nibble::testing
