#include "nibble/engine/end_tokens.h"

#include <nlohmann/json.hpp>

#include "nibble/base/json.h"

namespace nibble {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 20;
constexpr int64_t kMostId = int64_t{1} << 31;

void add(const Json& value, std::vector<TokenId>* ids) {
  if (value.is_number_integer() && value.get<int64_t>() >= 0 && value.get<int64_t>() < kMostId) {
    ids->push_back(value.get<TokenId>());
  }
  if (value.is_array()) {
    for (const Json& one : value) {
      if (!one.is_array()) add(one, ids);
    }
  }
}

void add_member(const Json& json, std::vector<TokenId>* ids) {
  if (json.is_object() && json.contains("eos_token_id")) add(json.at("eos_token_id"), ids);
}

}  // namespace

std::vector<TokenId> end_tokens(const Checkpoint& checkpoint) {
  std::vector<TokenId> ids;
  if (const GgufFile* gguf = checkpoint.gguf()) {
    for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}) {
      if (const auto id = gguf->get_uint(key)) ids.push_back(static_cast<TokenId>(*id));
    }
    return ids;
  }
  const Path generation = checkpoint.folder() / "generation_config.json";
  std::error_code ignored;
  if (std::filesystem::is_regular_file(generation, ignored)) add_member(read_json(generation, kMostBytes), &ids);
  if (!ids.empty()) return ids;
  const Json& config = checkpoint.config();
  add_member(config, &ids);
  if (ids.empty() && config.is_object() && config.contains("text_config")) add_member(config.at("text_config"), &ids);
  return ids;
}

}  // namespace nibble
