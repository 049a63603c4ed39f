#include "nibble/tokenizer/json_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "nibble/checkpoint/json_scanner.h"
#include "nibble/tokenizer/byte_level.h"
#include "nibble/tokenizer/gguf_folder.h"
#include "nibble/tokenizer/json_steps.h"

namespace nibble {
namespace {

constexpr size_t kMaxMerges = size_t{8} << 20;  // released files have up to 446,189
constexpr size_t kMaxSettingBytes = 4 << 10;
constexpr size_t kMaxAddedRowBytes = 16 << 10;
constexpr size_t kMaxAddedBytes = size_t{4} << 20;  // of all names together; released files have up to 20,000
constexpr std::array<std::string_view, 8> kSettings{
    "type",     "dropout",       "unk_token",     "continuing_subword_prefix", "end_of_word_suffix",
    "fuse_unk", "byte_fallback", "ignore_merges",
};

Error broken_row(std::string_view part, std::string_view what, std::string_view row, const std::string& file) {
  Error error = broken_part(part, what, file);
  error.value("row", std::string(row.substr(0, 80)));
  return error;
}

TokenNames read_vocabulary(std::string_view json, const std::string& file, TokenizerParts* parts) {
  TokenNames names;
  auto& vocabulary = parts->vocabulary;
  JsonScanner scan(json, file);
  scan.object([&](std::string_view key) {
    if (key.empty() || key.size() > kMaxTokenBytes)
      throw broken_row("vocab", "a token is empty or too long", key, file);
    std::string name(key);
    const auto id = whole_number(scan.number());
    if (!id || *id >= kMaxTokens) {
      throw broken_row("vocab", "an id is not a whole number below the limit", name, file).value("limit", kMaxTokens);
    }
    if (vocabulary.size() <= *id) vocabulary.resize(*id + 1);
    if (!vocabulary[*id].bytes.empty())
      throw broken_row("vocab", "two tokens have one id", name, file).value("id", *id);
    auto bytes = bytes_of_symbols(name);
    vocabulary[*id].of_bytes = bytes.has_value();
    vocabulary[*id].bytes = bytes ? std::move(*bytes) : name;
    if (!names.emplace(name, static_cast<TokenId>(*id)).second)
      throw broken_row("vocab", "a token stands twice", name, file);
  });
  if (names.empty()) throw broken_part("vocab", "it is empty", file);
  return names;
}

class MergeReader {
 public:
  MergeReader(std::string_view json, const std::string& file, const TokenNames& names, TokenizerParts* parts)
      : scan_(json, file), file_(file), names_(names), merges_(parts->merges) {}

  void run() {
    scan_.array([&] {
      if (scan_.peek() == JsonKind::kString) {
        add_line(scan_.string());
      } else {
        add_pair();
      }
    });
  }

 private:
  // "a b", and the first line of a file of merges as it was.
  void add_line(std::string_view line) {
    if (line.starts_with("#version")) return;
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
      throw broken_row("merges", "a row is not two tokens with a space between", line, file_);
    add(line.substr(0, space), line.substr(space + 1));
  }

  void add_pair() {
    size_t count = 0;
    scan_.array([&] {
      const std::string_view token = scan_.string();
      if (count < 2) (count == 0 ? left_ : right_) = token;
      ++count;
    });
    if (count != 2) throw broken_row("merges", "a row is not two tokens", left_, file_).value("tokens", count);
    add(left_, right_);
  }

  void add(std::string_view left, std::string_view right) {
    if (merges_.size() == kMaxMerges)
      throw broken_part("merges", "there are too many", file_).value("limit", kMaxMerges);
    made_ = left;
    made_ += right;
    merges_.push_back({id_of(left), id_of(right), id_of(made_)});
  }

  TokenId id_of(std::string_view name) const {
    const auto found = names_.find(name);
    if (found != names_.end()) return found->second;
    throw broken_row("merges", "a row names or makes a token that the vocabulary lacks", name, file_)
        .value("merge", merges_.size());
  }

