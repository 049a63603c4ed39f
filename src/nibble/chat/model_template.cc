#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/base/json.h"
#include "nibble/chat/conversation.h"
#include "nibble/checkpoint/folder.h"
#include "nibble/checkpoint/gguf.h"

namespace nibble {
namespace {

constexpr uint64_t kLongestTemplate = 16ULL << 20;
constexpr const char* kTokens[] = {"bos_token", "eos_token", "pad_token"};
const char* const kConfigName = "tokenizer_config.json";

[[noreturn]] void refuse_missing(const Path& model) {
  throw Error("the model has no chat template")
      .file(model.string())
      .way_out("give the prompt as text")
      .way_out("put the template into the folder as chat_template.jinja");
}

void read_tokens(const Json& config, ModelTemplate* out) {
  for (const char* name : kTokens) {
    const Json* token = json_member(config, name);
    if (token != nullptr && token->is_object()) token = json_member(*token, "content");
    if (token != nullptr && token->is_string()) out->tokens.emplace_back(name, token->get<std::string>());
  }
}

// The text of `chat_template`: one template, or a list of them with names. Empty if it has none.
std::string named_template(const Json& config, bool with_tools, const std::string& file) {
  const Json* found = json_member(config, "chat_template");
  if (found == nullptr) return "";
  if (found->is_string()) return found->get<std::string>();
  std::string chosen;
  for (const std::string& wanted : {std::string("default"), std::string(with_tools ? "tool_use" : "default")}) {
    if (!found->is_array()) break;
    for (const Json& each : *found) {
      if (json_string(each, "name", file) == wanted) chosen = json_string(each, "template", file).value_or(chosen);
    }
  }
  if (chosen.empty()) {
    throw Error("none of the chat templates is the default one")
        .file(file)
        .way_out("put the right one into the folder as chat_template.jinja");
  }
  return chosen;
}

ModelTemplate of_gguf(const Path& path, bool with_tools) {
  const GgufFile file = scan_gguf(InputFile::open(path));
  ModelTemplate out;
  out.name = path.string();
  if (with_tools) out.source = file.get_string("tokenizer.chat_template.tool_use").value_or("");
  if (out.source.empty()) out.source = file.get_string("tokenizer.chat_template").value_or("");
  if (out.source.empty()) refuse_missing(path);
  const GgufValue* tokens = file.find("tokenizer.ggml.tokens");
  const auto* list = tokens == nullptr ? nullptr : std::get_if<GgufValue::Array>(&tokens->value);
  constexpr const char* kIds[] = {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
                                  "tokenizer.ggml.padding_token_id"};
  for (size_t i = 0; i < std::size(kIds); ++i) {
    const auto id = file.get_uint(kIds[i]);
    if (!id || list == nullptr || *id >= list->size()) continue;
    const auto* text = std::get_if<std::string>(&(*list)[*id].value);
    if (text != nullptr) out.tokens.emplace_back(kTokens[i], *text);
  }
  return out;
}

ModelTemplate of_folder(const Path& folder, bool with_tools) {
  ModelTemplate out;
  Json config = Json::object();
  if (std::filesystem::is_regular_file(folder / kConfigName)) config = read_json(folder / kConfigName);
  read_tokens(config, &out);
  const Path for_tools = folder / "additional_chat_templates" / "tool_use.jinja";
  const Path plain = folder / "chat_template.jinja";
  for (const Path& path : {with_tools ? for_tools : plain, plain}) {
    if (!std::filesystem::is_regular_file(path)) continue;
    out.source = read_text(path, kLongestTemplate);
    out.name = path.string();
    return out;
  }
  out.name = (folder / kConfigName).string();
  out.source = named_template(config, with_tools, out.name);
  return out;
}

}  // namespace

ModelTemplate find_chat_template(const Path& model, bool with_tools) {
  if (!std::filesystem::exists(model)) throw absent_path(model);
  if (!std::filesystem::is_directory(model)) return of_gguf(model, with_tools);
  ModelTemplate found = of_folder(model, with_tools);
  if (!found.source.empty()) return found;
  const std::vector<std::string> files = sort_folder(model).gguf;
  if (files.empty()) refuse_missing(model);
  return of_gguf(model / files.front(), with_tools);
}

}  // namespace nibble
