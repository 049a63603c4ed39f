// Kimi-K2.5, K2.6, K2.7: DeepSeek-V3's text model under "language_model.", beside a vision tower and its projector,
// which are copied and not listed. Its configuration stands in text_config (model_type kimi_k2, or deepseek_v3 in files
// saved by newer tools). Names: FORMATS.md §4.4, §10.
#include <array>

#include "nibble/models/families/deepseek.h"

namespace nibble::model_families {
namespace {

class KimiK25 final : public NamedFamily {
 public:
  KimiK25() : NamedFamily("kimi_k25", {"kimi_k25"}, {"KimiK25ForConditionalGeneration"}) {}
  ModelSpec parse(const Json& json, const std::string& source_name) const override {
    const ConfigReader config(json, source_name);
    const ConfigReader text = config.section("text_config");
    ModelSpec spec = parse_decoder(text, "language_model.model.");
    spec.model_type = config.text_or({"model_type"}, "kimi_k25");
    parse_deepseek_text(text, &spec);
    return spec;
  }
  void inventory(const ModelSpec& spec, const ParamVisitor& visit) const override { visit_deepseek_text(spec, visit); }
  std::span<const std::string_view> other_parts() const override {
    static constexpr std::array<std::string_view, 2> kParts{"vision_tower.", "mm_projector."};
    return kParts;
  }
};

}  // namespace

const Family& kimi_k25() {
  static const KimiK25 family;
  return family;
}

}  // namespace nibble::model_families
