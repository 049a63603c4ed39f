#include "nibble/checkpoint/conventions/quant_carrier.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>
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

// What one group of compressed-tensors says of its weights.
struct Scheme {
  uint64_t bits = 0;
  std::optional<int64_t> group_size;
  uint64_t block_rows = 0, block_cols = 0;
  std::optional<bool> symmetric, desc_act;
  std::string format;
};

// The presets that can stand in place of a scheme and fix its sizes.
std::optional<Scheme> preset(std::string_view name) {
  if (starts_with(name, "NVFP4")) return Scheme{4, 16, 0, 0, true, {}, std::string(name)};
  if (starts_with(name, "MXFP4")) return Scheme{4, 32, 0, 0, true, {}, std::string(name)};
  if (starts_with(name, "MXFP8")) return Scheme{8, 32, 0, 0, true, {}, std::string(name)};
  if (name == "FP8_BLOCK") return Scheme{8, {}, 128, 128, true, {}, std::string(name)};
  if (name == "W4A16" || name == "W8A16")
    return Scheme{name == "W4A16" ? 4u : 8u, 128, 0, 0, true, {}, std::string(name)};
  if (name == "W4A16_ASYM") return Scheme{4, 128, 0, 0, false, {}, std::string(name)};
  return std::nullopt;
}

class CarrierReader {
 public:
  CarrierReader(const Json& object, const std::string& path, Findings* findings)
      : object_(object), path_(path), findings_(findings) {}

  QuantHints read() {
    hints_.source = path_;
    common();
    groups();
    exclusions();
    method();
    return std::move(hints_);
  }

 private:
  void refuse(const std::string& key, const Json& found, const std::string& wanted) {
    findings_->push_back(
        finding_of(Error(fmt::format("`{}` should be {}", key, wanted))
                       .file(path_)
                       .value(key, found.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 80))
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
  }

  Scheme scheme(const Json& weights) {
    Scheme found;
    found.bits = bits(weights, "num_bits");
    found.group_size = group_size(weights, "group_size");
    const std::string strategy = text(weights, "strategy");
    if (strategy == "channel" && !found.group_size) found.group_size = -1;
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

  // Schemes of all groups that quantize weights; false if some are not understood.
  bool schemes(const Json& groups, std::vector<Scheme>* found) {
    for (const auto& [name, group] : groups.items()) {
      if (group.is_array()) {
        const auto known = preset(name);
        if (!known) return false;
        found->push_back(*known);
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
      found->push_back(scheme(*weights));
      found->back().format = text(group, "format");
    }
    return true;
  }

  void groups() {
    const Json* groups = json_member(object_, "config_groups");
    if (groups == nullptr) return;
    if (!groups->is_object()) return refuse("config_groups", *groups, "an object");
    std::vector<Scheme> found;
    if (!schemes(*groups, &found) || found.empty()) return;
    Scheme& first = found.front();
    const auto shared = [&](auto Scheme::* field) {
      return std::ranges::all_of(found, [&](const Scheme& other) { return other.*field == first.*field; });
    };
    if (hints_.bits == 0 && shared(&Scheme::bits)) hints_.bits = first.bits;
    if (!hints_.group_size && shared(&Scheme::group_size)) hints_.group_size = first.group_size;
    if (hints_.block_rows == 0 && shared(&Scheme::block_rows) && shared(&Scheme::block_cols)) {
      hints_.block_rows = first.block_rows;
      hints_.block_cols = first.block_cols;
    }
    if (!hints_.symmetric && shared(&Scheme::symmetric)) hints_.symmetric = first.symmetric;
    if (!hints_.desc_act && shared(&Scheme::desc_act)) hints_.desc_act = first.desc_act;
    if (hints_.algorithm.empty() && shared(&Scheme::format)) hints_.algorithm = first.format;
  }

  void exclusions() {
    for (const char* key : {"ignore", "exclude_modules", "modules_to_not_convert", "ignored_layers"}) {
      const Json* list = json_member(object_, key);
      if (list == nullptr) continue;
      if (!list->is_array() || !std::ranges::all_of(*list, [](const Json& name) { return name.is_string(); })) {
        refuse(key, *list, "a list of names");
        continue;
      }
      for (const Json& name : *list) {
        if (std::ranges::find(hints_.excluded, name.get_ref<const std::string&>()) == hints_.excluded.end())
          hints_.excluded.push_back(name);
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
