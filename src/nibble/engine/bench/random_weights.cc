#include "nibble/engine/bench/random_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "nibble/base/checked_math.h"
#include "nibble/base/error.h"
#include "nibble/base/rng.h"
#include "nibble/base/strings.h"
#include "nibble/kernels/pack.h"
#include "nibble/kernels/select.h"
#include "nibble/numerics/decode.h"
#include "nibble/numerics/scale_codec.h"

namespace nibble {
namespace {

constexpr uint64_t kPatternRows = 128;  // random ones, which are repeated

// Random codes and scales of ordinary size.
EncodedMatrix random_rows(const Format& format, uint64_t rows, uint64_t cols, uint64_t seed) {
  EncodedMatrix matrix = EncodedMatrix::make(format, rows, cols);
  uint64_t index = 0;
  if (format.is_dense()) {
    std::vector<float> values(rows * cols);
    for (float& value : values) value = static_cast<float>(0.05 * random_normal(seed, index++));
    const DenseView dense{reinterpret_cast<const std::byte*>(values.data()), Element::kF32, rows, cols, cols * 4};
    convert(dense, format.element, matrix.codes.data());
    return matrix;
  }
  const auto nan = format.element == Element::kE4M3 ? std::byte{0x7f} : std::byte{0xff};
  for (std::byte& code : matrix.codes) {
    code = static_cast<std::byte>(random_bits(seed, index++));
    if (format.element == Element::kE4M3 && (code & std::byte{0x7f}) == nan) code = std::byte{0x31};
  }
  const uint64_t size = format.scale_bytes();
  for (uint64_t at = 0; at < matrix.scales.size(); at += size) {
    const uint32_t bits = scale_encode(format.scale, static_cast<float>(std::exp2(random_uniform(seed, index++) - 6)));
    std::memcpy(matrix.scales.data() + at, &bits, size);
  }
  for (uint8_t& zero : matrix.zeros) zero = static_cast<uint8_t>(random_bits(seed, index++) % 16);
  if (format.two_level) matrix.tensor_scale = {SecondLevel::kMultiply, 0.01F};
  return matrix;
}

// The rows of `small` over and over.
void repeat(const WeightLayout& small, const std::byte* pattern, const WeightLayout& layout, std::byte* out) {
  const uint64_t groups = small.row_groups(), bytes = layout.row_group_bytes();
  for (uint64_t g = 0; g < layout.row_groups(); ++g) std::memcpy(out + g * bytes, pattern + g % groups * bytes, bytes);
  const uint64_t apart = layout.apart_scales();
  auto* to = reinterpret_cast<float*>(out + layout.apart_offset());
  const auto* from = reinterpret_cast<const float*>(pattern + small.apart_offset());
  for (uint64_t g = 0; g < layout.row_groups(); ++g) std::copy_n(from + g % groups * apart, apart, to + g * apart);
}

// A matrix of a layer: its size, and where it lies.
struct Place {
  uint64_t n = 0, k = 0;
  bool low_bit = true;  // else 16 bits
  Linear& (*of)(LayerWeights& layer, uint64_t index) = nullptr;
  uint64_t count = 1;  // heads
};

void add_attention(const ModelSpec& spec, const LayerSpec& layer, std::vector<Place>* places) {
  const uint64_t hidden = spec.hidden;
  if (layer.attention != AttentionKind::kMla) {
    const AttentionShape shape = spec.attention_shape(layer);
    const uint64_t q = shape.heads * shape.head_dim, k = shape.kv_heads * shape.head_dim;
    const uint64_t v = shape.kv_heads * shape.v_head_dim, o = shape.heads * shape.v_head_dim;
    places->push_back({q, hidden, true, [](LayerWeights& of, uint64_t) -> Linear& { return of.gqa.q; }});
    places->push_back({k, hidden, true, [](LayerWeights& of, uint64_t) -> Linear& { return of.gqa.k; }});
    places->push_back({v, hidden, true, [](LayerWeights& of, uint64_t) -> Linear& { return of.gqa.v; }});
    places->push_back({hidden, o, true, [](LayerWeights& of, uint64_t) -> Linear& { return of.gqa.o; }});
    return;
  }
  const uint64_t heads = spec.heads, nope = spec.qk_nope_head_dim, rope = spec.qk_rope_head_dim;
  const uint64_t low = spec.q_lora_rank, rank = spec.kv_lora_rank, wide = spec.v_head_dim;
  if (low != 0) {
    places->push_back({low, hidden, true, [](LayerWeights& of, uint64_t) -> Linear& { return of.mla.q_a; }});
  }
  places->push_back({heads * (nope + rope), low != 0 ? low : hidden, true,
                     [](LayerWeights& of, uint64_t) -> Linear& { return of.mla.q_b; }});
  places->push_back({rank + rope, hidden, true, [](LayerWeights& of, uint64_t) -> Linear& { return of.mla.kv_a; }});
  places->push_back({hidden, heads * wide, true, [](LayerWeights& of, uint64_t) -> Linear& { return of.mla.o; }});
  places->push_back(
      {rank, nope, false, [](LayerWeights& of, uint64_t head) -> Linear& { return of.mla.key_up[head]; }, heads});
  places->push_back(
      {wide, rank, false, [](LayerWeights& of, uint64_t head) -> Linear& { return of.mla.value_up[head]; }, heads});
}

// All but the routed experts.
std::vector<Place> places_of(const ModelSpec& spec, const LayerSpec& layer) {
  std::vector<Place> places;
  add_attention(spec, layer, &places);
  const uint64_t hidden = spec.hidden;
  if (layer.mlp != MlpKind::kMoe) {
    const uint64_t wide = spec.dense_intermediate;
    places.push_back({wide, hidden, true, [](LayerWeights& of, uint64_t) -> Linear& { return of.mlp.gate; }});
    places.push_back({wide, hidden, true, [](LayerWeights& of, uint64_t) -> Linear& { return of.mlp.up; }});
    places.push_back({hidden, wide, true, [](LayerWeights& of, uint64_t) -> Linear& { return of.mlp.down; }});
    return places;
  }
  places.push_back({spec.experts, hidden, false, [](LayerWeights& of, uint64_t) -> Linear& { return of.moe.router; }});
  if (spec.shared_intermediate == 0) return places;
  const uint64_t wide = spec.shared_intermediate;
  places.push_back({wide, hidden, true, [](LayerWeights& of, uint64_t) -> Linear& { return of.moe.shared.gate; }});
  places.push_back({wide, hidden, true, [](LayerWeights& of, uint64_t) -> Linear& { return of.moe.shared.up; }});
  places.push_back({hidden, wide, true, [](LayerWeights& of, uint64_t) -> Linear& { return of.moe.shared.down; }});
  return places;
}

// What is no matrix: ones and zeros cost what other numbers do.
void add_vectors(const ModelSpec& spec, const LayerSpec& layer, LayerWeights* out) {
  const auto ones = [](uint64_t count) { return std::vector<float>(count, 1.0F); };
  const auto zeros = [](uint64_t count) { return std::vector<float>(count, 0.0F); };
  out->input_norm = out->post_attention_norm = ones(spec.hidden);
  if (layer.attention == AttentionKind::kMla) {
    out->mla.q_a_norm = ones(spec.q_lora_rank);
    out->mla.kv_a_norm = ones(spec.kv_lora_rank);
    out->mla.key_up.resize(spec.heads);
    out->mla.value_up.resize(spec.heads);
  } else {
    const AttentionShape shape = spec.attention_shape(layer);
    const bool whole = spec.qk_norm == QkNorm::kFullWidth;
    out->gqa.q_norm = ones(whole ? shape.heads * shape.head_dim : shape.head_dim);
    out->gqa.k_norm = ones(whole ? shape.kv_heads * shape.head_dim : shape.head_dim);
    if (spec.sinks) out->gqa.sinks = zeros(shape.heads);
  }
  if (spec.router == RouterKind::kSigmoidBias) out->moe.correction = zeros(spec.experts);
}

void add_biases(const ModelSpec& spec, LayerWeights* out) {
  const auto add = [](Linear* matrix) {
    if (matrix->present()) matrix->bias.assign(matrix->rows(), 0.0F);
  };
  if (spec.attention_bias) {
    for (Linear* matrix : {&out->gqa.q, &out->gqa.k, &out->gqa.v, &out->gqa.o}) add(matrix);
  }
  if (!spec.expert_naming.biases) return;
  add(&out->moe.router);
  for (MlpWeights& expert : out->moe.experts) {
    for (Linear* matrix : {&expert.gate, &expert.up, &expert.down}) add(matrix);
  }
}

// The same matrix without memory of its own.
Linear alias_of(const Linear& from) {
  Linear alias = from;
  alias.storage = {};
  return alias;
}

void check_available(uint64_t bytes, uint64_t available) {
  if (available == 0 || bytes <= available) return;
  throw Error("the layer's weights are larger than the memory that is free")
      .value("weights", human_bytes(bytes))
      .value("available", human_bytes(available))
      .way_out("take a format of fewer bits, or the shape of a smaller model");
}

}  // namespace

WeightLayout needed_layout(const Format& format, uint64_t n, uint64_t k) {
  const LayoutChoice choice = choose_layout(format, n, k);
  if (choice.layout) return *choice.layout;
  throw Error("no kernel multiplies this format: " + choice.obstacle)
      .value("format", format.name)
      .way_out("take another --format; `nibble kernels --format F` says what multiplies one");
}

std::vector<Linear> random_linears(const Format& format, uint64_t n, uint64_t k, uint64_t count, const Arithmetics& how,
                                   ThreadPool* pool) {
  const WeightLayout layout = needed_layout(format, n, k);
  const EncodedMatrix pattern = random_rows(format, std::min(kPatternRows, n), k, 1);
  const WeightLayout small = needed_layout(format, pattern.rows, pattern.cols);
  AlignedBytes packed(small.bytes());
  pack_rows(small, pattern.view(), 0, packed.data());
  std::vector<Linear> matrices(count);
  Slab slab;
  pool->run(count, [&](uint64_t i) {
    Linear& linear = matrices[i];
    linear.storage = slab.take(layout.bytes());
    linear.matrix = {layout, linear.storage.data(), multiplier_of(format, pattern.tensor_scale)};
    repeat(small, packed.data(), layout, linear.storage.data());
    set_kernel(how, &linear);
  });
  return matrices;
}

RandomLayers::RandomLayers(const RandomLayersRequest& request, ThreadPool* pool) : spec_(*request.spec) {
  const Format plain = parse_format("bf16");
  const auto format_of = [&](const Place& place) -> const Format& { return place.low_bit ? request.others : plain; };
  const std::vector<Place> places = places_of(spec_, request.layer);
  uint64_t layer_bytes = 0, set_bytes = 0;
  for (const Place& place : places) {
    layer_bytes += place.count * needed_layout(format_of(place), place.n, place.k).bytes();
  }
  const bool moe = request.layer.mlp == MlpKind::kMoe;
  if (moe) {
    const uint64_t wide = spec_.expert_intermediate, hidden = spec_.hidden;
    set_bytes = spec_.experts * (2 * needed_layout(request.experts, wide, hidden).bytes() +
                                 needed_layout(request.experts, hidden, wide).bytes());
  }
  const uint64_t count = std::max<uint64_t>(1, ceil_div(request.memory, layer_bytes));
  const uint64_t sets = moe ? std::max<uint64_t>(1, ceil_div(request.memory, set_bytes)) : 0;
  check_available(count * layer_bytes + sets * set_bytes, request.available);
  spec_.layers.assign(count, request.layer);
  layers_.resize(count);
  for (LayerWeights& layer : layers_) add_vectors(spec_, request.layer, &layer);
  for (const Place& place : places) {
    std::vector<Linear> all =
        random_linears(format_of(place), place.n, place.k, count * place.count, request.how, pool);
    for (uint64_t i = 0; i < all.size(); ++i) place.of(layers_[i / place.count], i % place.count) = std::move(all[i]);
  }
  if (moe) add_experts(request, sets, pool);
  for (LayerWeights& layer : layers_) add_biases(spec_, &layer);
}

void RandomLayers::add_experts(const RandomLayersRequest& request, uint64_t sets, ThreadPool* pool) {
  const uint64_t experts = spec_.experts, wide = spec_.expert_intermediate, hidden = spec_.hidden;
  gate_ = random_linears(request.experts, wide, hidden, sets * experts, request.how, pool);
  up_ = random_linears(request.experts, wide, hidden, sets * experts, request.how, pool);
  down_ = random_linears(request.experts, hidden, wide, sets * experts, request.how, pool);
  for (uint64_t i = 0; i < layers_.size(); ++i) {
    for (uint64_t e = 0; e < experts; ++e) {
      const uint64_t at = i % sets * experts + e;
      layers_[i].moe.experts.push_back({alias_of(gate_[at]), alias_of(up_[at]), alias_of(down_[at])});
    }
  }
}

}  // namespace nibble
