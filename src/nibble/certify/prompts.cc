#include "nibble/certify/prompts.h"

#include <fmt/format.h>

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "nibble/base/embedded_file.h"
#include "nibble/base/error.h"
#include "nibble/base/json.h"
#include "nibble/base/strings.h"
#include "nibble/base/text_file.h"
#include "nibble/chat/conversation.h"

namespace nibble {

std::span<const EmbeddedFile> prompt_files();  // made from data/prompts

namespace {

// Turns text and messages into ids; files are read when the first line needs them.
class PromptEncoder {
 public:
  explicit PromptEncoder(const std::string& model) : model_(model) {}

  std::vector<TokenId> text(const std::string& text) {
    open();
    if (chat_) return messages(Json{{"messages", Json::array({{{"role", "user"}, {"content", text}}})}}.dump(), text);
    std::vector<TokenId> ids = tokenizer_->prefix();
    const std::vector<TokenId> own = tokenizer_->encode(text);
    ids.insert(ids.end(), own.begin(), own.end());
    return ids;
  }

  std::vector<TokenId> messages(const std::string& conversation, const std::string& where) {
    open();
    if (!chat_) found_ = find_chat_template(model_, false);  // says what is missing
    // A fixed day: the same prompts are the same tokens tomorrow.
    constexpr int64_t kDay = 1767225600;
    return tokenizer_->encode_spans(
        render_conversation(*chat_, *found_, parse_conversation(conversation, where), {kDay}));
  }

 private:
  void open() {
    if (tokenizer_ != nullptr) return;
    tokenizer_ = load_tokenizer(model_);
    try {
      found_ = find_chat_template(model_, false);
    } catch (const Error&) {
      return;  // a model without a template goes on with what it is given
    }
    chat_ = ChatTemplate::parse(found_->source, found_->name);
  }

  std::string model_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<ModelTemplate> found_;
  std::optional<ChatTemplate> chat_;
};

Error no_prompt(const std::string& where) {
  return Error("a line is no prompt")
      .file(where)
      .way_out(R"(write {"prompt": TEXT}, {"messages": [...]} or {"tokens": [ID, …]} on each line)");
}

std::vector<TokenId> ids_of(const Json& list, const std::string& where) {
  if (!list.is_array() || list.empty()) throw no_prompt(where);
  std::vector<TokenId> ids;
  for (const Json& id : list) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > std::numeric_limits<TokenId>::max()) throw no_prompt(where);
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

Prompt prompt_of(const Json& line, PromptEncoder* encoder, const std::string& where) {
  if (const Json* ids = json_member(line, "tokens")) return {"", ids_of(*ids, where)};
  if (const std::optional<std::string> text = json_string(line, "prompt", where)) return {*text, encoder->text(*text)};
  if (json_member(line, "messages") == nullptr) throw no_prompt(where);
  return {"", encoder->messages(line.dump(), where)};
}

}  // namespace

std::vector<Prompt> read_prompts(const std::optional<std::string>& file, const std::string& model) {
  PromptEncoder encoder(model);
  std::vector<Prompt> prompts;
  if (!file) {
    const Json bundled = parse_json(prompt_files().front().text, "the bundled prompts");
    for (const Json& text : bundled.at("prompts")) {
      prompts.push_back({text.get<std::string>(), encoder.text(text.get<std::string>())});
    }
    return prompts;
  }
  uint64_t number = 0;
  for_lines(*file, [&](std::string_view line) {
    const std::string where = fmt::format("{}, line {}", *file, ++number);
    if (line.empty()) return;
    if (!ends_with(*file, ".jsonl")) {
      prompts.push_back({std::string(line), encoder.text(std::string(line))});
    } else {
      prompts.push_back(prompt_of(parse_json(line, where), &encoder, where));
    }
    if (prompts.back().tokens.empty()) throw no_prompt(where).value("tokens", 0);
  });
  if (prompts.empty())
    throw Error("no prompt is there").file(*file).value("lines", number).way_out("write one on each line");
  return prompts;
}

}  // namespace nibble
