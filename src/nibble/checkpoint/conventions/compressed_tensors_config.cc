#include "nibble/checkpoint/conventions/compressed_tensors_config.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

#include "nibble/base/check.h"
#include "nibble/base/strings.h"
#include "nibble/checkpoint/conventions/stored_formats.h"

namespace nibble {
namespace {

// The library's release whose layout is written.
constexpr const char* kLayoutVersion = "0.20.1";

const char* strategy_of(const Format& format) {
  if (format.two_level) return "tensor_group";
  if (format.block_rows == 0) return "tensor";
  if (format.block_rows > 1) return "block";
  return format.block_cols == 0 ? "channel" : "group";
}

Json scale_dtype_of(const Format& format) {
  if (format.scale == ScaleType::kE8M0) return "torch.uint8";
  if (format.scale == ScaleType::kE4M3) return "torch.float8_e4m3fn";
  return nullptr;
}

Json arguments(uint64_t bits, const char* type, const char* strategy) {
  Json args;
  args["num_bits"] = bits;
  args["type"] = type;
  args["symmetric"] = true;
  args["strategy"] = strategy;
  args["group_size"] = nullptr;
  args["block_structure"] = nullptr;
  args["dynamic"] = false;
  args["actorder"] = nullptr;
  args["scale_dtype"] = nullptr;
  args["zp_dtype"] = nullptr;
  args["observer"] = nullptr;
  args["observer_kwargs"] = Json::object();
  return args;
}

Json weight_arguments(const Format& format, const std::string& rule) {
  const bool integer = format.element == Element::kInt4;
  Json args = arguments(format.code_bits(), integer ? "int" : "float", strategy_of(format));
  if (format.block_rows == 1 && format.block_cols > 0) args["group_size"] = format.block_cols;
  if (format.block_rows > 1) args["block_structure"] = {format.block_rows, format.block_cols};
  args["scale_dtype"] = scale_dtype_of(format);
  if (format.zero == ZeroPoint::kCode) {
    args["symmetric"] = false;
    args["zp_dtype"] = "torch.int8";
  }
  // The observer is a name that the field's tools look up; which rule chose the scales cannot be seen in the file, so
  // it is said where free-form settings are allowed.
  args["observer"] = starts_with(rule, "mse.") ? "mse" : "minmax";
  args["observer_kwargs"]["rule"] = rule;
  return args;
}

// FP8 weights with float scales serve with activations quantized on the fly; all others leave activations alone.
Json activation_arguments(const Format& format) {
  if (format.element != Element::kE4M3 || format.scale == ScaleType::kE8M0) return nullptr;
  const bool block = format.block_rows > 1;
  Json args = arguments(8, "float", block ? "group" : format.block_rows == 0 ? "tensor" : "token");
  if (block) args["group_size"] = format.block_cols;
  args["dynamic"] = true;
  return args;
}

std::string_view last_component(std::string_view module) { return module.substr(module.rfind('.') + 1); }

// Loaders ask this list about linear layers only, and a name without a layer is no error to them. Norms stand in it so
// that it says of every module what it is; one expression a kind, since deep models have hundreds.
Json ignored_modules(const ConfigRequest& request) {
  Json ignored = request.kept;
  std::set<std::string_view> kinds, quantized;
  for (const std::string& module : request.quantized) quantized.insert(last_component(module));
  for (const std::string& module : request.norms) {
    const std::string_view kind = last_component(module);
    const bool plain = std::ranges::all_of(kind, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
    if (!plain || quantized.contains(kind)) {
      ignored.push_back(module);
    } else {
      kinds.insert(kind);
    }
  }
  for (const std::string_view kind : kinds) ignored.push_back("re:(.*\\.)?" + std::string(kind) + "$");
  return ignored;
}

}  // namespace

const char* compressed_tensors_format(const Format& format) {
  const bool rows = format.block_rows == 1;
  if (format.element == Element::kInt4 && rows && is_float_scale(format.scale) && format.zero != ZeroPoint::kMin) {
    return "pack-quantized";
  }
  if (format.element == Element::kE2M1 && rows) {
    if (format.scale == ScaleType::kE8M0 && format.block_cols == 32) return "mxfp4-pack-quantized";
    if (format.scale == ScaleType::kE4M3 && format.block_cols == 16 && format.two_level) return "nvfp4-pack-quantized";
  }
  if (format.element == Element::kE4M3) {
    if (format.scale == ScaleType::kE8M0 && rows && format.block_cols == 32) return "mxfp8-quantized";
    if (is_float_scale(format.scale)) return "float-quantized";
  }
  return nullptr;
}

Json compressed_tensors_config(const ConfigRequest& request) {
  const char* format = compressed_tensors_format(request.format);
  NIBBLE_CHECK(format != nullptr);
  Json group;
  group["targets"] = {"Linear"};
  group["weights"] = weight_arguments(request.format, request.rule);
  group["input_activations"] = activation_arguments(request.format);
  group["output_activations"] = nullptr;
  Json config;
  config["quant_method"] = "compressed-tensors";
  config["format"] = format;
  config["quantization_status"] = "compressed";
  config["config_groups"]["group_0"] = std::move(group);
  config["ignore"] = ignored_modules(request);
  config["kv_cache_scheme"] = nullptr;
  config["version"] = kLayoutVersion;
  return config;
}

}  // namespace nibble
