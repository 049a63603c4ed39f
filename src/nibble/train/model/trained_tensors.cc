#include "nibble/train/model/trained_tensors.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/base/rng.h"
#include "nibble/base/strings.h"
#include "nibble/engine/supports.h"

namespace nibble {
namespace {

bool is_gate_or_up(Projection projection) {
  return projection == Projection::kGate || projection == Projection::kUp || projection == Projection::kGateUp;
}

bool is_qkv(Projection projection) {
  return projection == Projection::kQ || projection == Projection::kK || projection == Projection::kV;
}

bool is_mlp(const ParamSpec& param) { return is_gate_or_up(param.projection) || param.projection == Projection::kDown; }

bool is_routed(const ParamSpec& param) { return param.expert >= 0 || param.fusion != Fusion::kNone; }

// A bias has the role of all biases; its name tells whose it is.
bool is_shared(const ParamSpec& param) { return param.name.find(".shared_expert") != std::string::npos; }

bool is_bias(const ParamSpec& param) { return param.role == Role::kBias; }

// The tensor that holds a parameter.
std::string home_of(const ModelSpec& spec, const ParamSpec& param) {
  const std::string prefix = param.layer < 0 ? "" : spec.layer_prefix(param.layer);
  const std::string tail = is_bias(param) ? ".bias" : "";
  if (is_mlp(param)) {
    const std::string block = is_routed(param) ? "mlp.experts." : is_shared(param) ? "mlp.shared." : "mlp.";
    return prefix + block + (is_gate_or_up(param.projection) ? "gate_up" : "down") + tail;
  }
  if (is_qkv(param.projection)) return prefix + "self_attn.qkv_proj" + tail;
  return param.name;
}

uint64_t width_of(const ModelSpec& spec, const ParamSpec& param) {
  if (is_routed(param)) return spec.expert_intermediate;
  return is_shared(param) ? spec.shared_intermediate : spec.dense_intermediate;
}

// Rows of q, k and v, or of gate and up, or the whole.
std::vector<uint64_t> parts_of(const ModelSpec& spec, const ParamSpec& param, uint64_t rows) {
  if (is_gate_or_up(param.projection)) return {width_of(spec, param), width_of(spec, param)};
  if (!is_qkv(param.projection)) return {rows};
  const AttentionShape shape = spec.attention_shape(spec.layers.at(static_cast<size_t>(param.layer)));
  return {shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim, shape.kv_heads * shape.v_head_dim};
}

// Rows of the parameter itself; behind them a bias has nothing.
uint64_t own_rows(const ParamSpec& param) {
  return is_bias(param) || param.shape.size() == 1 ? param.shape.back() : param.shape[param.shape.size() - 2];
}

uint64_t first_row(const std::vector<uint64_t>& parts, Projection projection) {
  if (projection == Projection::kUp || projection == Projection::kK) return parts[0];
  return projection == Projection::kV ? parts[0] + parts[1] : 0;
}

std::string untrainable(const ModelSpec& spec) {
  if (std::string why = unsupported(spec); !why.empty()) return why;
  if (spec.qk_norm == QkNorm::kFullWidth) return "its norm over all heads together";
  if (spec.router == RouterKind::kSigmoidBias) return "its router";
  if (spec.n_group > 1 || spec.routed_scaling_factor != 1) return "its groups or scaling of experts";
  if (spec.mtp_layers != 0) return "its layers that foretell several tokens";
  if (spec.sliding.heads != 0 || spec.sliding_rope) return "its second shape of attention";
  if (spec.rope.interleaved || spec.rope.partial_rotary_factor != 1) return "its rotation";
  if (spec.v_head_dim != 0 && spec.v_head_dim != spec.head_dim) return "its width of values";
  for (const LayerSpec& layer : spec.layers) {
    if (layer.attention != AttentionKind::kGqa) return "its kind of attention";
  }
  return "";
}

}  // namespace

void refuse_untrainable(const ModelSpec& spec, const std::string& source) {
  const std::string why = untrainable(spec);
  if (why.empty()) return;
  throw Error("this model cannot be trained: " + why + " is not supported")
      .file(source)
      .value("family", spec.family)
      .way_out("families that can be trained: qwen3_moe, llama, mixtral, gpt_oss");
}

TrainedTensors::TrainedTensors(const Family& family, const ModelSpec& spec) : family_(&family), spec_(spec) {
  refuse_untrainable(spec, "");
  family.inventory(spec_, [&](ParamSpec&& param) {
    if (param.optional && !param.counted) return;  // a tied head
    make_room(param);
    params_.push_back(std::move(param));
  });
  for (TrainedTensor& tensor : list_) tensor.values.resize(tensor.slices * tensor.rows * tensor.cols);
}

size_t TrainedTensors::make_room(const ParamSpec& param) {
  const std::string name = home_of(spec_, param);
  if (const auto found = by_name_.find(name); found != by_name_.end()) return found->second;
  TrainedTensor tensor;
  tensor.name = name;
  tensor.role = param.role;
  tensor.layer = param.layer;
  tensor.parts = parts_of(spec_, param, own_rows(param));
  tensor.rows = std::accumulate(tensor.parts.begin(), tensor.parts.end(), uint64_t{0});
  const bool bias = is_bias(param);
  tensor.cols = bias || param.shape.size() == 1 ? 1 : param.shape.back();
  if (is_mlp(param) && is_routed(param)) {
    tensor.slices = spec_.experts;
    tensor.shape.push_back(spec_.experts);
  }
  tensor.shape.push_back(tensor.rows);
  if (!bias && param.shape.size() > 1) tensor.shape.push_back(tensor.cols);
  list_.push_back(std::move(tensor));
  by_name_.emplace(name, list_.size() - 1);
  return list_.size() - 1;
}

int64_t TrainedTensors::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? -1 : static_cast<int64_t>(found->second);
}

