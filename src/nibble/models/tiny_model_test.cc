#include "nibble/models/tiny_model_test.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nibble/base/check.h"
#include "nibble/base/json.h"
#include "nibble/base/strings.h"
#include "nibble/testing/temp_dir.h"

namespace nibble::testing {

void TinyModel::set(const std::string& key, const std::string& json) {
  Json parsed = parse_json(config, "config.json");
  if (json.empty()) {
    parsed.erase(key);
  } else {
    parsed[key] = parse_json(json, "test");
  }
  config = json_text(parsed);
}

ModelSpec TinyModel::spec() const {
  const Json parsed = parse_json(config, "config.json");
  return find_family(parsed)->parse(parsed, "config.json");
}

void TinyModel::add(const std::string& name, std::vector<uint64_t> shape, Dtype dtype) {
  tensors[name] = {dtype, std::move(shape)};
}

void TinyModel::rename(const std::function<std::string(const std::string&)>& change) {
  auto old = std::exchange(tensors, {});
  for (auto& [name, tensor] : old) tensors[change(name)] = std::move(tensor);
}

void TinyModel::erase_experts() {
  std::erase_if(tensors, [](const auto& entry) { return entry.first.find(".experts.") != std::string::npos; });
}

void TinyModel::erase_prefix(const std::string& prefix) {
  std::erase_if(tensors, [&](const auto& entry) { return starts_with(entry.first, prefix); });
}

Path TinyModel::write(const Path& folder) const {
  std::filesystem::create_directories(folder);
  if (!config.empty()) write_atomically(folder / "config.json", config);
  std::vector<TensorDecl> decls;
  std::vector<std::vector<std::byte>> data;
  for (const auto& [name, tensor] : tensors) {
    decls.push_back({name, tensor.first, tensor.second});
    data.emplace_back(decls.back().bytes());
  }
  write_safetensors(folder / "model.safetensors", decls, data, {});
  return folder;
}

TinyModel tiny_from(const std::string& config_text) {
  TinyModel tiny;
  tiny.config = config_text;
  const ModelSpec spec = tiny.spec();
  find_family(parse_json(config_text, ""))->inventory(spec, [&](ParamSpec&& param) {
    if (param.optional && param.role != Role::kMtp) return;
    if (param.transposed_when_dense) std::swap(param.shape[1], param.shape[2]);
    tiny.add(param.name, param.shape);
  });
  return tiny;
}

TinyModel tiny_qwen3() {
  return tiny_from(R"({"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "hidden_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "num_experts": 4,
    "num_experts_per_tok": 2, "moe_intermediate_size": 32, "intermediate_size": 128, "vocab_size": 256,
    "rms_norm_eps": 1e-6, "rope_theta": 1e6, "tie_word_embeddings": false, "torch_dtype": "bfloat16"})");
}

TinyModel tiny_gpt_oss() {
  return tiny_from(R"({"model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], "hidden_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "num_local_experts": 4,
    "num_experts_per_tok": 2, "intermediate_size": 32, "vocab_size": 256, "rms_norm_eps": 1e-5, "rope_theta": 150000,
    "sliding_window": 128, "tie_word_embeddings": false})");
}

TinyModel tiny_kimi_k25() {
  return tiny_from(R"({"model_type": "kimi_k25", "text_config": {"model_type": "kimi_k2", "hidden_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "q_lora_rank": 32, "kv_lora_rank": 32, "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8, "v_head_dim": 16, "n_routed_experts": 4, "num_experts_per_tok": 2,
    "moe_intermediate_size": 32, "n_shared_experts": 1, "intermediate_size": 128, "first_k_dense_replace": 1,
    "vocab_size": 256, "rms_norm_eps": 1e-5, "rope_theta": 50000, "num_nextn_predict_layers": 1}})");
}

std::vector<Finding> Loaded::of(const std::string& rule, Severity severity) const {
  std::vector<Finding> found;
  std::copy_if(findings.begin(), findings.end(), std::back_inserter(found),
               [&](const Finding& finding) { return finding.rule == rule && finding.severity == severity; });
  return found;
}

const ParamSpec& Loaded::param(const std::string& name) const {
  const int64_t at = model.table.find(name);
  NIBBLE_CHECK(at >= 0);
  return model.params[static_cast<size_t>(at)];
}

const Weight& Loaded::weight(const std::string& name) const {
  const int64_t at = model.table.find(name);
  NIBBLE_CHECK(at >= 0);
  return model.table.weights()[static_cast<size_t>(at)];
}

size_t Loaded::count(Role role) const {
  return static_cast<size_t>(std::count_if(model.params.begin(), model.params.end(),
                                           [role](const ParamSpec& param) { return param.role == role; }));
}

Loaded load(const Path& path) {
  Loaded loaded;
  const Checkpoint checkpoint = Checkpoint::open(path);
  loaded.model = load_model(checkpoint, &loaded.findings);
  return loaded;
}

Loaded load(const TinyModel& tiny) {
  const TempDir dir;
  return load(tiny.write(dir.path() / "m"));
}

std::string value_of(const Finding& finding, const std::string& key) {
  for (const auto& [name, text] : finding.values) {
    if (name == key) return text;
  }
  return "";
}

}  // namespace nibble::testing
