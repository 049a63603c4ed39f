#include "nibble/quantize/recipe.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "nibble/base/error.h"

namespace nibble {
namespace {

constexpr std::string_view kDenseLayout = "dense";
constexpr std::array<std::string_view, 12> kFields = {"family",         "format",       "rule",        "rule_given",
                                                      "layout",         "include",      "keep",        "generic",
                                                      "bit_exact_with", "unify_scales", "shard_bytes", "sha256_inputs"};

// A reader of one recipe: every field must be there.
class Fields {
 public:
  Fields(const Json& recipe, const std::string& source_name) : recipe_(recipe), source_(source_name) {
    if (!recipe.is_object()) throw malformed("the recipe is no JSON object", "recipe");
    for (const auto& [key, value] : recipe.items()) {
      // What is not known may decide bytes.
      if (std::find(kFields.begin(), kFields.end(), key) == kFields.end())
        throw malformed("the recipe has a field that this nibble does not know", key);
    }
  }

  std::string text(const char* key) const { return there(json_string(recipe_, key, source_), key); }
  bool flag(const char* key) const { return there(json_bool(recipe_, key, source_), key); }
  uint64_t count(const char* key) const { return there(json_uint(recipe_, key, source_), key); }

  std::vector<std::string> texts(const char* key) const {
    const auto list = recipe_.find(key);
    if (list == recipe_.end()) throw malformed("the recipe lacks a field", key);
    if (!list->is_array()) throw malformed("a field of the recipe should be a list of strings", key);
    std::vector<std::string> texts;
    for (const Json& entry : *list) {
      if (!entry.is_string()) throw malformed("a field of the recipe should be a list of strings", key);
      texts.push_back(entry.get<std::string>());
    }
    return texts;
  }

  Error malformed(std::string message, const std::string& key) const {
    return std::move(Error(std::move(message))
                         .file(source_)
                         .value("field", key)
                         .way_out("copy nibble.json again from where the checkpoint was made")
                         .way_out("verify with the version of nibble that made it"));
  }

 private:
  template <typename T>
  T there(const std::optional<T>& value, const char* key) const {
    if (!value) throw malformed("the recipe lacks a field", key);
    return *value;
  }

  const Json& recipe_;
  const std::string& source_;
};

BitExact bit_exact_of(const Fields& fields) {
  const std::string library = fields.text("bit_exact_with");
  const auto found = parse_library(library);
  if (!found)
    throw fields.malformed("the recipe names an unknown library", "bit_exact_with").value("bit_exact_with", library);
  return *found;
}

QuantizeRequest request_of(const Fields& fields) {
  QuantizeRequest request;
  request.format = parse_writable_format(fields.text("format"));
  const bool dense = request.format.is_dense();
  const std::string rule = fields.text("rule");
  if (dense != rule.empty())
    throw fields.malformed(dense ? "a 16-bit target has no scale rule" : "the format needs a scale rule", "rule")
        .value("rule", rule)
        .value("format", request.format.name);
  if (!dense) request.rule = parse_rule(rule, request.format);
  request.rule_given = fields.flag("rule_given");
  request.layout = fields.text("layout");
  if (dense != (request.layout == kDenseLayout))
    throw fields.malformed("layout and format do not go together", "layout")
        .value("layout", request.layout)
        .value("format", request.format.name);
  // The resolved name: the plan would choose again where there is none.
  if (dense) request.layout.clear();
  if (!dense) parse_layout(request.layout, request.format);
  request.include = fields.texts("include");
  request.keep = fields.texts("keep");
  request.generic = fields.texts("generic");
  request.bit_exact = bit_exact_of(fields);
  request.unify_scales = fields.flag("unify_scales");
  request.shard_bytes = fields.count("shard_bytes");
  request.sha256_inputs = fields.flag("sha256_inputs");
  return request;
}

}  // namespace

Json recipe_json(const Model& model, const OutputPlan& plan, const QuantizeRequest& request) {
  Json recipe = Json::object();
  recipe["family"] = model.family_name;
  recipe["format"] = request.format.name;
  recipe["rule"] = request.rule.rule == nullptr ? "" : request.rule.name();
  recipe["rule_given"] = request.rule_given;
  recipe["layout"] = plan.layout == nullptr ? kDenseLayout : plan.layout->name();
  recipe["include"] = request.include;
  recipe["keep"] = request.keep;
  recipe["generic"] = request.generic;
  recipe["bit_exact_with"] = library_name(request.bit_exact);
  recipe["unify_scales"] = request.unify_scales;
  recipe["shard_bytes"] = request.shard_bytes;
  recipe["sha256_inputs"] = request.sha256_inputs;
  return recipe;
}

Recipe read_recipe(const Json& recipe, const std::string& source_name) {
  const Fields fields(recipe, source_name);
  try {
    return {fields.text("family"), request_of(fields)};
  } catch (Error& error) {
    // Names of formats, rules and layouts are refused by their lists, which know no file.
    if (error.file().empty()) error.file(source_name).context("reading the recipe");
    throw;
  }
}

}  // namespace nibble
