#include "nibble/tokenizer/json_steps.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

namespace nibble {
namespace {

constexpr size_t kMaxSteps = 64;  // published tokenizers have up to five
constexpr size_t kMaxFrame = 64;  // and put up to two tokens around a text

std::string type_of(const Json& json, std::string_view part, const std::string& file) {
  const auto type = json_string(json, "type", file);
  if (!type) throw broken_part(part, "it does not name its type", file);
  return *type;
}

// The members of a Sequence.
const Json& list_of(const Json& json, const std::string& key, const std::string& file) {
  const Json* list = json_member(json, key);
  if (list == nullptr || !list->is_array()) throw broken_part(key, "not a list", file);
  return *list;
}

void add_forms(const Json& json, const std::string& file, TextNormalizer* normalizer, size_t* steps) {
  if (json.is_null()) return;
  if (++*steps > kMaxSteps) throw broken_part("normalizer", "it has too many steps", file);
  const std::string type = type_of(json, "normalizer", file);
  if (type == "Sequence") {
    for (const Json& member : list_of(json, "normalizers", file)) add_forms(member, file, normalizer, steps);
  } else if (!normalizer->add(type)) {
    throw unread_kind("normalizer", type, file);
  }
}

SplitBehavior behavior_of(const Json& json, const std::string& file) {
  static constexpr std::array kNames{"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
  const std::string name = json_string(json, "behavior", file).value_or("");
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<SplitBehavior>(i);
  }
  throw unread_kind("behavior of a Split", name, file);
}

CutStep split_step(const Json& json, const std::string& file) {
  const Json* pattern = json_member(json, "pattern");
  const auto regex = pattern == nullptr ? std::nullopt : json_string(*pattern, "Regex", file);
  const auto text = pattern == nullptr ? std::nullopt : json_string(*pattern, "String", file);
  if (regex.has_value() == text.has_value()) throw broken_part("pattern", "neither a Regex nor a String", file);
  CutStep step;
  step.pattern = regex ? WordPattern::of_regex(*regex, file) : WordPattern::of_text(*text, file);
  step.behavior = behavior_of(json, file);
  step.invert = json_bool(json, "invert", file).value_or(false);
  return step;
}

CutStep digits_step(const Json& json, const std::string& file) {
  CutStep step;
  step.pattern = WordPattern::of_regex(R"(\p{N})", file);
  const bool apart = json_bool(json, "individual_digits", file).value_or(false);
  step.behavior = apart ? SplitBehavior::kIsolated : SplitBehavior::kContiguous;
  return step;
}

CutStep byte_level_step(const Json& json, const std::string& file) {
  CutStep step;
  step.prefix_space = json_bool(json, "add_prefix_space", file).value_or(true);
  if (json_bool(json, "use_regex", file).value_or(true)) step.pattern = WordPattern::of_regex(kGpt2Words, file);
  return step;
}

struct StepReader {
  const std::string& file;
  std::vector<CutStep> steps;
  bool bytes = false;  // ByteLevel has been met

