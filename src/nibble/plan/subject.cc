#include "nibble/plan/subject.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "nibble/base/error.h"
#include "nibble/base/strings.h"
#include "nibble/checkpoint/conventions/declared_formats.h"
#include "nibble/ledger/release_formats.h"
#include "nibble/models/bundled_models.h"
#include "nibble/models/model.h"
#include "nibble/models/stacked_inventory.h"

namespace nibble {
namespace {

constexpr uint64_t kMaxConfigBytes = uint64_t{64} << 20;

Subject subject_of(const Family& family, ModelSpec spec, const std::string& source_name) try {
  std::vector<ParamSpec> params = stacked_inventory(family, spec);
  const ParamCounts counts = count_params(spec, params);
  KvCache cache(spec);
  Subject subject{"", false, false, std::move(spec), std::move(params), counts, std::move(cache), {}, "", {}, {}};
  if (subject.spec.unlisted_mtp_layers != 0)
    subject.notes.push_back("the configuration declares " + std::to_string(subject.spec.unlisted_mtp_layers) +
                            " MTP layers whose tensors nothing public describes: they are not counted");
  if (const int64_t difference = subject.spec.published_difference; difference != 0)
    subject.notes.push_back("the published counts have " + with_commas(static_cast<uint64_t>(std::abs(difference))) +
                            (difference > 0 ? " parameters more" : " parameters fewer") +
                            " than the release's tensors: total and active are the published ones, bytes the tensors'");
  return subject;
} catch (Error& error) {
  if (error.file().empty()) error.file(source_name);
  throw;
}

// "A and B (released)": the formats by the bytes that they hold, those below a hundredth left out.
std::string released_title(const std::vector<WeightItem>& items) {
  std::map<std::string, uint64_t> bytes;
  uint64_t sum = 0;
  for (const WeightItem& item : items) {
    bytes[item.format.name] += item.bytes;
    sum += item.bytes;
  }
  std::vector<std::pair<uint64_t, std::string>> largest;
  for (const auto& [name, size] : bytes) {
    if (size >= sum / 100) largest.emplace_back(size, name);
  }
  std::sort(largest.rbegin(), largest.rend());
  std::string title;
  for (const auto& [size, name] : largest) title += (title.empty() ? "" : " and ") + name;
  return title + " (released)";
}

// How a configuration says that its release holds the weights.
void add_declared(const Json& config, const std::string& source_name, Subject* subject) {
  const auto declared = std::make_shared<const DeclaredFormats>(config, source_name);
  if (!declared->any()) return;
  const auto spec = std::make_shared<const ModelSpec>(subject->spec);
  subject->released_format = [declared, spec, formats = release_formats(*spec, *declared)](const ParamSpec& param) {
    return formats(param);
  };
  subject->released = weigh(subject->spec, subject->params, subject->released_format);
  subject->released_title = released_title(subject->released);
}

// One note a kind of error: the first tensor of it, and how many there are.
void add_findings(const Findings& findings, std::vector<std::string>* notes) {
  std::map<std::pair<std::string, std::string>, std::vector<const Finding*>> kinds;
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::kError) kinds[{finding.rule, finding.message}].push_back(&finding);
  }
  for (const auto& [kind, found] : kinds) {
    std::string note = kind.first + ": " + kind.second;
    if (!found.front()->tensor.empty()) note += ": " + found.front()->tensor;
    if (found.size() > 1) note += " and " + std::to_string(found.size() - 1) + " more";
    notes->push_back(note + " (`nibble verify` tells more)");
  }
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
  Subject subject = subject_of(*model.family, model.spec, path);
  subject.is_folder = true;
  subject.is_gguf = model.from_gguf;
  subject.released = weigh_checkpoint(checkpoint, model);
  subject.released_title = released_title(subject.released);
  add_findings(findings, &subject.notes);
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
      return config_subject(read_json(config, kMaxConfigBytes), config.string());
    throw Error("the folder holds neither weights nor a config.json").file(model).way_out("name the folder of a model");
  }
  if (std::filesystem::exists(path, ignored)) {
    if (ends_with(model, ".json")) return config_subject(read_json(path, kMaxConfigBytes), model);
    return from_checkpoint(model);
  }
  const EmbeddedFile* bundled = find_bundled_model(model);
  if (bundled == nullptr) refuse_unknown_name(model);
  return config_subject(parse_json(bundled->text, model), model);
}

}  // namespace

bool Subject::is_plain() const {
  return std::all_of(released.begin(), released.end(), [](const WeightItem& item) { return item.format.is_dense(); });
}

Subject config_subject(const Json& config, const std::string& source_name) {
  const Family* family = find_family(config);
  if (family == nullptr)
    throw Error("the architecture is unknown: how many parameters its layers have cannot be counted")
        .file(source_name)
        .value("model_type", family_label(config))
        .way_out("use a release of nibble that knows this model")
        .way_out("give --total and --active, the numbers of its model card");
  Subject subject = subject_of(*family, family->parse(config, source_name), source_name);
  add_declared(config, source_name, &subject);
  return subject;
}

Subject load_subject(const std::string& model) {
  Subject subject = load(model);
  subject.name = model;
  return subject;
}

namespace {

bool is_target(const ModelSpec& spec, const ParamSpec& param) {
  return param.role == (spec.experts != 0 ? Role::kRoutedExpert : Role::kDenseMlp) && param.shape.size() >= 2;
}

bool is_float(Element element) {
  return element == Element::kF32 || element == Element::kF16 || element == Element::kBF16 || element == Element::kF64;
}

// Does `nibble quantize` copy it byte by byte? Block types of GGUF have no place in its target.
bool stays(const Subject& subject, const WeightItem& item, const Format& target) {
  if (!item.format.is_dense()) return !subject.is_gguf && !target.is_dense() && element_bits(item.format.element) >= 8;
  if (!is_float(item.format.element)) return true;
  return !subject.is_gguf && (!target.is_dense() || item.param.shape.size() < 2);
}

std::vector<WeightItem> weigh_folder(const Subject& subject, const Format& target) {
  const ModelSpec& spec = subject.spec;
  std::vector<ParamSpec> targets;
  for (const ParamSpec& param : subject.params) {
    if (is_target(spec, param)) targets.push_back(param);
  }
  std::vector<WeightItem> items = weigh(spec, std::move(targets), [&](const ParamSpec&) -> std::optional<Format> {
    return target.is_dense() ? std::nullopt : std::optional(target);
  });
  const Format plain = parse_format(element_name(target.is_dense() ? target.element : spec.dtype));
  for (const WeightItem& stored : subject.released) {
    if (is_target(spec, stored.param)) continue;
    items.push_back(stored);
    if (stays(subject, stored, target)) continue;
    items.back().format = plain;
    items.back().bytes = stored.elements * element_bits(plain.element) / 8;
  }
  return items;
}

}  // namespace

std::vector<WeightItem> weigh_target(const Subject& subject, const Format& target) {
  if (subject.is_folder) return weigh_folder(subject, target);
  return weigh(subject.spec, subject.params, [&](const ParamSpec& param) -> std::optional<Format> {
    if (target.is_dense()) return std::nullopt;
    if (is_target(subject.spec, param)) return target;
    if (!subject.released_format) return std::nullopt;
    const auto kept = subject.released_format(param);
    return kept && element_bits(kept->element) >= 8 ? kept : std::nullopt;
  });
}

}  // namespace nibble
