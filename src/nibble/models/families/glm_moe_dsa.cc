// GLM-5, 5.1, 5.2, 5.3: DeepSeek-V3.2's text model, with other defaults; from 5.2 on three layers of four have no
// indexer and read what the nearest layer before them chose. One MTP layer behind the last, with an indexer of its own.
// Names and shapes: transformers 5.24, glm_moe_dsa, whose files hold experts one by one; the MTP layer's from public
// listings of the release ("model.layers.78."), as DeepSeek-V3's.
#include "nibble/models/families/common_indexer.h"
#include "nibble/models/families/deepseek.h"

namespace nibble::model_families {
namespace {

constexpr uint64_t kDefaultDense = 3;  // transformers'

class GlmMoeDsa final : public NamedFamily {
 public:
  GlmMoeDsa() : NamedFamily("glm_moe_dsa", {"glm_moe_dsa"}, {"GlmMoeDsaForCausalLM"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override;
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override { visit_deepseek_text(spec, visit); }
};

// One letter a layer, "F" or "S".
std::vector<bool> parse_pattern(const ConfigReader& config, uint64_t layers) {
  const std::string pattern = config.text_or({"index_topk_pattern"}, "");
  std::vector<bool> own;
  for (const char letter : pattern) own.push_back(letter == 'F');
  if (own.size() != layers || pattern.find_first_not_of("FS") != std::string::npos)
    throw config.refuse("`index_topk_pattern` should hold one F (own indexer) or S (shared) a layer")
        .value("letters", pattern.size())
        .value("num_hidden_layers", layers)
        .way_out("take config.json from the same release as the weights");
  return own;
}

// Files of several ages: a list, a pattern, or a period behind the first layers (transformers' defaults: each layer has
// its own).
std::vector<bool> parse_indexer_layers(const ConfigReader& config, uint64_t layers) {
  if (auto listed = parse_indexer_types(config, layers)) return std::move(*listed);
  if (config.has("index_topk_pattern")) return parse_pattern(config, layers);
  const uint64_t period = config.size_or({"index_topk_freq"}, kMaxLayers, 1);
  const uint64_t first = config.count_or({"index_skip_topk_offset"}, kMaxLayers, 2);
  std::vector<bool> own(layers);
  for (uint64_t i = 0; i < layers; ++i) own[i] = i < first || (i - first + 1) % period == 0;
  return own;
}

ModelSpec GlmMoeDsa::parse(const Json& json, const std::string& source_name) const {
  const ConfigReader config(json, source_name);
  ModelSpec spec = parse_decoder(config, "model.");
  parse_deepseek_text(config, &spec, kDefaultDense);
  parse_indexer(config, &spec);
  set_indexers(config, parse_indexer_layers(config, spec.layers.size()), &spec);
  return spec;
}

}  // namespace

const Family& glm_moe_dsa() {
  static const GlmMoeDsa family;
  return family;
}

}  // namespace nibble::model_families
