#include "nibble/models/model.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "nibble/base/error.h"
#include "nibble/base/strings.h"
#include "nibble/models/matcher.h"

namespace nibble {
namespace {

std::string config_name(const Checkpoint& checkpoint) { return (checkpoint.folder() / "config.json").string(); }

// Sets family, its name and the spec; reports what stands in the way.
void read_config(const Checkpoint& checkpoint, Model* model, Findings* findings) {
  const GgufFile* gguf = checkpoint.gguf();
  const std::string source = gguf != nullptr ? checkpoint.path().string() : config_name(checkpoint);
  try {
    model->from_gguf = gguf != nullptr;
    model->family = gguf != nullptr ? find_gguf_family(*gguf) : find_family(checkpoint.config());
    if (model->family == nullptr) {
      model->family_name = gguf != nullptr ? gguf->get_string("general.architecture").value_or("unknown")
                                           : family_label(checkpoint.config());
      findings->push_back({Severity::kNote,
                           "unknown-family",
                           source,
                           "",
                           checkpoint.config().is_null() && gguf == nullptr
                               ? "there is no config.json that says what model this is; roles are unknown"
                               : "this model family is not known; roles are unknown",
                           {{"family", model->family_name}}});
      return;
    }
    model->family_name = model->family->name();
    model->spec =
        gguf != nullptr ? model->family->parse_gguf(*gguf, source) : model->family->parse(checkpoint.config(), source);
  } catch (const Error& error) {
    findings->push_back(finding_of(error, "bad-config"));
  }
}

void rename_from_gguf(const Family& family, WeightTable* table) {
  for (Weight& weight : table->weights()) {
    std::string name = family.name_from_gguf(weight.name);
    if (!name.empty()) weight.name = std::move(name);
  }
  table->reindex();
}

void leave_unknown(Model* model) {
  for (const Weight& weight : model->table.weights()) {
    ParamSpec param;
    param.name = weight.name;
    param.shape = weight.shape;
    model->params.push_back(std::move(param));
  }
}

}  // namespace

Model load_model(const Checkpoint& checkpoint, Findings* findings) {
  Model model;
  model.table = WeightTable::build(checkpoint, findings);
  read_config(checkpoint, &model, findings);
  if (model.family != nullptr && model.from_gguf) rename_from_gguf(*model.family, &model.table);
  if (model.spec.layers.empty()) {
    leave_unknown(&model);
  } else {
    Matcher(checkpoint, &model, findings).run();
  }
  return model;
}

std::string fusion_key(Projection projection, std::string_view name, size_t rank) {
  const bool gate_up = projection == Projection::kGate || projection == Projection::kUp;
  const bool qkv = projection == Projection::kQ || projection == Projection::kK || projection == Projection::kV;
  if ((!gate_up && !qkv) || rank < 2) return "";
  std::string_view module = name;
  if (ends_with(module, ".weight")) module.remove_suffix(7);
  const size_t dot = module.rfind('.');
  return std::string(module.substr(0, dot == std::string_view::npos ? 0 : dot)) + (gate_up ? ".gate_up" : ".qkv");
}

}  // namespace nibble
