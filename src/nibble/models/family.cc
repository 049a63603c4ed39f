#include "nibble/models/family.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"

namespace nibble {
namespace {

// The string under `key`, "" if there is none: what a configuration calls itself is asked before it is validated.
std::string text_at(const Json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

const Json& text_config(const Json& config) {
  static const Json nothing;
  if (!config.is_object()) return nothing;
  const auto it = config.find("text_config");
  return it == config.end() ? nothing : *it;
}

std::string model_type_of(const Json& config) {
  const std::string top = text_at(config, "model_type");
  return top.empty() ? text_at(text_config(config), "model_type") : top;
}

std::string architecture_of(const Json& config) {
  if (!config.is_object()) return "";
  const auto it = config.find("architectures");
  if (it == config.end() || !it->is_array() || it->empty() || !it->front().is_string()) return "";
  return it->front().get<std::string>();
}

bool holds(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

[[noreturn]] void refuse_gguf(const Family& family, const std::string& source_name) {
  throw Error("this model family cannot be read from GGUF")
      .file(source_name)
      .value("family", std::string(family.name()))
      .way_out("take the safetensors release of this model");
}

}  // namespace

std::span<const std::string_view> Family::other_parts() const { return {}; }
std::optional<std::string_view> Family::gguf_architecture() const { return std::nullopt; }
ModelSpec Family::parse_gguf(const GgufFile&, const std::string& source_name) const { refuse_gguf(*this, source_name); }
Json Family::config_from_gguf(const GgufFile&, const ModelSpec&) const { refuse_gguf(*this, ""); }
std::string Family::name_from_gguf(std::string_view) const { return ""; }

const Family* find_family(const Json& config) {
  const std::string type = model_type_of(config);
  const std::string architecture = architecture_of(config);
  for (const Family* family : families()) {
    if (!type.empty() && holds(family->model_types(), type)) return family;
  }
  for (const Family* family : families()) {
    if (!architecture.empty() && holds(family->architectures(), architecture)) return family;
  }
  return nullptr;
}

const Family* find_gguf_family(const GgufFile& gguf) {
  const auto architecture = gguf.get_string("general.architecture");
  if (!architecture) return nullptr;
  for (const Family* family : families()) {
    if (family->gguf_architecture() == *architecture) return family;
  }
  return nullptr;
}

std::string family_label(const Json& config) {
  std::string type = model_type_of(config);
  if (!type.empty()) return type;
  std::string architecture = architecture_of(config);
  return architecture.empty() ? "unknown" : architecture;
}

}  // namespace nibble
