#include "nibble/engine/weights/model_weights.h"

#include <fmt/format.h>

#include <utility>

#include "nibble/base/error.h"
#include "nibble/engine/supports.h"
#include "nibble/models/expert_forms.h"
#include "nibble/numerics/decode.h"

namespace nibble {

uint64_t LayerWeights::bytes() const {
  uint64_t sum = 0;
  for_matrices(*this, [&](const Linear& matrix) { sum += matrix.storage.size(); });
  return sum;
}

WeightLoader::WeightLoader(const Checkpoint& checkpoint, const Model& model, Arithmetics how, ThreadPool* pool)
    : checkpoint_(&checkpoint), model_(&model), how_(std::move(how)), pool_(pool) {
  refuse_unsupported(model, checkpoint.path().string());
}

const Weight* WeightLoader::find(const std::string& name) const {
  const int64_t index = model_->table.find(name);
  return index < 0 ? nullptr : &model_->table.weights()[static_cast<size_t>(index)];
}

const Weight& WeightLoader::need(const std::string& name) const {
  const Weight* weight = find(name);
  if (weight != nullptr) return *weight;
  throw Error("a tensor that the model needs is not there")
      .file(checkpoint_->path().string())
      .tensor(name)
      .way_out("run `nibble verify` on the checkpoint");
}

std::vector<float> WeightLoader::vector(const std::string& name) const {
  return read_rows_f32(*checkpoint_, need(name), 0, 0, need(name).rows());
}

std::vector<float> WeightLoader::vector_if_there(const std::string& name) const {
  return find(name) == nullptr ? std::vector<float>{} : vector(name);
}

Linear WeightLoader::linear(const std::string& module) const {
  Linear loaded = load_linear(*checkpoint_, need(module + ".weight"), options());
  loaded.bias = vector_if_there(module + ".bias");
  return loaded;
}

GqaWeights WeightLoader::gqa(uint64_t index) const {
  const std::string prefix = spec().layer_prefix(static_cast<int32_t>(index)) + "self_attn.";
  GqaWeights weights;
  weights.q = linear(prefix + "q_proj");
  weights.k = linear(prefix + "k_proj");
  weights.v = linear(prefix + "v_proj");
  weights.o = linear(prefix + "o_proj");
  if (spec().qk_norm != QkNorm::kNone) {
    weights.q_norm = vector(prefix + "q_norm.weight");
    weights.k_norm = vector(prefix + "k_norm.weight");
  }
  if (spec().sinks) weights.sinks = vector(prefix + "sinks");
  return weights;
}

MlaWeights WeightLoader::mla(uint64_t index) const {
  const std::string prefix = spec().layer_prefix(static_cast<int32_t>(index)) + "self_attn.";
  MlaWeights weights;
  if (spec().q_lora_rank == 0) {
    weights.q_b = linear(prefix + "q_proj");
  } else {
    weights.q_a = linear(prefix + "q_a_proj");
    weights.q_a_norm = vector(prefix + "q_a_layernorm.weight");
    weights.q_b = linear(prefix + "q_b_proj");
  }
  weights.kv_a = linear(prefix + "kv_a_proj_with_mqa");
  weights.kv_a_norm = vector(prefix + "kv_a_layernorm.weight");
  weights.o = linear(prefix + "o_proj");
  // kv_b is (heads · (nope + v), rank): of each head the rows of keys, then those of values.
  const Weight& kv_b = need(prefix + "kv_b_proj.weight");
  const uint64_t nope = spec().qk_nope_head_dim, wide = spec().v_head_dim, rank = spec().kv_lora_rank;
  const std::vector<float> all = read_rows_f32(*checkpoint_, kv_b, 0, 0, kv_b.rows());
  for (uint64_t head = 0; head < spec().heads; ++head) {
    const float* rows = all.data() + head * (nope + wide) * rank;
    std::vector<float> turned(rank * nope);
    for (uint64_t r = 0; r < nope; ++r) {
      for (uint64_t c = 0; c < rank; ++c) turned[c * nope + r] = rows[r * rank + c];
    }
    weights.key_up.push_back(make_linear(turned, rank, nope, options()));
    weights.value_up.push_back(make_linear({rows + nope * rank, rows + (nope + wide) * rank}, wide, rank, options()));
  }
  return weights;
}

MlpWeights WeightLoader::mlp(const std::string& module) const {
  return {linear(module + ".gate_proj"), linear(module + ".up_proj"), linear(module + ".down_proj")};
}

// The experts of a layer lie one by one, as a stack each projection, or with gate and up in one stack.
Linear WeightLoader::expert_matrix(int32_t layer, uint64_t expert, Projection projection) const {
  const ExpertNames names = per_expert_names(spec(), layer, expert);
  const bool is_gate = projection == Projection::kGate, is_up = projection == Projection::kUp;
  const std::string& name = is_gate ? names.gate : is_up ? names.up : names.down;
  const std::string& bias_name = is_gate ? names.gate_bias : is_up ? names.up_bias : names.down_bias;
  if (find(name) != nullptr) {
    Linear loaded = load_linear(*checkpoint_, need(name), options());
    if (!bias_name.empty()) loaded.bias = vector_if_there(bias_name);
    return loaded;
  }
  const bool apart = find(fused_name(spec(), layer, projection)) != nullptr;
  const Projection stored = apart || projection == Projection::kDown ? projection : Projection::kGateUp;
  const Weight& stack = need(fused_name(spec(), layer, stored));
  RowPick pick{expert, 0, 1, stack.rows()};
  if (stored == Projection::kGateUp) {
    const bool interleaved = spec().expert_naming.native == Fusion::kInterleaved;
    pick.count = stack.rows() / 2;
    pick.stride = interleaved ? 2 : 1;
    pick.begin = is_gate ? 0 : interleaved ? 1 : pick.count;
  }
  Linear loaded = load_linear(*checkpoint_, stack, pick, options());
  const std::vector<float> biases = vector_if_there(fused_bias_name(spec(), layer, stored));
  if (!biases.empty()) {
    loaded.bias.resize(pick.count);
    for (uint64_t i = 0; i < pick.count; ++i) {
      loaded.bias[i] = biases[expert * stack.rows() + pick.begin + i * pick.stride];
    }
  }
  return loaded;
}

MlpWeights WeightLoader::expert(int32_t layer, uint64_t expert) const {
  return {expert_matrix(layer, expert, Projection::kGate), expert_matrix(layer, expert, Projection::kUp),
          expert_matrix(layer, expert, Projection::kDown)};
}

// The parameter of a layer with this role, number of dimensions and first dimension; "" if there is none.
std::string WeightLoader::first_of(int32_t layer, Role role, size_t rank, uint64_t rows) const {
  for (const ParamSpec& param : model_->params) {
    if (param.layer == layer && param.role == role && param.shape.size() == rank && param.shape[0] == rows) {
      return param.name;
    }
  }
  return "";
}

MoeWeights WeightLoader::moe(uint64_t index) const {
  const auto layer = static_cast<int32_t>(index);
  const std::string prefix = spec().layer_prefix(layer);
  MoeWeights weights;
  std::string router = first_of(layer, Role::kRouter, 2, spec().experts);
  if (router.empty()) router = prefix + spec().expert_naming.block + ".gate.weight";  // refused by its usual name
  const std::string module = router.substr(0, router.size() - std::string_view(".weight").size());
  weights.router = linear(module);
  for (const std::string& block : {module, prefix + spec().expert_naming.block}) {
    if (weights.correction.empty()) weights.correction = vector_if_there(block + ".e_score_correction_bias");
  }
  weights.experts.resize(spec().experts);
  pool_->run(spec().experts, [&](uint64_t e) { weights.experts[e] = expert(layer, e); });
  if (spec().shared_intermediate != 0) {
    for (const std::string block : {"mlp.shared_experts", "mlp.shared_expert"}) {
      if (find(prefix + block + ".down_proj.weight") != nullptr) weights.shared = mlp(prefix + block);
    }
    if (!weights.shared.present()) need(prefix + "mlp.shared_experts.down_proj.weight");
    if (find(prefix + "mlp.shared_expert_gate.weight") != nullptr) {
      weights.shared_gate = linear(prefix + "mlp.shared_expert_gate");
    }
  }
  return weights;
}

LayerWeights WeightLoader::layer(uint64_t index) const {
  slab_.start_anew();  // layers that are streamed go one by one
  const std::string prefix = spec().layer_prefix(static_cast<int32_t>(index));
  LayerWeights weights;
  weights.input_norm = vector(prefix + "input_layernorm.weight");
  weights.post_attention_norm = vector(prefix + "post_attention_layernorm.weight");
  const LayerSpec& layer = spec().layers.at(index);
  if (layer.attention == AttentionKind::kMla) {
    weights.mla = mla(index);
  } else {
    weights.gqa = gqa(index);
  }
  if (layer.mlp == MlpKind::kMoe) {
    weights.moe = moe(index);
  } else {
    weights.mlp = mlp(prefix + "mlp");
  }
  return weights;
}

Linear WeightLoader::embedding() const { return linear(spec().prefix + "embed_tokens"); }

std::vector<float> WeightLoader::final_norm() const { return vector(spec().prefix + "norm.weight"); }

bool WeightLoader::tied() const { return first_of(-1, Role::kHead, 2, spec().vocabulary).empty(); }

Linear WeightLoader::head() const {
  const std::string name = first_of(-1, Role::kHead, 2, spec().vocabulary);
  return name.empty() ? embedding() : load_linear(*checkpoint_, need(name), options());
}

}  // namespace nibble
