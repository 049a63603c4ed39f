#include "nibble/tokenizer/gguf_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "nibble/base/error.h"
#include "nibble/base/json.h"
#include "nibble/base/log.h"
#include "nibble/base/strings.h"
#include "nibble/checkpoint/json_scanner.h"
#include "nibble/tokenizer/pre_tokenizer.h"

namespace nibble {
namespace {

constexpr const char* kModel = "tokenizer.ggml.model";
constexpr const char* kPre = "tokenizer.ggml.pre";
constexpr const char* kTokens = "tokenizer.ggml.tokens";
constexpr const char* kTypes = "tokenizer.ggml.token_type";
constexpr const char* kMerges = "tokenizer.ggml.merges";
constexpr const char* kTemplate = "tokenizer.chat_template";
constexpr const char* kNamedTemplate = "tokenizer.chat_template.";
constexpr const char* kConvertAgain = "convert the model to GGUF again with a current converter";
constexpr const char* kFromRelease = "quantize the model's safetensors release, which brings its own tokenizer";
constexpr size_t kMaxSpaces = 16;  // in a merge of tokens that hold spaces themselves

enum TokenType : uint64_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct Vocabulary {
  std::vector<std::string_view> tokens;
  std::vector<uint64_t> types;
  std::unordered_map<std::string_view, uint32_t> ids;
  bool with_spaces = false;  // some token holds a space: a merge cannot be cut at sight
};

// nlohmann's ordered objects look for the key at each insertion: quadratic for 200,000 tokens. The keys are known to
// differ here.
void append(Json::object_t* object, std::string_view key, Json value) {
  static_cast<Json::object_t::Container*>(object)->emplace_back(std::string(key), std::move(value));
}

Json byte_level(bool prefix_space, bool own_expression) {
  return {
      {"type", "ByteLevel"}, {"add_prefix_space", prefix_space}, {"trim_offsets", true}, {"use_regex", own_expression}};
}

Json template_token(const std::string& token, int segment) {
  return {{"SpecialToken", {{"id", token}, {"type_id", segment}}}};
}

Json template_text(const char* name, int segment) { return {{"Sequence", {{"id", name}, {"type_id", segment}}}}; }

class Converter {
 public:
  Converter(const GgufFile& gguf, const std::string& file_name) : gguf_(gguf), file_(file_name) {}

  std::vector<std::pair<std::string, std::string>> run() {
    const auto model = gguf_.get_string(kModel);
    if (!model || *model == "none" || *model == "no_vocab") return {};
    if (*model != "gpt2") {
      throw refuse("a tokenizer of a kind that cannot be written as a Hugging Face file yet; byte-level BPE (gpt2) can",
                   kModel)
          .value(kModel, *model)
          .way_out(kFromRelease);
    }
    choose_pre_tokenizer();
    read_tokens();
    read_types();
    for (const char* name : {"bos", "eos", "unknown", "padding", "eot"}) special_ids_.emplace_back(name, special(name));
    std::vector<std::pair<std::string, std::string>> texts;
    texts.emplace_back("tokenizer.json", json_text(tokenizer()));
    texts.emplace_back("tokenizer_config.json", json_text(tokenizer_config()));
    if (const auto chat = chat_template()) texts.emplace_back("chat_template.jinja", *chat);
    const Json generation = generation_config();
    if (!generation.empty()) texts.emplace_back("generation_config.json", json_text(generation));
    return texts;
  }

 private:
  Error refuse(const std::string& message, std::string_view key) const {
    Error error(fmt::format("`{}`: {}", key, message));
    error.file(file_);
    return error;
  }

