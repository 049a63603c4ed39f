#include "nibble/chat/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/base/json.h"

namespace nibble {
namespace {

constexpr uint64_t kLongestConversation = 64ULL << 20;
constexpr std::array<std::string_view, 10> kRoles = {"system", "developer",   "user",    "assistant", "tool",
                                                     "model",  "observation", "ipython", "function",  "tool_results"};

class ConversationChecker {
 public:
  explicit ConversationChecker(const std::string& name) : name_(name) {}

  void check(const Json& conversation) const {
    const Json* messages = json_member(conversation, "messages");
    if (messages == nullptr || !messages->is_array()) {
      throw Error("the conversation has no list of messages")
          .file(name_)
          .way_out(R"(write [{"role": "user", "content": "…"}], or an object with "messages")");
    }
    for (size_t i = 0; i < messages->size(); ++i) check_message((*messages)[i], i);
    check_list(conversation, "tools");
    check_list(conversation, "documents");
  }

 private:
  [[noreturn]] void refuse(const std::string& what, size_t message, const std::string& way_out) const {
    throw Error(what).file(name_).value("message", message).way_out(way_out);
  }

  void check_message(const Json& message, size_t i) const {
    if (!message.is_object()) refuse("a message is no object", i, "give it a \"role\" and a \"content\"");
    const Json* role = json_member(message, "role");
    if (role == nullptr || !role->is_string() || role->get_ref<const std::string&>().empty()) {
      refuse("a message has no role", i, R"(give it a "role": "system", "user", "assistant" or "tool")");
    }
    const Json* content = json_member(message, "content");
    if (content != nullptr && !content->is_string() && !content->is_array() && !content->is_object()) {
      refuse(fmt::format("the content of a message is a {}", content->type_name()), i,
             "give it a text, or a list of parts");
    }
    const Json* calls = json_member(message, "tool_calls");
    if (calls == nullptr) return;
    const auto is_object = [](const Json& each) { return each.is_object(); };
    if (!calls->is_array() || !std::ranges::all_of(*calls, is_object)) {
      refuse("\"tool_calls\" of a message is no list of objects", i,
             R"(write [{"type": "function", "function": {"name": "…", "arguments": {…}}}])");
    }
  }

  void check_list(const Json& conversation, const char* key) const {
    const Json* list = json_member(conversation, key);
    if (list == nullptr) return;
    const auto is_object = [](const Json& each) { return each.is_object(); };
    if (!list->is_array() || !std::ranges::all_of(*list, is_object)) {
      throw Error(fmt::format("\"{}\" is no list of objects", key))
          .file(name_)
          .way_out(fmt::format("make \"{}\" a list of objects, or leave it out", key));
    }
  }

  const std::string& name_;
};

bool has_known_roles(const Json& conversation) {
  const Json* messages = json_member(conversation, "messages");
  return messages != nullptr && std::ranges::all_of(*messages, [](const Json& message) {
           const Json* role = json_member(message, "role");
           return role != nullptr && role->is_string() &&
                  std::ranges::find(kRoles, role->get_ref<const std::string&>()) != kRoles.end();
         });
}

}  // namespace

Json parse_conversation(std::string_view text, const std::string& source_name) {
  Json given = parse_json(text, source_name);
  Json conversation = Json::object();
  if (given.is_array()) {
    conversation["messages"] = std::move(given);
  } else if (given.is_object()) {
    conversation = std::move(given);
  }
  ConversationChecker(source_name).check(conversation);
  // As transformers has them: there, and null.
  for (const char* key : {"tools", "documents"}) {
    if (!conversation.contains(key)) conversation[key] = nullptr;
  }
  if (!conversation.contains("add_generation_prompt")) conversation["add_generation_prompt"] = true;
  return conversation;
}

Json read_conversation(const Path& path) {
  return parse_conversation(read_text(path, kLongestConversation), path.string());
}

std::vector<TextSpan> render_conversation(const ChatTemplate& chat_template, const ModelTemplate& model,
                                          const Json& conversation, const ChatClock& clock) {
  Json variables = conversation;
  std::vector<std::string> trusted;
  for (const auto& [name, token] : model.tokens) {
    variables[name] = token;
    trusted.push_back(name);
  }
  if (has_known_roles(conversation)) trusted.emplace_back("messages[].role");
  return chat_template.render(variables, trusted, clock);
}

}  // namespace nibble
