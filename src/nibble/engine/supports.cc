#include "nibble/engine/supports.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "nibble/base/error.h"

namespace nibble {
namespace {

constexpr std::string_view kFamilies[] = {"deepseek_v3", "glm4_moe", "gpt_oss",  "llama",
                                          "minimax_m2",  "mixtral",  "qwen3_moe"};

std::string unsupported_layer(const ModelSpec& spec, const LayerSpec& layer) {
  if (layer.attention != AttentionKind::kGqa && layer.attention != AttentionKind::kMla) {
    return "its kind of attention";
  }
  if (layer.indexer || layer.chosen_keys) return "keys that an indexer chooses";
  if (layer.mlp == MlpKind::kNone) return "a layer without an MLP";
  if (layer.chunked || !layer.rotary || !layer.stores_kv || layer.hash_routed || layer.ngram_rows != 0) {
    return "its kind of layer";
  }
  const AttentionShape shape = spec.attention_shape(layer);
  if (layer.attention == AttentionKind::kGqa && (shape.v_head_dim % 16 != 0 || shape.head_dim % 2 != 0)) {
    return fmt::format("heads of {} and {} columns", shape.head_dim, shape.v_head_dim);
  }
  if (layer.attention == AttentionKind::kMla && spec.kv_lora_rank % 16 != 0) {
    return fmt::format("a latent of {} columns", spec.kv_lora_rank);
  }
  return "";
}

// Groups of experts whose sizes differ, that have no two best experts, or of which none is chosen.
std::string unsupported_groups(const ModelSpec& spec) {
  if (spec.n_group <= 1) return "";
  const bool whole = spec.experts % spec.n_group == 0 && spec.experts / spec.n_group >= 2;
  if (whole && spec.topk_group != 0 && spec.topk_group <= spec.n_group) return "";
  return fmt::format("a router that chooses {} of {} groups of {} experts", spec.topk_group, spec.n_group,
                     spec.experts);
}

std::string unsupported_rope(const RopeSpec& rope) {
  for (const std::string_view known : {"", "default", "yarn", "llama3", "linear"}) {
    if (rope.scaling == known) return "";
  }
  return "rotary scaling `" + rope.scaling + "`";
}

}  // namespace

std::span<const std::string_view> supported_families() { return kFamilies; }

std::string unsupported(const ModelSpec& spec) {
  if (std::find(std::begin(kFamilies), std::end(kFamilies), spec.family) == std::end(kFamilies)) return "its family";
  if (spec.output_gate || spec.hyper_streams != 0 || spec.residual_blocks != 0 || spec.latent != 0 || spec.fused_qkv) {
    return "its kind of residual stream or projections";
  }
  if (spec.activation == Activation::kOther || spec.router == RouterKind::kOther) return "its activation or router";
  for (const LayerSpec& layer : spec.layers) {
    if (std::string why = unsupported_layer(spec, layer); !why.empty()) return why;
  }
  if (std::string why = unsupported_groups(spec); !why.empty()) return why;
  return unsupported_rope(spec.rope);
}

void refuse_unsupported(const Model& model, const std::string& source) {
  const std::string why = model.family == nullptr ? "its family" : unsupported(model.spec);
  if (why.empty()) return;
  throw Error("the engine does not run this model: " + why + " is not supported")
      .file(source)
      .value("family", model.family_name)
      .way_out(fmt::format("families that run: {}", fmt::join(supported_families(), ", ")));
}

}  // namespace nibble