  void choose_pre_tokenizer() {
    const auto name = gguf_.get_string(kPre);
    pre_ = name ? find_pre_tokenizer(*name) : nullptr;
    if (pre_ != nullptr) return;
    std::string known;
    for (const PreTokenizer& row : pre_tokenizers()) known += fmt::format("{}{}", known.empty() ? "" : " ", row.name);
    throw refuse(name ? "a pre-tokenizer that nibble does not know" : "the file does not name its pre-tokenizer", kPre)
        .value(kPre, name.value_or("absent"))
        .value("known", known)
        .way_out(name ? kFromRelease : kConvertAgain);
  }

  const GgufValue::Array& array(const char* key) const {
    const GgufValue* found = gguf_.find(key);
    if (found == nullptr) throw refuse("the tokenizer lacks this key", key).way_out(kConvertAgain);
    const auto* values = std::get_if<GgufValue::Array>(&found->value);
    if (values == nullptr) throw refuse("not a list", key).way_out(kConvertAgain);
    return *values;
  }

  std::string_view text_at(const char* key, const GgufValue::Array& values, size_t i) const {
    const auto* text = std::get_if<std::string>(&values[i].value);
    if (text == nullptr) throw refuse("not a list of strings", key).value("entry", i).way_out(kConvertAgain);
    if (!is_utf8(*text))
      throw refuse("an entry is not UTF-8", key).value("entry", i).value("text", *text).way_out(kConvertAgain);
    return *text;
  }

  void read_tokens() {
    const auto& list = array(kTokens);
    if (list.empty()) throw refuse("the list is empty", kTokens).way_out(kConvertAgain);
    vocabulary_.tokens.reserve(list.size());
    vocabulary_.ids.reserve(list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string_view token = text_at(kTokens, list, i);
      if (token.empty() || token.size() > kMaxTokenBytes) {
        throw refuse("a token is empty or too long", kTokens)
            .value("entry", i)
            .value("bytes", token.size())
            .value("limit", kMaxTokenBytes)
            .way_out(kConvertAgain);
      }
      const auto [at, inserted] = vocabulary_.ids.emplace(token, static_cast<uint32_t>(i));
      if (!inserted) {
        throw refuse("a token stands twice", kTokens)
            .value("token", std::string(token.substr(0, 80)))
            .value("first", at->second)
            .value("second", i)
            .way_out(kConvertAgain);
      }
      vocabulary_.with_spaces = vocabulary_.with_spaces || token.find(' ') != std::string_view::npos;
      vocabulary_.tokens.push_back(token);
    }
  }

  void read_types() {
    const auto& list = array(kTypes);
    if (list.size() != vocabulary_.tokens.size()) {
      throw refuse("the list is not as long as that of the tokens", kTypes)
          .value("types", list.size())
          .value("tokens", vocabulary_.tokens.size())
          .way_out(kConvertAgain);
    }
    for (size_t i = 0; i < list.size(); ++i) {
      // Writers store them signed or unsigned.
      const auto* whole = std::get_if<uint64_t>(&list[i].value);
      const auto* with_sign = std::get_if<int64_t>(&list[i].value);
      const uint64_t type = whole != nullptr       ? *whole
                            : with_sign != nullptr ? static_cast<uint64_t>(*with_sign)
                                                   : UINT64_MAX;
      if (type > kByte) {
        throw refuse("a token type is not one of 0 to 6", kTypes)
            .value("entry", i)
            .value("token", std::string(vocabulary_.tokens[i].substr(0, 80)))
            .way_out(kConvertAgain);
      }
      vocabulary_.types.push_back(type);
    }
  }

  std::optional<uint64_t> special(const std::string& name) const {
    const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
    const auto id = gguf_.get_uint(key);
    if (id && *id >= vocabulary_.tokens.size()) {
      throw refuse("the id is beyond the list of tokens", key)
          .value("id", *id)
          .value("tokens", vocabulary_.tokens.size())
          .way_out(kConvertAgain);
    }
    return id;
  }

  std::optional<uint64_t> id_of(std::string_view name) const {
    for (const auto& [known, id] : special_ids_) {
      if (known == name) return id;
    }
    return std::nullopt;
  }

