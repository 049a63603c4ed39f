#include "nibble/checkpoint/conventions/quant_carrier.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "nibble/base/strings.h"
#include "nibble/checkpoint/json_scanner.h"

namespace nibble {
namespace {

constexpr int64_t kMaxBlock = int64_t{1} << 31;  // beyond any matrix, and small enough to multiply

std::string in_case(std::string text, int (*change)(int)) {
  for (char& c : text) c = static_cast<char>(change(static_cast<unsigned char>(c)));
  return text;
}

QuantGroup preset_group(std::string_view name, std::string type, uint64_t bits, int64_t group_size) {
  QuantGroup group;
  group.format = name;
  group.type = std::move(type);
  group.bits = bits;
  group.group_size = group_size;
  group.symmetric = true;
  return group;
}

// The presets that can stand in place of a scheme and fix its sizes.
std::optional<QuantGroup> preset(std::string_view name) {
  if (starts_with(name, "NVFP4")) return preset_group(name, "float", 4, 16);
  if (starts_with(name, "MXFP4")) return preset_group(name, "float", 4, 32);
  if (name == "W4A16") return preset_group(name, "int", 4, 128);
  if (name == "W8A16") return preset_group(name, "int", 8, 128);
  QuantGroup group;
  if (starts_with(name, "MXFP8")) {
    group = preset_group(name, "float", 8, 32);
    group.scale_dtype = "torch.uint8";
  } else if (name == "FP8_BLOCK") {
    group = preset_group(name, "float", 8, 0);
    group.group_size.reset();
    group.block_rows = group.block_cols = 128;
  } else if (name == "W4A16_ASYM") {
    group = preset_group(name, "int", 4, 128);
    group.symmetric = false;
  } else {
    return std::nullopt;
  }
  return group;
}

class CarrierReader {
 public:
  CarrierReader(const Json& object, const std::string& path, Findings* findings)
      : object_(object), path_(path), findings_(findings) {}

  QuantHints read() {
    hints_.source = path_;
    common();
    groups();
    layers();
    exclusions();
    method();
    return std::move(hints_);
  }

 private:
  void refuse(const std::string& key, const Json& found, const std::string& wanted) {
    findings_->push_back(finding_of(Error(fmt::format("`{}` should be {}", key, wanted))
                                        .file(path_)
                                        .value(key, shown(found))
                                        .way_out("correct the file or fetch it again"),
                                    "bad-config"));
  }

  std::string text(const Json& object, const std::string& key) {
    const Json* found = json_member(object, key);
    if (found == nullptr) return {};
    if (found->is_string()) return found->get<std::string>();
    refuse(key, *found, "a string");
    return {};
  }

  // The same without judgement: what is no string stands as its JSON text.
  static std::string written(const Json& object, const std::string& key) {
    const Json* found = json_member(object, key);
    if (found == nullptr) return {};
    return found->is_string() ? found->get<std::string>() : shown(*found);
  }

  static std::string shown(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 80);
  }

  std::optional<bool> truth(const Json& object, const std::string& key) {
    const Json* found = json_member(object, key);
    if (found == nullptr) return std::nullopt;
    if (found->is_boolean()) return found->get<bool>();
    refuse(key, *found, "true or false");
    return std::nullopt;
  }

  // A whole number in [low, high], also when written as 4.0.
  static std::optional<int64_t> whole(const Json& found, int64_t low, int64_t high) {
    if (!found.is_number()) return std::nullopt;
    const double number = found.get<double>();
    const bool inside = number >= static_cast<double>(low) && number <= static_cast<double>(high);  // no NaN is
    if (!inside || number != std::floor(number)) return std::nullopt;
    return static_cast<int64_t>(number);
  }

  uint64_t bits(const Json& object, const std::string& key) {
    const Json* found = json_member(object, key);
    if (found == nullptr) return 0;
    const auto number = whole(*found, 1, 64);
    if (!number) refuse(key, *found, "a number of bits from 1 to 64");
    return static_cast<uint64_t>(number.value_or(0));
  }

  std::optional<int64_t> group_size(const Json& object, const std::string& key) {
    const Json* found = json_member(object, key);
    if (found == nullptr) return std::nullopt;
    const auto number = whole(*found, -1, kMaxBlock);
    if (number && *number != 0) return number;
    refuse(key, *found, "a group size of 1 or more, or -1 for whole rows");
    return std::nullopt;
  }

