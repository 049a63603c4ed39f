// The format of every module as a configuration declares it, for those who have no tensors to look at: `plan` counts a
// release's bytes from config.json alone. Readers go by what is stored instead.
//
// All dialects of quant_carrier.h, wherever the settings stand. A method, an algorithm or a value that is not known,
// and settings that are malformed, are one Error with file, key and value. Asked are only matrices of linear layers:
// norms, routers and embeddings stay in 16 bits whatever is declared, and nobody lists them all.
//
//   const DeclaredFormats declared(config, "config.json");
//   declared.of("model.layers.3.mlp.experts.0.gate_proj");
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nibble/base/json.h"
#include "nibble/checkpoint/ignore_list.h"
#include "nibble/checkpoint/quant_hints.h"
#include "nibble/numerics/format.h"

namespace nibble {

// Names of modules as configurations list them. Files of models inside a wrapper name modules with or without the
// wrapper's "language_model.": both mean the same here.
class ModuleNames {
 public:
  // `loose`: entries are also containers and parts of names, as every dialect but compressed-tensors' has them. Error
  // (`key`, `source`) for what is no regular expression, or would take too long to match.
  ModuleNames(const std::vector<std::string>& entries, bool loose, const std::string& key, const std::string& source);

  bool cover(std::string_view module, std::string_view without_wrapper) const;

 private:
  bool covers(std::string_view module) const;

  IgnoreList list_;
  bool loose_;
  bool has_expressions_;
};

class DeclaredFormats {
 public:
  DeclaredFormats(const Json& config, const std::string& source_name);
  // With hf_quant_config.json or quantize_config.json (null: there is none).
  DeclaredFormats(const Json& config, const std::string& source_name, const Json& side_config,
                  const std::string& side_name);

  // False: nothing is quantized.
  bool any() const { return !layers_.empty(); }
  // `module` is a parameter's name without ".weight", of one expert where there are many. nullopt: the model's 16 bits.
  std::optional<Format> of(std::string_view module) const { return ask(module, true); }
  // The same where the settings name the module or what it is in, and not only "all linear layers".
  std::optional<Format> named(std::string_view module) const { return ask(module, false); }

 private:
  // What one tool did. A tool that quantized a part of a quantized release leaves the settings of that in place.
  struct Layer {
    std::vector<ModuleNames> excluded;  // one, or none
    std::vector<std::pair<ModuleNames, Format>> named;
    std::optional<Format> experts, rest;  // of routed experts, of all that is not decided by then
    bool unlisted_too = false;            // the rest is really all: also what others keep without listing it
  };

  void read(const QuantHints& hints);
  void add_compressed_tensors(const QuantHints& hints);
  void add_modelopt(const QuantHints& hints);
  // The layer's word on a module; `all`: also on those that it does not name.
  static std::optional<Format> ask(const Layer& layer, std::string_view module, std::string_view without_wrapper,
                                   bool all);
  std::optional<Format> ask(std::string_view module, bool all) const;
  void add_uniform(const QuantHints& hints, std::optional<Format> experts, std::optional<Format> rest, bool exclude);
  static void add_groups(const QuantHints& hints, bool loose, Layer* layer);
  static void add_quantized_layers(const QuantHints& hints, Layer* layer);

  std::vector<Layer> layers_;
};

}  // namespace nibble
