#include "nibble/plan/subject.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "nibble/base/error.h"
#include "nibble/base/strings.h"
#include "nibble/models/bundled_models.h"
#include "nibble/models/model.h"
#include "nibble/models/stacked_inventory.h"

namespace nibble {
namespace {

constexpr uint64_t kMaxConfigBytes = uint64_t{64} << 20;

Subject subject_of(const Family& family, ModelSpec spec) {
  std::vector<ParamSpec> params = stacked_inventory(family, spec);
  const ParamCounts counts = count_params(spec, params);
  KvCache cache(spec);
  Subject subject{"", "", std::move(spec), std::move(params), counts, std::move(cache), {}, "", {}, {}};
  if (subject.spec.unlisted_mtp_layers != 0)
    subject.notes.push_back("the configuration declares " + std::to_string(subject.spec.unlisted_mtp_layers) +
                            " MTP layers whose tensors nothing public describes: they are not counted");
  return subject;
}

Subject from_config(const Json& config, const std::string& source_name) {
  const Family* family = find_family(config);
  if (family == nullptr)
    throw Error("the architecture is unknown: how many parameters its layers have cannot be counted")
        .file(source_name)
        .value("model_type", family_label(config))
        .way_out("use a release of nibble that knows this model")
        .way_out("give --total and --active, the numbers of its model card");
  return subject_of(*family, family->parse(config, source_name));
}

Subject from_checkpoint(const std::string& path) {
  Findings findings;
  const Checkpoint checkpoint = Checkpoint::scan(path, {}, &findings);
  throw_first_error(findings);
  const Model model = load_model(checkpoint, &findings);
  if (model.family == nullptr || model.spec.layers.empty())
    throw Error("the architecture is unknown: what its tensors are for cannot be told")
        .file(path)
        .value("model_type", model.family_name)
        .way_out("`nibble inspect` lists its formats and sizes");
  Subject subject = subject_of(*model.family, model.spec);
  subject.released = weigh_checkpoint(checkpoint, model);
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::kError)
      subject.notes.push_back(finding.rule + ": " + finding.message + " (`nibble verify` tells more)");
  }
  return subject;
}

[[noreturn]] void refuse_unknown_name(const std::string& model) {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : bundled_models()) names.emplace_back(file.name);
  const std::string nearest = nearest_name(model, names);
  Error error("neither a file or folder nor a bundled model");
  error.value("model", model);
  if (!nearest.empty()) error.way_out("nibble plan " + nearest);
  throw error.way_out("name a checkpoint folder or a config.json")
      .way_out("one of the " + std::to_string(names.size()) + " bundled models, such as kimi-k2.5 or gpt-oss-120b");
}

bool holds_weights(const Path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (ends_with(name, ".safetensors") || ends_with(name, ".gguf") || ends_with(name, ".safetensors.index.json"))
      return true;
  }
  return false;
}

Subject load(const std::string& model) {
  const Path path(model);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    if (holds_weights(path)) return from_checkpoint(model);
    const Path config = path / "config.json";
    if (std::filesystem::exists(config, ignored))
      return from_config(read_json(config, kMaxConfigBytes), config.string());
    throw Error("the folder holds neither weights nor a config.json").file(model).way_out("name the folder of a model");
  }
  if (std::filesystem::exists(path, ignored)) {
    if (ends_with(model, ".json")) return from_config(read_json(path, kMaxConfigBytes), model);
    return from_checkpoint(model);
  }
  const EmbeddedFile* bundled = find_bundled_model(model);
  if (bundled == nullptr) refuse_unknown_name(model);
  return from_config(parse_json(bundled->text, model), model);
}

}  // namespace

Subject load_subject(const std::string& model) {
  Subject subject = load(model);
  subject.name = model;
  return subject;
}

std::vector<WeightItem> weigh_target(const Subject& subject, const Format& target) {
  const Role role = subject.spec.experts != 0 ? Role::kRoutedExpert : Role::kDenseMlp;
  return weigh(subject.spec, subject.params, [&](const ParamSpec& param) -> std::optional<Format> {
    if (param.role == role) return target.is_dense() ? std::nullopt : std::optional(target);
    if (target.is_dense() || !subject.released_format) return std::nullopt;
    const auto kept = subject.released_format(param);
    return kept && element_bits(kept->element) >= 8 ? kept : std::nullopt;
  });
}

}  // namespace nibble