  // [rows, cols], or the older "128x128".
  std::pair<uint64_t, uint64_t> block(const Json& object, const std::string& key) {
    const Json* found = json_member(object, key);
    if (found == nullptr) return {0, 0};
    std::array<std::optional<int64_t>, 2> sizes;
    if (found->is_array() && found->size() == 2) {
      for (size_t i = 0; i < 2; ++i) sizes[i] = whole((*found)[i], 1, kMaxBlock);
    } else if (found->is_string()) {
      const auto parts = split(found->get_ref<const std::string&>(), 'x');
      for (size_t i = 0; i < 2 && parts.size() == 2; ++i) {
        const auto number = whole_number(parts[i]);
        if (number && *number > 0 && *number <= kMaxBlock) sizes[i] = static_cast<int64_t>(*number);
      }
    }
    if (sizes[0] && sizes[1]) return {static_cast<uint64_t>(*sizes[0]), static_cast<uint64_t>(*sizes[1])};
    refuse(key, *found, "two block sizes of 1 or more, [rows, columns]");
    return {0, 0};
  }

  void common() {
    hints_.method = in_case(text(object_, "quant_method"), std::tolower);
    if (hints_.method == "compressed_tensors") hints_.method = "compressed-tensors";
    if (starts_with(hints_.method, "modelopt")) hints_.method = "modelopt";
    hints_.algorithm = in_case(text(object_, "quant_algo"), std::toupper);
    if (hints_.algorithm.empty()) hints_.algorithm = text(object_, "format");
    hints_.checkpoint_format = text(object_, "checkpoint_format");
    hints_.expert_dtype = text(object_, "expert_dtype");
    hints_.bits = bits(object_, json_member(object_, "w_bit") != nullptr ? "w_bit" : "bits");
    hints_.group_size =
        group_size(object_, json_member(object_, "q_group_size") != nullptr ? "q_group_size" : "group_size");
    std::tie(hints_.block_rows, hints_.block_cols) = block(object_, "weight_block_size");
    hints_.symmetric = truth(object_, "sym");
    hints_.desc_act = truth(object_, "desc_act");
    hints_.element_format = written(object_, "fmt");
    hints_.scale_format = written(object_, "scale_fmt");
    hints_.store_dtype = written(object_, "store_dtype");
    hints_.expert_algorithm = in_case(written(object_, "moe_quant_algo"), std::toupper);
  }

  QuantGroup scheme(const Json& weights) {
    QuantGroup found;
    found.type = written(weights, "type");
    found.scale_dtype = written(weights, "scale_dtype");
    found.bits = bits(weights, "num_bits");
    found.group_size = group_size(weights, "group_size");
    found.strategy = text(weights, "strategy");
    if (found.strategy == "channel" && !found.group_size) found.group_size = -1;
    std::tie(found.block_rows, found.block_cols) = block(weights, "block_structure");
    found.symmetric = truth(weights, "symmetric");
    const Json* order = json_member(weights, "actorder");
    if (order != nullptr && !order->is_boolean() && !order->is_string()) {
      refuse("actorder", *order, "null, a truth value or a string");
    } else if (order != nullptr) {
      found.desc_act = *order == true || *order == "group" || *order == "dynamic";
    }
    return found;
  }

  // What is not a name does not name anything.
  static std::vector<std::string> targets(const Json* list) {
    std::vector<std::string> names;
    if (list == nullptr) return names;
    if (!list->is_array()) return {shown(*list)};
    names.reserve(list->size());
    for (const Json& name : *list) names.push_back(name.is_string() ? name.get<std::string>() : shown(name));
    return names;
  }

  void keep(QuantGroup group, const std::string& name, const Json* names) {
    group.name = name;
    group.targets = targets(names);
    hints_.groups.push_back(std::move(group));
  }

