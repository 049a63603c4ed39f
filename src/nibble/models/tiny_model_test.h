// Small checkpoints for tests, written into a temporary folder: names and shapes as given, bytes all zero.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "nibble/base/json.h"
#include "nibble/checkpoint/safetensors.h"
#include "nibble/models/model.h"
#include "nibble/testing/temp_dir.h"

namespace nibble::testing {

struct TinyModel {
  Json config;
  std::map<std::string, std::pair<Dtype, std::vector<uint64_t>>> tensors;

  void add(const std::string& name, std::vector<uint64_t> shape, Dtype dtype = Dtype::kBF16) {
    tensors[name] = {dtype, std::move(shape)};
  }
  // Every name through `change`.
  void rename(const std::function<std::string(const std::string&)>& change) {
    auto old = std::exchange(tensors, {});
    for (auto& [name, tensor] : old) tensors[change(name)] = std::move(tensor);
  }
  void erase_experts() {
    std::erase_if(tensors, [](const auto& entry) { return entry.first.find(".experts.") != std::string::npos; });
  }

  Path write(const Path& folder) const {
    std::filesystem::create_directories(folder);
    if (!config.is_null()) write_atomically(folder / "config.json", json_text(config));
    std::vector<TensorDecl> decls;
    std::vector<std::vector<std::byte>> data;
    for (const auto& [name, tensor] : tensors) {
      decls.push_back({name, tensor.first, tensor.second});
      data.emplace_back(decls.back().bytes());
    }
    write_safetensors(folder / "model.safetensors", decls, data, {});
    return folder;
  }
};

// The family's own inventory as a checkpoint: dense BF16, gpt-oss' stacks transposed; MTP layers included.
inline TinyModel tiny_from(const std::string& config_text) {
  TinyModel tiny;
  tiny.config = parse_json(config_text, "config.json");
  const Family* family = find_family(tiny.config);
  const ModelSpec spec = family->parse(tiny.config, "config.json");
  family->inventory(spec, [&](ParamSpec&& param) {
    if (param.optional && param.role != Role::kMtp) return;
    if (param.transposed_when_dense) std::swap(param.shape[1], param.shape[2]);
    tiny.add(param.name, param.shape);
  });
  return tiny;
}

// The cases' `tiny`: 2 layers, 4 experts, H = 64, I = 32; 45 tensors.
inline TinyModel tiny_qwen3() {
  return tiny_from(R"({"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "hidden_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "num_experts": 4,
    "num_experts_per_tok": 2, "moe_intermediate_size": 32, "intermediate_size": 128, "vocab_size": 256,
    "rms_norm_eps": 1e-6, "rope_theta": 1e6, "tie_word_embeddings": false, "torch_dtype": "bfloat16"})");
}

inline TinyModel tiny_gpt_oss() {
  return tiny_from(R"({"model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], "hidden_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "num_local_experts": 4,
    "num_experts_per_tok": 2, "intermediate_size": 32, "vocab_size": 256, "rms_norm_eps": 1e-5, "rope_theta": 150000,
    "sliding_window": 128, "tie_word_embeddings": false})");
}

}  // namespace nibble::testing
