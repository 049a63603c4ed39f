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

// What a parameter is for, whatever its name and shape.
struct ParamKind {
  Role role = Role::kUnknown;
  Projection projection = Projection::kNone;
  int32_t layer = -1, expert = -1;
  Fusion fusion = Fusion::kNone;
  bool transposed_when_dense = false;  // dense files hold this stack as (E, K, N): ExpertNaming::transposed
};

// One parameter of the unquantized model, in logical orientation.
struct ParamSpec : ParamKind {
  std::string name;
  std::vector<uint64_t> shape;  // (…, N, K); [E, N, K] for a stack of experts
  bool optional = false;        // absence is no error (tied head, biases that some releases lack, MTP)
  // False: part of the file, but no parameter of its own: a tied head, MTP's copies of embedding and head, index
  // tables. The sum over the others, role kMtp apart, is the model's parameter count.
  bool counted = true;
};

using ParamVisitor = std::function<void(ParamSpec&&)>;

// Sizes that a configuration may state. Beyond them it is taken for nonsense: nothing is allocated by its word.
inline constexpr uint64_t kMaxLayers = 10'000;
inline constexpr uint64_t kMaxExperts = 100'000;
inline constexpr uint64_t kMaxLayerExperts = 2'000'000;  // layers · experts
inline constexpr uint64_t kMaxDimension = uint64_t{1} << 31;

class Family {
 public:
  virtual ~Family() = default;
  virtual std::string_view name() const = 0;
  virtual std::span<const std::string_view> model_types() const = 0;
  // Class names under `architectures`, for configurations without a model_type that is known.
  virtual std::span<const std::string_view> architectures() const = 0;
  // `config` is config.json as read (text_config inside is the family's business). Error naming the key that is missing
  // or contradictory, with the numbers; sizes are bounded (above).
  virtual ModelSpec parse(const Json& config, const std::string& source_name) const = 0;
  // All parameters, MTP layers included (optional). Calls `visit` once each, layer by layer. Routed experts come in the
  // form that the family's own releases have; expert_forms.h gives the others.
  virtual void inventory(const ModelSpec& spec, const ParamVisitor& visit) const = 0;
  // Name prefixes of parts that belong to the release but not to the text model ("vision_tower."): copied, role
  // unknown.
  virtual std::span<const std::string_view> other_parts() const;

  // ---- GGUF: the same model under GGUF's keys and names (defaults: not supported)
  virtual std::optional<std::string_view> gguf_architecture() const;
  virtual ModelSpec parse_gguf(const GgufFile& gguf, const std::string& source_name) const;
  // config.json for a Hugging Face folder made from this GGUF file.
  virtual Json config_from_gguf(const GgufFile& gguf, const ModelSpec& spec) const;
  // Our name for a GGUF tensor name ("blk.3.attn_q.weight" -> "model.layers.3.self_attn.q_proj.weight"); "" if unknown.
  virtual std::string name_from_gguf(std::string_view gguf_name) const;
  // Queries and keys lie permuted for pairwise rotation (RowOrder::kGgufRotaryPairs).
  virtual bool gguf_rotary_pairs() const { return false; }
};

// The list: family_list.cc holds its rows and nothing else.
std::span<const Family* const> families();
// By config.json's model_type (text_config's if there is none at the top), else by architectures; null if unknown. A
// model_type at the top that is unknown is not looked up again inside text_config: a wrapper prefixes names.
const Family* find_family(const Json& config);
const Family* find_gguf_family(const GgufFile& gguf);
// For a family that is unknown: what the configuration calls itself, for messages.
std::string family_label(const Json& config);

}  // namespace nibble