  // Schemes of all groups that quantize weights; false if some are not understood.
  bool schemes(const Json& groups) {
    for (const auto& [name, group] : groups.items()) {
      if (group.is_array()) {
        const auto known = preset(name);
        keep(known.value_or(QuantGroup()), name, &group);
        if (!known) return false;
        continue;
      }
      if (!group.is_object()) {
        refuse(name, group, "a scheme or a list of targets");
        return false;
      }
      const Json* weights = json_member(group, "weights");
      if (weights == nullptr) continue;
      if (!weights->is_object()) {
        refuse("weights", *weights, "an object");
        return false;
      }
      QuantGroup found = scheme(*weights);
      found.format = text(group, "format");
      keep(std::move(found), name, json_member(group, "targets"));
    }
    return true;
  }

  void groups() {
    const Json* groups = json_member(object_, "config_groups");
    if (groups == nullptr) return;
    if (!groups->is_object()) return refuse("config_groups", *groups, "an object");
    if (!schemes(*groups) || hints_.groups.empty()) return;
    const QuantGroup& first = hints_.groups.front();
    const auto shared = [&](auto QuantGroup::* field) {
      return std::ranges::all_of(hints_.groups, [&](const QuantGroup& other) { return other.*field == first.*field; });
    };
    if (hints_.bits == 0 && shared(&QuantGroup::bits)) hints_.bits = first.bits;
    if (!hints_.group_size && shared(&QuantGroup::group_size)) hints_.group_size = first.group_size;
    if (hints_.block_rows == 0 && shared(&QuantGroup::block_rows) && shared(&QuantGroup::block_cols)) {
      hints_.block_rows = first.block_rows;
      hints_.block_cols = first.block_cols;
    }
    if (!hints_.symmetric && shared(&QuantGroup::symmetric)) hints_.symmetric = first.symmetric;
    if (!hints_.desc_act && shared(&QuantGroup::desc_act)) hints_.desc_act = first.desc_act;
    if (hints_.algorithm.empty() && shared(&QuantGroup::format)) hints_.algorithm = first.format;
  }

  void layers() {
    const Json* layers = json_member(object_, "quantized_layers");
    if (layers == nullptr) return;
    if (!layers->is_object()) {
      hints_.layers.push_back({"", shown(*layers), {}});
      return;
    }
    hints_.layers.reserve(layers->size());
    for (const auto& [name, layer] : layers->items()) {
      const Json* size = json_member(layer, "group_size");
      hints_.layers.push_back({name,
                               layer.is_object() ? in_case(written(layer, "quant_algo"), std::toupper) : shown(layer),
                               size == nullptr ? std::nullopt : std::optional(whole(*size, 1, kMaxBlock).value_or(0))});
    }
  }

  void exclusions() {
    std::unordered_set<std::string_view> seen;  // into the document
    for (const char* key : {"ignore", "exclude_modules", "modules_to_not_convert", "ignored_layers"}) {
      const Json* list = json_member(object_, key);
      if (list == nullptr) continue;
      if (!list->is_array() || !std::ranges::all_of(*list, [](const Json& name) { return name.is_string(); })) {
        refuse(key, *list, "a list of names");
        continue;
      }
      for (const Json& name : *list) {
        if (seen.insert(name.get_ref<const std::string&>()).second) hints_.excluded.push_back(name);
      }
    }
  }

  // A missing method is told by the keys that only one of them has; then each method's own defaults.
  void method() {
    const auto has = [this](const char* key) { return json_member(object_, key) != nullptr; };
    if (hints_.method.empty()) {
      hints_.method = has("quant_algo")                                ? "modelopt"
                      : has("config_groups")                           ? "compressed-tensors"
                      : has("weight_block_size")                       ? "fp8"
                      : has("w_bit") || has("zero_point")              ? "awq"
                      : has("bits") && (has("desc_act") || has("sym")) ? "gptq"
                                                                       : "";
    }
    if (hints_.method == "gptq" && hints_.checkpoint_format.empty()) hints_.checkpoint_format = "gptq";
    if (hints_.method == "awq") {
      hints_.checkpoint_format = in_case(text(object_, "version"), std::tolower);
      const auto zero_point = truth(object_, "zero_point");
      if (zero_point) hints_.symmetric = !*zero_point;
    }
  }

  const Json& object_;
  const std::string& path_;
  Findings* findings_;
  QuantHints hints_;
};

}  // namespace

QuantHints read_quant_carrier(const Json& object, const std::string& path, Findings* findings) {
  return CarrierReader(object, path, findings).read();
}

}  // namespace nibble
