// A model family: how a configuration becomes a ModelSpec, and which tensors such a model has. One file each in
// families/, a row in family_list.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/base/json.h"
#include "nibble/checkpoint/gguf.h"
#include "nibble/models/model_spec.h"
#include "nibble/models/role.h"

namespace nibble {

// How gate and up (or an expert stack) are put into one tensor.
enum class Fusion : uint8_t { kNone, kStackedExperts, kGateThenUp, kInterleaved };

// One parameter of the unquantized model, in logical orientation.
struct ParamSpec {
  std::string name;
  Role role = Role::kUnknown;
  Projection projection = Projection::kNone;
  std::vector<uint64_t> shape;  // (…, N, K); [E, N, K] for a stack of experts
  int32_t layer = -1, expert = -1;
  Fusion fusion = Fusion::kNone;
  bool transposed_when_dense = false;  // gpt-oss stores dense experts (E, K, N)
  bool optional = false;               // absence is no error (tied head, biases that some releases lack, MTP)
};

class Family {
 public:
  virtual ~Family() = default;
  virtual std::string_view name() const = 0;
  virtual std::span<const std::string_view> model_types() const = 0;
  // `config` is config.json as read (text_config inside is the family's business). Error naming the key that is missing
  // or contradictory, with the numbers; sizes are bounded (layers ≤ 10,000, experts ≤ 100,000, dimensions ≤ 2^31).
  virtual ModelSpec parse(const Json& config, const std::string& source_name) const = 0;
  // All parameters, MTP layers included (optional). Calls `visit` once each, layer by layer.
  virtual void inventory(const ModelSpec& spec, const std::function<void(ParamSpec&&)>& visit) const = 0;

  // ---- GGUF: the same model under GGUF's keys and names (defaults: not supported)
  virtual std::optional<std::string_view> gguf_architecture() const;
  virtual ModelSpec parse_gguf(const GgufFile& gguf, const std::string& source_name) const;
  // config.json for a Hugging Face folder made from this GGUF file.
  virtual Json config_from_gguf(const GgufFile& gguf, const ModelSpec& spec) const;
  // Our name for a GGUF tensor name ("blk.3.attn_q.weight" -> "model.layers.3.self_attn.q_proj.weight"); "" if unknown.
  virtual std::string name_from_gguf(std::string_view gguf_name) const;
};

// The list: family_list.cc holds its rows and nothing else.
std::span<const Family* const> families();
// By config.json's model_type (top level, else text_config's) or architectures; null if unknown.
const Family* find_family(const Json& config);
const Family* find_gguf_family(const GgufFile& gguf);
// For a family that is unknown: what the configuration calls itself, for messages.
std::string family_label(const Json& config);

}  // namespace nibble