  std::optional<std::string> chat_template() const {
    auto text = gguf_.get_string(kTemplate);
    if (text && !is_utf8(*text)) throw refuse("not UTF-8", kTemplate).way_out(kConvertAgain);
    return text;
  }

  // Where a merge's text falls into two tokens that exist and whose union exists; npos if nowhere or in several places.
  size_t cut_of(std::string_view merge) const {
    size_t found = std::string_view::npos;
    size_t spaces = 0;
    for (size_t at = merge.find(' '); at != std::string_view::npos; at = merge.find(' ', at + 1)) {
      if (++spaces > (vocabulary_.with_spaces ? kMaxSpaces : 1)) return std::string_view::npos;
      std::string both(merge.substr(0, at));
      both += merge.substr(at + 1);
      if (!vocabulary_.ids.contains(merge.substr(0, at)) || !vocabulary_.ids.contains(merge.substr(at + 1)) ||
          !vocabulary_.ids.contains(both))
        continue;
      if (found != std::string_view::npos) return std::string_view::npos;
      found = at;
    }
    return found;
  }

  Json merges() const {
    const auto& list = array(kMerges);
    Json::array_t pairs;
    pairs.reserve(list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string_view merge = text_at(kMerges, list, i);
      const size_t cut = merge.size() > 2 * kMaxTokenBytes + 1 ? std::string_view::npos : cut_of(merge);
      if (cut == std::string_view::npos) {
        throw refuse("an entry is not two tokens of the vocabulary, with a space between, that make a third", kMerges)
            .value("entry", i)
            .value("merge", std::string(merge.substr(0, 80)))
            .way_out(kConvertAgain);
      }
      pairs.push_back(Json::array({merge.substr(0, cut), merge.substr(cut + 1)}));
    }
    return pairs;
  }