  void add(const Json& json) {
    if (steps.size() >= kMaxSteps) throw broken_part("pre_tokenizer", "it has too many steps", file);
    const std::string type = type_of(json, "pre_tokenizer", file);
    if (type == "Sequence") {
      for (const Json& member : list_of(json, "pretokenizers", file)) add(member);
      return;
    }
    if (bytes) throw unread_kind("pre_tokenizer", type + " after ByteLevel", file);
    bytes = type == "ByteLevel";
    if (bytes) {
      steps.push_back(byte_level_step(json, file));
    } else if (type == "Split") {
      steps.push_back(split_step(json, file));
    } else if (type == "Digits") {
      steps.push_back(digits_step(json, file));
    } else {
      throw unread_kind("pre_tokenizer", type, file);
    }
  }
};

// A template: special tokens around the one text.
TextFrame read_template(const Json& json, const std::string& file, const std::function<TokenId(uint64_t)>& check_id) {
  const Json* specials = json_member(json, "special_tokens");
  TextFrame frame;
  bool behind = false;
  for (const Json& piece : list_of(json, "single", file)) {
    if (json_member(piece, "Sequence") != nullptr) {
      if (behind) throw broken_part("post_processor", "its template has the text twice", file);
      behind = true;
      continue;
    }
    const Json* special = json_member(piece, "SpecialToken");
    const auto name = special == nullptr ? std::nullopt : json_string(*special, "id", file);
    const Json* row = name && specials != nullptr ? json_member(*specials, *name) : nullptr;
    if (row == nullptr)
      throw broken_part("post_processor", "its template names a token that it does not describe", file);
    for (const Json& id : list_of(*row, "ids", file)) {
      if (!id.is_number_unsigned()) throw broken_part("post_processor", "an id is not a whole number", file);
      if (frame.prefix.size() + frame.suffix.size() == kMaxFrame)
        throw broken_part("post_processor", "it adds too many tokens", file).value("limit", kMaxFrame);
      (behind ? frame.suffix : frame.prefix).push_back(check_id(id.get<uint64_t>()));
    }
  }
  if (!behind) throw broken_part("post_processor", "its template leaves out the text", file);
  return frame;
}

// ["</s>", 2] under `key`.
TokenId pair_id(const Json& json, const char* key, const std::string& file,
                const std::function<TokenId(uint64_t)>& check_id) {
  const Json& pair = list_of(json, key, file);
  if (pair.size() != 2 || !pair[1].is_number_unsigned()) throw broken_part(key, "not a name and an id", file);
  return check_id(pair[1].get<uint64_t>());
}

}  // namespace

Error unread_kind(std::string_view part, std::string_view kind, const std::string& file) {
  Error error(fmt::format("a {} of a kind that nibble does not read; it reads byte-level BPE", part));
  error.file(file)
      .value("kind", std::string(kind.substr(0, 80)))
      .way_out("use a model with a byte-level BPE tokenizer");
  return error;
}

Error broken_part(std::string_view part, std::string_view what, const std::string& file) {
  Error error(fmt::format("`{}`: {}", part, what));
  error.file(file).way_out("fetch the tokenizer of the model's release again");
  return error;
}

TextNormalizer read_normalizer(const Json& json, const std::string& file) {
  TextNormalizer normalizer;
  size_t steps = 0;
  add_forms(json, file, &normalizer, &steps);
  return normalizer;
}

std::vector<CutStep> read_pre_tokenizer(const Json& json, const std::string& file) {
  if (json.is_null()) throw unread_kind("pre_tokenizer", "none", file);
  StepReader reader{file, {}, false};
  reader.add(json);
  if (!reader.bytes) throw unread_kind("pre_tokenizer", "one without ByteLevel", file);
  return std::move(reader.steps);
}

void check_decoder(const Json& json, const std::string& file) {
  if (json.is_null()) return;
  const std::string type = type_of(json, "decoder", file);
  if (type == "Sequence") {
    for (const Json& member : list_of(json, "decoders", file)) check_decoder(member, file);
  } else if (type != "ByteLevel" && type != "Fuse") {
    throw unread_kind("decoder", type, file);
  }
}

TextFrame read_post_processor(const Json& json, const std::string& file,
                              const std::function<TokenId(uint64_t)>& check_id) {
  if (json.is_null()) return {};
  const std::string type = type_of(json, "post_processor", file);
  if (type == "ByteLevel") return {};
  if (type == "TemplateProcessing") return read_template(json, file, check_id);
  if (type == "RobertaProcessing" || type == "BertProcessing")
    return {{pair_id(json, "cls", file, check_id)}, {pair_id(json, "sep", file, check_id)}};
  if (type != "Sequence") throw unread_kind("post_processor", type, file);
  TextFrame frame;
  for (const Json& member : list_of(json, "processors", file)) {
    TextFrame one = read_post_processor(member, file, check_id);
    if (one.empty()) continue;
    // The library takes the second for a template of pairs.
    if (!frame.empty()) throw unread_kind("post_processor", "two that add tokens", file);
    frame = std::move(one);
  }
  return frame;
}

}  // namespace nibble