const TrainedTensor& TrainedTensors::at(std::string_view name) const {
  const int64_t index = find(name);
  NIBBLE_CHECK(index >= 0);
  return list_[static_cast<size_t>(index)];
}

uint64_t TrainedTensors::parameters() const {
  uint64_t count = 0;
  for (const TrainedTensor& tensor : list_) count += tensor.slices * tensor.rows * tensor.cols;
  return count;
}

bool TrainedTensors::holds(const ParamSpec& param) const { return find(home_of(spec_, param)) >= 0; }

ParamPlace TrainedTensors::place(const ParamSpec& param) const {
  const int64_t index = find(home_of(spec_, param));
  NIBBLE_CHECK(index >= 0);
  ParamPlace place;
  place.tensor = static_cast<size_t>(index);
  const TrainedTensor& tensor = list_[place.tensor];
  place.rows = own_rows(param);
  place.row = first_row(tensor.parts, param.projection);
  place.interleaved = param.fusion == Fusion::kInterleaved;
  place.slice = param.expert > 0 ? static_cast<uint64_t>(param.expert) : 0;
  place.slices = param.fusion != Fusion::kNone ? tensor.slices : 1;
  if (place.row + place.rows > tensor.rows || place.slice + place.slices > tensor.slices) {
    throw Error("a tensor is larger than its place in the model that is trained")
        .tensor(param.name)
        .value("rows", place.rows)
        .value("rows_there", tensor.rows)
        .way_out("run `nibble verify` on the checkpoint");
  }
  return place;
}

void initialize(TrainedTensors* tensors, uint64_t seed) {
  const ModelSpec& spec = tensors->spec();
  const double layers = static_cast<double>(spec.layers.size());
  uint64_t number = 0;
  for (TrainedTensor& tensor : tensors->list()) {
    const uint64_t stream = random_bits(seed, number++);
    if (!tensor.is_matrix()) {
      std::ranges::fill(tensor.values, tensor.role == Role::kNorm ? 1.0F : 0.0F);
      continue;
    }
    const bool writes = ends_with(tensor.name, ".down") || ends_with(tensor.name, ".o_proj.weight");
    const bool looked_up = tensor.role == Role::kEmbedding && !spec.tied_embeddings;
    const double inputs = static_cast<double>(tensor.cols) * (writes ? 2 * layers : 1);
    const double deviation = looked_up ? 1 : 1 / std::sqrt(inputs);
    for (size_t i = 0; i < tensor.values.size(); ++i) {
      tensor.values[i] = static_cast<float>(random_normal(stream, i) * deviation);
    }
  }
}

}  // namespace nibble
