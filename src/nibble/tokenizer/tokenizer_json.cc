#include "nibble/tokenizer/tokenizer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "nibble/base/json.h"
#include "nibble/checkpoint/json_scanner.h"
#include "nibble/tokenizer/json_model.h"
#include "nibble/tokenizer/json_steps.h"

namespace nibble {
namespace {

constexpr size_t kMaxPartBytes = size_t{1} << 20;  // of steps and settings; released ones have a few thousand

// The text of each member of the outermost object.
std::map<std::string, std::string_view> members_of(const NamedText& json) {
  std::map<std::string, std::string_view> members;
  JsonScanner scan(json.text, json.name);
  scan.object([&](std::string_view key) {
    std::string name(key);
    const std::string_view value = scan.skip();
    if (!members.emplace(name, value).second)
      throw broken_part("tokenizer.json", "a key stands twice", json.name).value("key", name);
  });
  scan.end();
  return members;
}

// The id of a token that a configuration names, as text or as an object with `content`.
TokenId named_id(const Json& config, const std::string& key, const std::string& file, const TokenizerParts& parts) {
  const Json* member = json_member(config, key);
  if (member == nullptr) return -1;
  const auto name = json_string(member->is_object() ? *member : config, member->is_object() ? "content" : key, file);
  for (const AddedToken& token : parts.added) {
    if (token.name == name) return token.id;
  }
  for (size_t i = 0; i < parts.vocabulary.size(); ++i) {
    if (!parts.vocabulary[i].bytes.empty() && parts.vocabulary[i].bytes == name) return static_cast<TokenId>(i);
  }
  throw broken_part(key, "the tokenizer has no token of this name", file).value("token", name.value_or(""));
}

}  // namespace

void apply_config(const NamedText& config, TokenizerParts* parts) {
  if (config.text.empty()) return;
  const Json json = parse_json(config.text, config.name);
  const auto add_bos = json_bool(json, "add_bos_token", config.name);
  const auto add_eos = json_bool(json, "add_eos_token", config.name);
  if (!add_bos && !add_eos) return;
  parts->prefix.clear();
  parts->suffix.clear();
  const auto add = [&](bool wanted, const char* key, std::vector<TokenId>* to) {
    const TokenId id = wanted ? named_id(json, key, config.name, *parts) : -1;
    if (id >= 0) to->push_back(id);
  };
  add(add_bos.value_or(false), "bos_token", &parts->prefix);
  add(add_eos.value_or(false), "eos_token", &parts->suffix);
}

std::unique_ptr<Tokenizer> tokenizer_from_json(const NamedText& tokenizer, const NamedText& config) {
  const std::string& file = tokenizer.name;
  const auto members = members_of(tokenizer);
  const auto small = [&](const char* key) {
    const auto found = members.find(key);
    if (found == members.end()) return Json();
    if (found->second.size() > kMaxPartBytes)
      throw broken_part(key, "it is too long", file).value("limit", kMaxPartBytes);
    return parse_json(found->second, file);
  };
  const auto model = members.find("model");
  if (model == members.end()) throw broken_part("model", "the file has none", file);
  TokenizerParts parts;
  const TokenNames names = read_bpe_model(model->second, file, &parts);
  if (const auto added = members.find("added_tokens"); added != members.end())
    read_added_tokens(added->second, file, names, &parts);
  parts.normalizer = read_normalizer(small("normalizer"), file);
  parts.steps = read_pre_tokenizer(small("pre_tokenizer"), file);
  check_decoder(small("decoder"), file);
  const auto check_id = [&](uint64_t id) {
    const auto is_this = [&](const AddedToken& token) { return static_cast<uint64_t>(token.id) == id; };
    const bool known = (id < parts.vocabulary.size() && !parts.vocabulary[id].bytes.empty()) ||
                       std::any_of(parts.added.begin(), parts.added.end(), is_this);
    if (!known) throw broken_part("post_processor", "it names an id that no token has", file).value("id", id);
    return static_cast<TokenId>(id);
  };
  TextFrame frame = read_post_processor(small("post_processor"), file, check_id);
  parts.prefix = std::move(frame.prefix);
  parts.suffix = std::move(frame.suffix);
  apply_config(config, &parts);
  return make_byte_level_tokenizer(std::move(parts));
}

}  // namespace nibble
