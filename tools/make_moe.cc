// A seeded Mixture-of-Experts checkpoint in the Qwen3-MoE layout, for the demo and for measurements: BF16, sharded, as
// large as asked, the same bytes for the same options on every machine.
//
//   make_moe FOLDER [LAYERS EXPERTS HIDDEN INTERMEDIATE SEED]      default 3 32 1024 512 1: 320 MB
//
// The weights are normal, with what makes real ones harder than that: every input channel has a strength of its own
// (log-normal), shared by all experts and the router of a layer and undone by the norm before them, and every row too.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "nibble/base/error.h"
#include "nibble/base/hash.h"
#include "nibble/base/json.h"
#include "nibble/base/parallel.h"
#include "nibble/base/rng.h"
#include "nibble/checkpoint/safetensors.h"
#include "nibble/checkpoint/shard_index.h"
#include "nibble/numerics/codec/bf16.h"

namespace nibble {
namespace {

struct Sizes {
  uint64_t layers = 3, experts = 32, hidden = 1024, intermediate = 512, seed = 1;
  uint64_t vocabulary = 8192, heads = 8, kv_heads = 2, head_dim = 128, experts_per_token = 4;
};

constexpr float kDeviation = 0.02f;      // of a weight, as models are initialised
constexpr double kChannelSpread = 0.35;  // of the logarithm of a channel's strength
constexpr double kRowSpread = 0.15;

// The normal distribution's 2^16 quantiles: four values from 64 random bits, where Box-Muller would cost a logarithm, a
// root and a cosine each.
std::vector<float> normal_quantiles() {
  std::vector<float> table(1 << 16);
  for (size_t i = 0; i < table.size(); ++i) {
    const double wanted = (static_cast<double>(i) + 0.5) / static_cast<double>(table.size());
    double low = -6;
    double high = 6;
    for (int step = 0; step < 50; ++step) {
      const double middle = (low + high) / 2;
      (std::erfc(-middle / std::sqrt(2.0)) / 2 < wanted ? low : high) = middle;
    }
    table[i] = static_cast<float>(low);
  }
  return table;
}

uint64_t stream(const Sizes& sizes, std::string_view name) {
  const std::string hex = xxh3_hex(std::as_bytes(std::span(name)));
  return sizes.seed * 0x9E3779B97F4A7C15u ^ std::strtoull(hex.substr(0, 16).c_str(), nullptr, 16);
}

std::vector<float> strengths(const Sizes& sizes, const std::string& name, uint64_t count, double spread, bool inverse) {
  std::vector<float> values(count);
  for (uint64_t i = 0; i < count; ++i) {
    const double exponent = spread * random_normal(stream(sizes, name), i);
    values[i] = static_cast<float>(std::exp(inverse ? -exponent : exponent));
  }
  return values;
}

// What a tensor's input channels are: the stream that gives their strengths, "" for none; a norm undoes it.
struct Tensor {
  TensorDecl decl;
  std::string channels;
};

std::vector<std::byte> fill(const Sizes& sizes, const Tensor& tensor, const std::vector<float>& quantiles) {
  const auto& shape = tensor.decl.shape;
  const uint64_t columns = shape.back();
  const uint64_t rows = shape.size() == 1 ? 1 : shape[0];
  std::vector<float> channel(columns, 1.0f);
  if (!tensor.channels.empty()) channel = strengths(sizes, tensor.channels, columns, kChannelSpread, shape.size() == 1);
  const std::vector<float> row_strength = strengths(sizes, tensor.decl.name + " rows", rows, kRowSpread, false);
  std::vector<uint16_t> values(rows * columns);
  const uint64_t seed = stream(sizes, tensor.decl.name);
  for (uint64_t r = 0; r < rows; ++r) {
    uint64_t bits = 0;
    for (uint64_t c = 0; c < columns; ++c) {
      if (c % 4 == 0) bits = random_bits(seed, (r * columns + c) / 4);
      const float normal = quantiles[(bits >> (c % 4 * 16)) & 0xFFFF];
      const float value = shape.size() == 1 ? channel[c] : kDeviation * row_strength[r] * channel[c] * normal;
      values[r * columns + c] = bf16_encode(value);
    }
  }
  std::vector<std::byte> bytes(values.size() * 2);
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

Tensor matrix(std::string name, uint64_t rows, uint64_t columns, std::string channels = "") {
  return {{std::move(name), Dtype::kBF16, {rows, columns}}, std::move(channels)};
}

Tensor norm(std::string name, uint64_t columns, std::string channels = "") {
  return {{std::move(name), Dtype::kBF16, {columns}}, std::move(channels)};
}

std::vector<Tensor> layer_tensors(const Sizes& s, uint64_t layer) {
  const std::string at = fmt::format("model.layers.{}.", layer);
  const std::string attention = at + "attention channels";
  const std::string mlp = at + "mlp channels";
  std::vector<Tensor> list{norm(at + "input_layernorm.weight", s.hidden, attention),
                           matrix(at + "self_attn.q_proj.weight", s.heads * s.head_dim, s.hidden, attention),
                           matrix(at + "self_attn.k_proj.weight", s.kv_heads * s.head_dim, s.hidden, attention),
                           matrix(at + "self_attn.v_proj.weight", s.kv_heads * s.head_dim, s.hidden, attention),
                           matrix(at + "self_attn.o_proj.weight", s.hidden, s.heads * s.head_dim),
                           norm(at + "self_attn.q_norm.weight", s.head_dim),
                           norm(at + "self_attn.k_norm.weight", s.head_dim),
                           norm(at + "post_attention_layernorm.weight", s.hidden, mlp),
                           matrix(at + "mlp.gate.weight", s.experts, s.hidden, mlp)};
  for (uint64_t e = 0; e < s.experts; ++e) {
    const std::string expert = fmt::format("{}mlp.experts.{}.", at, e);
    list.push_back(matrix(expert + "gate_proj.weight", s.intermediate, s.hidden, mlp));
    list.push_back(matrix(expert + "up_proj.weight", s.intermediate, s.hidden, mlp));
    list.push_back(matrix(expert + "down_proj.weight", s.hidden, s.intermediate));
  }
  return list;
}

Json config_of(const Sizes& s) {
  return {{"architectures", {"Qwen3MoeForCausalLM"}},
          {"attention_bias", false},
          {"decoder_sparse_step", 1},
          {"dtype", "bfloat16"},
          {"head_dim", s.head_dim},
          {"hidden_act", "silu"},
          {"hidden_size", s.hidden},
          {"intermediate_size", 2 * s.intermediate},
          {"max_position_embeddings", 4096},
          {"mlp_only_layers", Json::array()},
          {"model_type", "qwen3_moe"},
          {"moe_intermediate_size", s.intermediate},
          {"norm_topk_prob", true},
          {"num_attention_heads", s.heads},
          {"num_experts", s.experts},
          {"num_experts_per_tok", std::min(s.experts_per_token, s.experts)},
          {"num_hidden_layers", s.layers},
          {"num_key_value_heads", s.kv_heads},
          {"rms_norm_eps", 1e-06},
          {"rope_theta", 1000000.0},
          {"tie_word_embeddings", false},
          {"vocab_size", s.vocabulary}};
}

// One shard a layer; embedding, last norm and head lie in the first.
void write(const Path& folder, const Sizes& sizes) {
  std::filesystem::create_directories(folder);
  const std::vector<float> quantiles = normal_quantiles();
  ShardIndex index;
  uint64_t total = 0;
  for (uint64_t layer = 0; layer < sizes.layers; ++layer) {
    std::vector<Tensor> tensors = layer_tensors(sizes, layer);
    if (layer == 0) {
      tensors.push_back(matrix("model.embed_tokens.weight", sizes.vocabulary, sizes.hidden));
      tensors.push_back(norm("model.norm.weight", sizes.hidden));
      tensors.push_back(matrix("lm_head.weight", sizes.vocabulary, sizes.hidden));
    }
    index.files.push_back(fmt::format("model-{:05}-of-{:05}.safetensors", layer + 1, sizes.layers));
    std::vector<TensorDecl> decls;
    for (const Tensor& tensor : tensors) {
      decls.push_back(tensor.decl);
      index.weights.emplace_back(tensor.decl.name, static_cast<uint32_t>(layer));
      total += tensor.decl.bytes();
    }
    std::vector<std::vector<std::byte>> data(tensors.size());
    parallel_for(tensors.size(), default_threads(), [&](uint64_t i) { data[i] = fill(sizes, tensors[i], quantiles); });
    write_safetensors(folder / index.files.back(), decls, data, {{"format", "pt"}});
  }
  index.total_size = total;
  write_atomically(folder / "config.json", json_text(config_of(sizes)));
  write_atomically(folder / "model.safetensors.index.json", shard_index_text(index));
  fmt::print("{}: {} layers of {} experts, {} bytes\n", folder.string(), sizes.layers, sizes.experts, total);
}

}  // namespace
}  // namespace nibble

int main(int argc, char** argv) {
  constexpr std::string_view kUsage =
      "usage: make_moe FOLDER [LAYERS EXPERTS HIDDEN INTERMEDIATE SEED]\n"
      "writes a seeded BF16 checkpoint in the Qwen3-MoE layout; default 3 32 1024 512 1: 320 MB\n";
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "--help" || first == "-h") {
    fmt::print("{}", kUsage);
    return 0;
  }
  nibble::Sizes sizes;
  const std::array numbers{&sizes.layers, &sizes.experts, &sizes.hidden, &sizes.intermediate, &sizes.seed};
  bool good = !first.empty() && first[0] != '-' && static_cast<size_t>(argc) <= 2 + numbers.size();
  for (int i = 2; good && i < argc; ++i) {
    uint64_t* number = numbers[static_cast<size_t>(i) - 2];
    const std::string_view text = argv[i];
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *number);
    good = code == std::errc() && end == text.data() + text.size() && *number > 0;
  }
  if (!good) {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  try {
    nibble::write(argv[1], sizes);
  } catch (const std::exception& error) {
    fmt::print(stderr, "make_moe: {}\n", error.what());
    return 1;
  }
  return 0;
}
