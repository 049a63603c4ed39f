#include "nibble/checkpoint/conventions/config_writer.h"

#include <array>
#include <nlohmann/json.hpp>

namespace nibble {
namespace {

constexpr std::array<const char*, 3> kCarriers = {"quantization_config", "compression_config", "expert_dtype"};

}  // namespace

void remove_quantization(Json* config) {
  if (!config->is_object()) return;
  for (const char* key : kCarriers) config->erase(key);
  for (auto& member : *config) {
    if (!member.is_object()) continue;
    for (const char* key : kCarriers) member.erase(key);
  }
}

void replace_quantization(Json* config, Json settings) {
  remove_quantization(config);
  if (!config->is_object()) *config = Json::object();
  (*config)["quantization_config"] = std::move(settings);
}

}  // namespace nibble