  Json added_tokens() const {
    Json added = Json::array();
    for (size_t i = 0; i < vocabulary_.tokens.size(); ++i) {
      const uint64_t type = vocabulary_.types[i];
      if (type != kControl && type != kUnknown && type != kUserDefined) continue;
      added.push_back({{"id", i},
                       {"content", vocabulary_.tokens[i]},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", type != kUserDefined}});
    }
    return added;
  }

  bool prefix_space() const { return gguf_.get_bool("tokenizer.ggml.add_space_prefix").value_or(false); }

  Json pre_tokenizer() const {
    Json steps = Json::array();
    if (pre_->digits) steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
    for (const std::string_view split : pre_->splits)
      steps.push_back(
          {{"type", "Split"}, {"pattern", {{"Regex", split}}}, {"behavior", "Isolated"}, {"invert", false}});
    steps.push_back(byte_level(prefix_space(), pre_->gpt2_words));
    if (steps.size() == 1) return steps[0];
    return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
  }

  // Whether texts begin with `bos` (or end with `eos`), and the token.
  std::optional<uint64_t> framing(const std::string& name, bool by_default) const {
    const std::string key = fmt::format("tokenizer.ggml.add_{}_token", name);
    if (!gguf_.get_bool(key).value_or(by_default)) return std::nullopt;
    const auto id = id_of(name);
    if (!id) {
      throw refuse(fmt::format("the token is to be added, but `tokenizer.ggml.{}_token_id` is absent", name), key)
          .way_out(kConvertAgain);
    }
    return id;
  }

  Json post_processor() const {
    const auto bos = framing("bos", pre_->adds_bos);
    const auto eos = framing("eos", false);
    if (!bos && !eos) return nullptr;
    Json single = Json::array();
    Json pair = Json::array();
    Json specials = Json::object();
    const auto add = [&](std::optional<uint64_t> id, Json* to, int segment) {
      if (!id) return;
      const std::string token(vocabulary_.tokens[*id]);
      to->push_back(template_token(token, segment));
      specials[token] = {{"id", token}, {"ids", Json::array({*id})}, {"tokens", Json::array({token})}};
    };
    for (Json* to : {&single, &pair}) {
      add(bos, to, 0);
      to->push_back(template_text("A", 0));
      add(eos, to, 0);
    }
    add(bos, &pair, 1);
    pair.push_back(template_text("B", 1));
    add(eos, &pair, 1);
    return {{"type", "TemplateProcessing"},
            {"single", std::move(single)},
            {"pair", std::move(pair)},
            {"special_tokens", std::move(specials)}};
  }

  Json model() const {
    Json::object_t ids;
    ids.reserve(vocabulary_.tokens.size());
    for (size_t i = 0; i < vocabulary_.tokens.size(); ++i) append(&ids, vocabulary_.tokens[i], i);
    Json model{{"type", "BPE"},
               {"dropout", nullptr},
               {"unk_token", nullptr},
               {"continuing_subword_prefix", nullptr},
               {"end_of_word_suffix", nullptr},
               {"fuse_unk", false},
               {"byte_fallback", false},
               {"ignore_merges", pre_->whole_words}};
    model["vocab"] = std::move(ids);
    model["merges"] = merges();
    return model;
  }

  Json tokenizer() const {
    Json json{{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}, {"added_tokens", added_tokens()}};
    json["normalizer"] = pre_->nfc ? Json{{"type", "NFC"}} : Json();
    json["pre_tokenizer"] = pre_tokenizer();
    json["post_processor"] = post_processor();
    json["decoder"] = byte_level(true, true);
    json["model"] = model();
    return json;
  }

  Json tokenizer_config() const {
    Json json{{"add_prefix_space", prefix_space()},
              {"add_bos_token", framing("bos", pre_->adds_bos).has_value()},
              {"add_eos_token", framing("eos", false).has_value()}};
    for (const auto& [key, name] : {std::pair{"bos_token", "bos"}, std::pair{"eos_token", "eos"},
                                    std::pair{"pad_token", "padding"}, std::pair{"unk_token", "unknown"}}) {
      if (const auto id = id_of(name)) json[key] = vocabulary_.tokens[*id];
    }
    json["clean_up_tokenization_spaces"] = false;
    const std::string architecture = gguf_.get_string("general.architecture").value_or("");
    if (const auto length = gguf_.get_uint(architecture + ".context_length")) json["model_max_length"] = *length;
    json["tokenizer_class"] = "PreTrainedTokenizerFast";
    if (auto chat = chat_template()) json["chat_template"] = std::move(*chat);
    return json;
  }

  // A chat model's answers end with `eot` where that differs from `eos`.
  Json generation_config() const {
    Json json = Json::object();
    if (const auto bos = id_of("bos")) json["bos_token_id"] = *bos;
    const auto eos = id_of("eos");
    const auto eot = id_of("eot");
    if (eos && eot && *eos != *eot) {
      json["eos_token_id"] = Json::array({*eos, *eot});
    } else if (eos) {
      json["eos_token_id"] = *eos;
    }
    if (const auto pad = id_of("padding")) json["pad_token_id"] = *pad;
    return json;
  }

  const GgufFile& gguf_;
  const std::string& file_;
  const PreTokenizer* pre_ = nullptr;
  Vocabulary vocabulary_;
  std::vector<std::pair<std::string, std::optional<uint64_t>>> special_ids_;
};

}  // namespace

std::vector<std::pair<std::string, std::string>> tokenizer_texts(const GgufFile& gguf, const std::string& file_name) {
  return Converter(gguf, file_name).run();
}

void tell_of_named_templates(const GgufFile& gguf) {
  std::vector<std::string> names;
  for (const auto& [key, value] : gguf.metadata) {
    if (starts_with(key, kNamedTemplate)) names.push_back(printable(key));
  }
  if (!names.empty())
    log::warning(fmt::format("only the default chat template is carried over, not {}", fmt::join(names, ", ")));
}

}  // namespace nibble