  JsonScanner scan_;
  const std::string& file_;
  const TokenNames& names_;
  std::vector<BpeMerge>& merges_;
  std::string left_, right_, made_;
};

// Settings that change what comes out and that only other kinds of BPE use.
void check_settings(const Json& settings, const std::string& file) {
  const auto type = json_string(settings, "type", file);
  if (type && *type != "BPE") throw unread_kind("model", *type, file);
  if (json_bool(settings, "byte_fallback", file).value_or(false))
    throw unread_kind("model", "BPE with byte_fallback (SentencePiece)", file);
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (const auto text = json_string(settings, key, file); text && !text->empty())
      throw unread_kind("model", fmt::format("BPE with {}", key), file);
  }
  if (json_double(settings, "dropout", file).value_or(0) != 0) throw unread_kind("model", "BPE with dropout", file);
}

}  // namespace

TokenNames read_bpe_model(std::string_view json, const std::string& file, TokenizerParts* parts) {
  std::string_view vocabulary;
  std::string_view merges;
  Json settings = Json::object();
  JsonScanner scan(json, file);
  scan.object([&](std::string_view key) {
    if (key == "vocab") {
      vocabulary = scan.skip();
    } else if (key == "merges") {
      merges = scan.skip();
    } else {
      const std::string name(key);
      const std::string_view value = scan.skip();
      if (std::find(kSettings.begin(), kSettings.end(), name) == kSettings.end()) return;
      if (value.size() > kMaxSettingBytes || settings.contains(name))
        throw broken_part(name, "it is too long, or stands twice", file).value("limit", kMaxSettingBytes);
      settings[name] = parse_json(value, file);
    }
  });
  check_settings(settings, file);
  if (vocabulary.empty() || merges.empty()) throw unread_kind("model", "one without vocab and merges", file);
  TokenNames names = read_vocabulary(vocabulary, file, parts);
  MergeReader(merges, file, names, parts).run();
  parts->whole_words = json_bool(settings, "ignore_merges", file).value_or(false);
  parts->fuse_unknown = json_bool(settings, "fuse_unk", file).value_or(false);
  if (const auto unknown = json_string(settings, "unk_token", file)) {
    if (const auto found = names.find(*unknown); found != names.end()) parts->unknown = found->second;
  }
  return names;
}

AddedToken added_token_of(const Json& row, TokenId id, const std::string& file) {
  AddedToken token;
  token.name = json_string(row, "content", file).value_or("");
  token.id = id;
  if (token.name.empty() || token.name.size() > kMaxAddedTokenBytes) {
    throw broken_part("added_tokens", "a name is empty or too long", file)
        .value("id", id)
        .value("bytes", token.name.size())
        .value("limit", kMaxAddedTokenBytes);
  }
  const auto flag = [&](const char* key) { return json_bool(row, key, file).value_or(false); };
  token.special = flag("special");
  // As the library reads a row without it.
  token.normalized = json_bool(row, "normalized", file).value_or(!token.special);
  token.single_word = flag("single_word");
  token.takes_left_space = flag("lstrip");
  token.takes_right_space = flag("rstrip");
  token.control = is_control_name(token.name, token.special);
  return token;
}

void read_added_tokens(std::string_view json, const std::string& file, const TokenNames& names, TokenizerParts* parts) {
  std::unordered_set<std::string> seen;
  TokenId highest = static_cast<TokenId>(names.size()) - 1;
  size_t bytes = 0;
  JsonScanner scan(json, file);
  scan.array([&] {
    const std::string_view text = scan.skip();
    if (text.size() > kMaxAddedRowBytes)
      throw broken_row("added_tokens", "a row is too long", text, file).value("limit", kMaxAddedRowBytes);
    const Json row = parse_json(text, file);
    const uint64_t id = json_uint(row, "id", file).value_or(UINT64_MAX);
    if (id >= kMaxTokens)
      throw broken_part("added_tokens", "an id is absent or above the limit", file).value("limit", kMaxTokens);
    AddedToken token = added_token_of(row, static_cast<TokenId>(id), file);
    const auto known = names.find(token.name);
    const TokenId expected = known != names.end() ? known->second : highest + 1;
    if (token.id != expected) {
      throw broken_row("added_tokens", "the id is not the one that the token has by its name", token.name, file)
          .value("id", token.id)
          .value("expected", expected);
    }
    if (!seen.insert(token.name).second) throw broken_row("added_tokens", "a token stands twice", token.name, file);
    bytes += token.name.size();
    if (bytes > kMaxAddedBytes)
      throw broken_part("added_tokens", "the names are too long together", file).value("limit", kMaxAddedBytes);
    highest = std::max(highest, token.id);
    parts->added.push_back(std::move(token));
  });
}

}  // namespace nibble
