#include "nibble/chat/chat_template.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/chat/interpreter.h"
#include "nibble/chat/parser.h"
#include "nibble/chat/scopes.h"
#include "nibble/chat/unicode.h"
#include "nibble/chat/variables.h"

namespace nibble {

struct ChatTemplate::Program {
  ChatLimits limits;
  jinja::Template parsed;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Program> program) : program_(std::move(program)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

ChatTemplate ChatTemplate::parse(std::string_view source, const std::string& name, const ChatLimits& limits) {
  if (source.size() > limits.source_bytes) {
    throw Error("the chat template is too long")
        .file(name)
        .value("bytes", source.size())
        .value("limit", limits.source_bytes)
        .way_out("check that this file is a chat template");
  }
  if (!jinja::is_valid_utf8(source)) {
    throw Error("the chat template is not UTF-8").file(name).way_out("convert the file to UTF-8");
  }
  auto program = std::make_unique<Program>();
  program->limits = limits;
  program->parsed = jinja::parse_template(source, name, limits);
  jinja::resolve_names(program->parsed);
  return ChatTemplate(std::move(program));
}

std::vector<TextSpan> ChatTemplate::render(const nlohmann::ordered_json& variables,
                                           const std::vector<std::string>& trusted, const ChatClock& clock) const {
  jinja::Interpreter interpreter(program_->parsed, program_->limits, clock);
  jinja::set_variables(interpreter, variables, trusted);
  const jinja::TextPtr text = interpreter.render();
  std::vector<TextSpan> spans;
  bool is_trusted = text->marks().first_trusted;
  size_t begin = 0;
  const auto add = [&](size_t end) {
    if (end > begin) spans.push_back({text->bytes().substr(begin, end - begin), is_trusted});
    begin = end;
    is_trusted = !is_trusted;
  };
  for (const size_t flip : text->marks().flips) add(flip);
  add(text->size());
  return spans;
}

}  // namespace nibble
