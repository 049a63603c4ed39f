// A conversation from a file, and the chat template of a model.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nibble/base/file.h"
#include "nibble/chat/chat_template.h"

namespace nibble {

// The variables of a template: `messages`, `tools`, `documents` (null where there are none), `add_generation_prompt`
// (true unless the file says otherwise), and whatever else the file has. The file holds an array of messages, or an
// object with them. Messages are given to the template as they are. Throws Error naming the file, the message and what
// is wrong with it.
nlohmann::ordered_json read_conversation(const Path& path);
nlohmann::ordered_json parse_conversation(std::string_view text, const std::string& source_name);

struct ModelTemplate {
  std::string source;
  std::string name;  // of the file that it stands in
  // bos_token, eos_token, pad_token: those that the model has.
  std::vector<std::pair<std::string, std::string>> tokens;
};

// Of a checkpoint folder: `chat_template.jinja`, else `chat_template` in `tokenizer_config.json`, else of its GGUF
// file; or of a `.gguf` file. Where there are several, the one for tools if there are tools, else the default one.
// Throws Error with a way out where there is none.
ModelTemplate find_chat_template(const Path& model, bool with_tools);

// The prompt. The model's own tokens are the template's, whatever the conversation says of them, and so are the roles
// if each is one of those that models know: templates put control tokens together with them ("<|" ~ role ~ "|>").
// Everything else is the user's.
std::vector<TextSpan> render_conversation(const ChatTemplate& chat_template, const ModelTemplate& model,
                                          const nlohmann::ordered_json& conversation, const ChatClock& clock);

}  // namespace nibble
