#include "nibble/checkpoint/quant_hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nibble/base/strings.h"
#include "nibble/checkpoint/conventions/quant_carrier.h"

namespace nibble {
namespace {

struct Carrier {
  QuantHints hints;
  bool is_side_file = false;
};

class Collector {
 public:
  explicit Collector(Findings* findings) : findings_(findings) {}

  void add(const Json* object, const char* key, const std::string& path, bool is_side_file) {
    if (object == nullptr) return;
    if (!object->is_object()) {
      findings_->push_back(finding_of(Error(fmt::format("`{}` should be an object", key))
                                          .file(path)
                                          .value("found", std::string(object->type_name()))
                                          .way_out("correct the file or fetch it again"),
                                      "bad-config"));
      return;
    }
    if (!object->empty()) carriers.push_back({read_quant_carrier(*object, path, findings_), is_side_file});
  }

  std::vector<Carrier> carriers;

 private:
  Findings* findings_;
};

// Do two carriers tell of different weights? A ModelOpt export of only the experts of a model that was quantized before
// keeps that model's method in config.json, and has the same quant_algo in both files (FORMATS.md §7.1).
bool disagree(const QuantHints& a, const QuantHints& b) {
  const bool same_algorithm = a.algorithm == b.algorithm && !a.algorithm.empty();
  if (!a.method.empty() && !b.method.empty() && a.method != b.method && !same_algorithm) return true;
  if (a.method == "modelopt" && b.method == "modelopt" && !a.algorithm.empty() && !b.algorithm.empty() &&
      !same_algorithm)
    return true;
  if (a.bits != 0 && b.bits != 0 && a.bits != b.bits) return true;
  return a.group_size && b.group_size && a.group_size != b.group_size;
}

void complete(QuantHints* hints, const QuantHints& other) {
  const auto text = [](std::string* mine, const std::string& theirs) {
    if (mine->empty()) *mine = theirs;
  };
  text(&hints->method, other.method);
  text(&hints->algorithm, other.algorithm);
  text(&hints->checkpoint_format, other.checkpoint_format);
  text(&hints->expert_dtype, other.expert_dtype);
  if (hints->bits == 0) hints->bits = other.bits;
  if (!hints->group_size) hints->group_size = other.group_size;
  if (hints->block_rows == 0) {
    hints->block_rows = other.block_rows;
    hints->block_cols = other.block_cols;
  }
  if (!hints->symmetric) hints->symmetric = other.symmetric;
  if (!hints->desc_act) hints->desc_act = other.desc_act;
  if (hints->excluded.empty()) hints->excluded = other.excluded;
  text(&hints->element_format, other.element_format);
  text(&hints->scale_format, other.scale_format);
  text(&hints->store_dtype, other.store_dtype);
  text(&hints->expert_algorithm, other.expert_algorithm);
  if (hints->groups.empty()) hints->groups = other.groups;
  if (hints->layers.empty()) hints->layers = other.layers;
}

}  // namespace

QuantHints read_quant_hints(const Json& config, const std::string& config_path, const Json& side_config,
                            const std::string& side_path, Findings* findings) {
  Collector found(findings);
  const Json* text_config = json_member(config, "text_config");
  found.add(json_member(config, "quantization_config"), "quantization_config", config_path, false);
  found.add(json_member(config, "compression_config"), "compression_config", config_path, false);
  if (text_config != nullptr)
    found.add(json_member(*text_config, "quantization_config"), "text_config.quantization_config", config_path, false);
  const Json* inner = json_member(side_config, "quantization");
  found.add(inner != nullptr ? inner : side_config.is_null() ? nullptr : &side_config, "quantization", side_path, true);

  auto& carriers = found.carriers;
  // Older ModelOpt exports say nothing or less in config.json.
  if (carriers.size() > 1 && carriers.back().is_side_file && carriers.back().hints.method == "modelopt" &&
      carriers.front().hints.method == "modelopt") {
    std::rotate(carriers.begin(), carriers.end() - 1, carriers.end());
  }
  QuantHints hints;
  if (!carriers.empty()) hints = carriers.front().hints;
  for (size_t i = 1; i < carriers.size(); ++i) {
    const QuantHints& other = carriers[i].hints;
    if (!disagree(hints, other)) {
      complete(&hints, other);
    } else if (hints.other_source.empty()) {
      hints.other_source = other.source;
      hints.other_method = other.method;
      hints.other_algorithm = other.algorithm;
    }
  }
  for (const Json* place : {&config, text_config}) {
    const Json* dtype = place == nullptr ? nullptr : json_member(*place, "expert_dtype");
    if (dtype != nullptr && dtype->is_string() && hints.expert_dtype.empty()) hints.expert_dtype = *dtype;
  }
  return hints;
}

QuantHints read_quant_hints(const Checkpoint& checkpoint, Findings* findings) {
  const auto path = [&](const std::string& name) { return (checkpoint.folder() / name).string(); };
  return read_quant_hints(checkpoint.config(), path("config.json"), checkpoint.side_config(),
                          path(checkpoint.side_config_name()), findings);
}

}  // namespace nibble
