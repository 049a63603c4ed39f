// GLM-4.7-Flash: DeepSeek-V3's text model in small, one dense layer first. Names and shapes: transformers 5.24,
// glm4_moe_lite, whose files hold experts one by one. Public configurations of the release leave out what transformers
// supplies by itself: the norms' epsilon and the number of dense layers.
#include "nibble/models/families/deepseek.h"

namespace nibble::model_families {
namespace {

constexpr double kDefaultEps = 1e-5;
constexpr uint64_t kDefaultDense = 1;

class Glm4MoeLite final : public NamedFamily {
 public:
  Glm4MoeLite() : NamedFamily("glm4_moe_lite", {"glm4_moe_lite"}, {"Glm4MoeLiteForCausalLM"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override {
    const ConfigReader config(json, source_name);
    ModelSpec spec = parse_decoder(config, "model.", kDefaultEps);
    parse_deepseek_text(config, &spec, kDefaultDense);
    return spec;
  }
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override { visit_deepseek_text(spec, visit); }
};

}  // namespace

const Family& glm4_moe_lite() {
  static const Glm4MoeLite family;
  return family;
}

}  // namespace nibble::model_families
