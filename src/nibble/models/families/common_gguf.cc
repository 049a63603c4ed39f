#include "nibble/models/families/common_gguf.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "nibble/base/strings.h"

namespace nibble {
namespace {

constexpr const char* kOtherFile = "take another conversion of this model, or its safetensors release";

double shortest_decimal(double value) {
  const auto narrow = static_cast<float>(value);
  if (static_cast<double>(narrow) != value) return value;
  std::array<char, 64> text{};
  const auto written = std::to_chars(text.data(), text.data() + text.size(), narrow);
  double result = value;
  std::from_chars(text.data(), written.ptr, result);
  return result;
}

Element gguf_dtype(const GgufSpecReader& reader) {
  const StoredTensor* embedding = reader.tensor("token_embd.weight");
  if (embedding == nullptr) return Element::kBF16;
  const auto element = dense_element(embedding->dtype);
  return element && (*element == Element::kF16 || *element == Element::kF32) ? *element : Element::kBF16;
}

const char* dtype_text(Element element) {
  if (element == Element::kF16) return "float16";
  return element == Element::kF32 ? "float32" : "bfloat16";
}

RopeSpec gguf_rope(const GgufSpecReader& reader, uint64_t head_dim) {
  RopeSpec rope;
  rope.theta = reader.positive_or("rope.freq_base", 10000);
  const uint64_t rotated = reader.size_or("rope.dimension_count", kMaxDimension, head_dim);
  rope.partial_rotary_factor = static_cast<double>(rotated) / static_cast<double>(head_dim);
  rope.scaling = reader.text_or("rope.scaling.type", "");
  if (rope.scaling == "none") rope.scaling.clear();
  if (!rope.scaling.empty()) {
    rope.factor = reader.positive("rope.scaling.factor");
    rope.original_max_position = reader.size_or("rope.scaling.original_context_length", kMaxDimension, 0);
    rope.beta_fast = reader.positive_or("rope.scaling.yarn_beta_fast", 32);
    rope.beta_slow = reader.positive_or("rope.scaling.yarn_beta_slow", 1);
  }
  if (reader.has_tensor("rope_freqs.weight")) rope.scaling = "llama3";
  return rope;
}

Json rope_config(const RopeSpec& rope) {
  if (rope.scaling.empty()) return nullptr;
  Json scaling{{"rope_type", rope.scaling}, {"factor", rope.factor}};
  if (rope.original_max_position != 0) scaling["original_max_position_embeddings"] = rope.original_max_position;
  if (rope.scaling == "yarn") {
    scaling["beta_fast"] = rope.beta_fast;
    scaling["beta_slow"] = rope.beta_slow;
    scaling["truncate"] = rope.truncate;
  }
  return scaling;
}

}  // namespace

GgufSpecReader::GgufSpecReader(const GgufFile& gguf, std::string source_name, std::string architecture)
    : gguf_(&gguf), source_(std::move(source_name)), architecture_(std::move(architecture)) {}

Error GgufSpecReader::refuse(const std::string& message) const { return Error(message).file(source_); }

uint64_t GgufSpecReader::size(const std::string& key, uint64_t limit) const {
  const auto value = gguf_->get_uint(full(key));
  if (!value) throw refuse("the file lacks a key").value("key", full(key)).way_out(kOtherFile);
  if (*value == 0 || *value > limit)
    throw refuse("a key is out of range")
        .value(full(key), *value)
        .value("least", 1)
        .value("most", limit)
        .way_out(kOtherFile);
  return *value;
}

uint64_t GgufSpecReader::size_or(const std::string& key, uint64_t limit, uint64_t fallback) const {
  return gguf_->find(full(key)) != nullptr ? size(key, limit) : fallback;
}

double GgufSpecReader::positive(const std::string& key) const {
  const auto value = gguf_->get_double(full(key));
  if (!value) throw refuse("the file lacks a key").value("key", full(key)).way_out(kOtherFile);
  if (!(*value > 0) || !std::isfinite(*value))
    throw refuse("a key should be above 0").value(full(key), *value).way_out(kOtherFile);
  return shortest_decimal(*value);
}

double GgufSpecReader::positive_or(const std::string& key, double fallback) const {
  return gguf_->find(full(key)) != nullptr ? positive(key) : fallback;
}

std::string GgufSpecReader::text_or(const std::string& key, const std::string& fallback) const {
  return gguf_->get_string(full(key)).value_or(fallback);
}

const StoredTensor* GgufSpecReader::tensor(std::string_view name) const {
  const auto it = std::find_if(gguf_->tensors.begin(), gguf_->tensors.end(),
                               [name](const StoredTensor& tensor) { return tensor.name == name; });
  return it == gguf_->tensors.end() ? nullptr : &*it;
}

uint64_t GgufSpecReader::vocabulary() const {
  if (gguf_->find(full("vocab_size")) != nullptr) return size("vocab_size", kMaxDimension);
  const StoredTensor* embedding = tensor("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2)
    throw refuse("neither a key nor the embedding says how large the vocabulary is")
        .tensor("token_embd.weight")
        .value("key", full("vocab_size"))
        .way_out(kOtherFile);
  return embedding->shape[0];
}

ModelSpec parse_gguf_decoder(const GgufSpecReader& reader, const Family& family) {
  ModelSpec spec;
  spec.family = family.name();
  spec.model_type = family.name();
  spec.prefix = "model.";
  spec.dtype = gguf_dtype(reader);
  spec.hidden = reader.size("embedding_length", kMaxDimension);
  spec.layers.resize(reader.size("block_count", kMaxLayers));
  spec.dense_intermediate = reader.size("feed_forward_length", kMaxDimension);
  spec.heads = reader.size("attention.head_count", kMaxDimension);
  spec.kv_heads = reader.size_or("attention.head_count_kv", kMaxDimension, spec.heads);
  if (spec.heads % spec.kv_heads != 0 || spec.hidden < spec.heads)
    throw reader.refuse("the numbers of heads do not fit")
        .value("attention.head_count", spec.heads)
        .value("attention.head_count_kv", spec.kv_heads)
        .value("embedding_length", spec.hidden)
        .way_out(kOtherFile);
  spec.head_dim = reader.size_or("attention.key_length", kMaxDimension, spec.hidden / spec.heads);
  spec.rms_norm_eps = reader.positive("attention.layer_norm_rms_epsilon");
  spec.max_positions = reader.size("context_length", kMaxDimension);
  spec.vocabulary = reader.vocabulary();
  spec.tied_embeddings = !reader.has_tensor("output.weight");
  spec.rope = gguf_rope(reader, spec.head_dim);
  return spec;
}

Json gguf_decoder_config(const GgufFile& gguf, const ModelSpec& spec, std::string_view architecture,
                         std::string_view model_type) {
  if (spec.rope.scaling == "llama3")
    throw Error("this file gives its rotary scaling as a tensor only, which config.json cannot hold")
        .tensor("rope_freqs.weight")
        .way_out("take the safetensors release of this model");
  Json config;
  config["architectures"] = Json::array({architecture});
  config["attention_bias"] = spec.attention_bias;
  config["attention_dropout"] = 0.0;
  for (const char* token : {"bos", "eos", "padding"}) {
    const auto id = gguf.get_uint(std::string("tokenizer.ggml.") + token + "_token_id");
    if (id && *id < spec.vocabulary) config[std::string(token).substr(0, 3) + "_token_id"] = *id;
  }
  config["head_dim"] = spec.head_dim;
  config["hidden_act"] = "silu";
  config["hidden_size"] = spec.hidden;
  config["initializer_range"] = 0.02;
  config["max_position_embeddings"] = spec.max_positions;
  config["model_type"] = model_type;
  config["num_attention_heads"] = spec.heads;
  config["num_hidden_layers"] = spec.layers.size();
  config["num_key_value_heads"] = spec.kv_heads;
  config["rms_norm_eps"] = spec.rms_norm_eps;
  config["rope_scaling"] = rope_config(spec.rope);
  config["rope_theta"] = spec.rope.theta;
  config["tie_word_embeddings"] = spec.tied_embeddings;
  config["torch_dtype"] = dtype_text(spec.dtype);
  config["use_cache"] = true;
  config["vocab_size"] = spec.vocabulary;
  return config;
}

std::string GgufNames::translate(std::string_view gguf_name) const {
  using Names = std::map<std::string_view, std::string_view>;
  static const Names model{{"token_embd.weight", "model.embed_tokens.weight"},
                           {"output_norm.weight", "model.norm.weight"},
                           {"output.weight", "lm_head.weight"}};
  static const Names of_all{{"attn_norm.weight", "input_layernorm.weight"},
                            {"attn_q.weight", "self_attn.q_proj.weight"},
                            {"attn_k.weight", "self_attn.k_proj.weight"},
                            {"attn_v.weight", "self_attn.v_proj.weight"},
                            {"attn_output.weight", "self_attn.o_proj.weight"}};
  if (const auto it = model.find(gguf_name); it != model.end()) return std::string(it->second);
  constexpr std::string_view kBlock = "blk.";
  if (!starts_with(gguf_name, kBlock)) return "";
  const std::string_view rest = gguf_name.substr(kBlock.size());
  const size_t dot = rest.find('.');
  if (dot == std::string_view::npos || dot == 0 || dot > 9) return "";
  const std::string_view number = rest.substr(0, dot);
  if (number.find_first_not_of("0123456789") != std::string_view::npos) return "";
  for (const Names* names : {&of_all, &layer}) {
    const auto it = names->find(rest.substr(dot + 1));
    if (it != names->end()) return std::string("model.layers.").append(number).append(".").append(it->second);
  }
  return "";
}

}  // namespace nibble
