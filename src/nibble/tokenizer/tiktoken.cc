#include "nibble/tokenizer/tiktoken.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "nibble/base/json.h"
#include "nibble/base/strings.h"
#include "nibble/checkpoint/json_scanner.h"
#include "nibble/tokenizer/gguf_folder.h"
#include "nibble/tokenizer/json_model.h"
#include "nibble/tokenizer/json_steps.h"
#include "nibble/tokenizer/pre_tokenizer.h"

namespace nibble {
namespace {

// What a Python class of a release says beyond the files.
struct TiktokenClass {
  std::string_view module, name;   // in auto_map
  std::string_view pre_tokenizer;  // its row in pre_tokenizer.h
  uint64_t reserved = 0;           // ids behind the ranks; those that the configuration does not name are reserved
};

constexpr std::array kClasses{TiktokenClass{"tokenization_kimi", "TikTokenTokenizer", "kimi-k2", 256}};

// The class that `auto_map` names for AutoTokenizer: "module.Class", or a list whose first entry is.
std::string class_name(const Json& config, const std::string& file) {
  const Json* map = json_member(config, "auto_map");
  const Json* entry = map == nullptr ? nullptr : json_member(*map, "AutoTokenizer");
  if (entry != nullptr && entry->is_array() && !entry->empty()) entry = &(*entry)[0];
  if (entry != nullptr && entry->is_string()) return entry->get<std::string>();
  return json_string(config, "tokenizer_class", file).value_or("none");
}

const TiktokenClass& find_class(const Json& config, const NamedText& ranks, const std::string& file) {
  const std::string name = class_name(config, file);
  for (const TiktokenClass& row : kClasses) {
    if (name == fmt::format("{}.{}", row.module, row.name)) return row;
  }
  throw Error("a tiktoken file of a class that nibble does not know: how it cuts text stands in Python code")
      .file(ranks.name)
      .value("class", name)
      .value("configuration", file)
      .way_out("write a tokenizer.json with transformers (AutoTokenizer.from_pretrained, save_pretrained)");
}

// nullopt for what is no base64.
std::optional<std::string> decode_base64(std::string_view text) {
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  for (const char c : text) {
    const std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xFF);
  }
  return bytes;
}

void read_ranks(const NamedText& ranks, TokenizerParts* parts) {
  auto& vocabulary = parts->vocabulary;
  size_t number = 0;
  for (const std::string_view line : split(ranks.text, '\n')) {
    ++number;
    if (line.empty()) continue;
    const auto fields = split(line, ' ');
    auto bytes = fields.size() == 2 ? decode_base64(fields[0]) : std::nullopt;
    const auto id = fields.size() == 2 ? whole_number(without_suffix(fields[1], "\r")) : std::nullopt;
    if (!bytes || !id || bytes->empty() || bytes->size() > kMaxTokenBytes || *id >= kMaxTokens) {
      throw broken_part("tiktoken", "a line is not a token in base64 and its rank", ranks.name)
          .value("line", number)
          .value("text", std::string(line.substr(0, 80)));
    }
    if (vocabulary.size() <= *id) vocabulary.resize(*id + 1);
    if (!vocabulary[*id].bytes.empty())
      throw broken_part("tiktoken", "two tokens have one rank", ranks.name).value("line", number).value("rank", *id);
    vocabulary[*id].bytes = std::move(*bytes);
  }
  if (vocabulary.empty()) throw broken_part("tiktoken", "the file has no tokens", ranks.name);
}

// Every pair of tokens that is a token together, in the order of what they make.
void imply_merges(const NamedText& ranks, TokenizerParts* parts) {
  std::unordered_map<std::string_view, TokenId> ids;
  ids.reserve(parts->vocabulary.size());
  for (size_t i = 0; i < parts->vocabulary.size(); ++i) {
    const std::string_view bytes = parts->vocabulary[i].bytes;
    if (!bytes.empty() && !ids.emplace(bytes, static_cast<TokenId>(i)).second)
      throw broken_part("tiktoken", "a token stands twice", ranks.name).value("rank", i);
  }
  for (size_t i = 0; i < parts->vocabulary.size(); ++i) {
    const std::string_view bytes = parts->vocabulary[i].bytes;
    for (size_t cut = 1; cut < bytes.size(); ++cut) {
      const auto left = ids.find(bytes.substr(0, cut));
      const auto right = ids.find(bytes.substr(cut));
      if (left != ids.end() && right != ids.end())
        parts->merges.push_back({left->second, right->second, static_cast<TokenId>(i)});
    }
  }
}

void add_control_tokens(const Json& config, const std::string& file, uint64_t reserved, TokenizerParts* parts) {
  const uint64_t first = parts->vocabulary.size();
  std::vector<AddedToken> tokens(reserved);
  const Json none = Json::object();
  const Json* rows = json_member(config, "added_tokens_decoder");
  for (const auto& [key, row] : (rows == nullptr ? none : *rows).items()) {
    const auto id = whole_number(key);
    if (!id || *id < first || *id - first >= reserved) {
      throw broken_part("added_tokens_decoder", "an id is not one of those behind the vocabulary", file)
          .value("id", key)
          .value("first", first)
          .value("last", first + reserved - 1);
    }
    tokens[*id - first] = added_token_of(row, static_cast<TokenId>(*id), file);
  }
  std::unordered_map<std::string, TokenId> names;
  for (uint64_t i = 0; i < reserved; ++i) {
    AddedToken& token = tokens[i];
    token.id = static_cast<TokenId>(first + i);
    if (token.name.empty()) token.name = fmt::format("<|reserved_token_{}|>", token.id);
    // The class knows no other kind, and cuts at their names as they stand.
    token.special = true;
    token.normalized = token.single_word = token.takes_left_space = token.takes_right_space = false;
    token.control = is_control_name(token.name, true);
    if (!names.emplace(token.name, token.id).second)
      throw broken_part("added_tokens_decoder", "a token stands twice", file).value("token", token.name);
  }
  parts->added = std::move(tokens);
}

}  // namespace

std::unique_ptr<Tokenizer> tokenizer_from_tiktoken(const NamedText& ranks, const NamedText& config) {
  if (config.text.empty()) {
    throw Error("a tiktoken file without tokenizer_config.json: nothing says how text is cut and which tokens control")
        .file(ranks.name)
        .way_out("fetch tokenizer_config.json of the model's release into the folder");
  }
  const Json json = parse_json(config.text, config.name);
  const TiktokenClass& row = find_class(json, ranks, config.name);
  TokenizerParts parts;
  parts.whole_words = true;
  read_ranks(ranks, &parts);
  imply_merges(ranks, &parts);
  add_control_tokens(json, config.name, row.reserved, &parts);
  for (const std::string_view pattern : find_pre_tokenizer(row.pre_tokenizer)->splits) {
    CutStep step;
    step.pattern = WordPattern::of_regex(pattern, ranks.name);
    parts.steps.push_back(std::move(step));
  }
  apply_config(config, &parts);
  return make_byte_level_tokenizer(std::move(parts));
}

}  // namespace nibble
