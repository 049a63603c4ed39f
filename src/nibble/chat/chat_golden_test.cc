// Everything that jinja2 rendered in tests/golden/chat: small snippets, and whole templates over whole conversations.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/base/file.h"
#include "nibble/base/json.h"
#include "nibble/chat/chat_template.h"

namespace nibble {
namespace {

const Path kGoldens = Path(NIBBLE_SOURCE_DIR) / "tests/golden/chat";

std::string joined(const std::vector<TextSpan>& spans) {
  std::string text;
  for (const TextSpan& span : spans) text += span.text;
  return text;
}

// What came out, or "error: …"; `expected` null: an error.
std::string rendered(const std::string& source, const Json& variables, int64_t clock, bool* failed) {
  try {
    const auto spans = ChatTemplate::parse(source, "template").render(variables, {"bos_token"}, {clock});
    for (size_t i = 1; i < spans.size(); ++i) {
      EXPECT_NE(spans[i].may_hold_control_tokens, spans[i - 1].may_hold_control_tokens);
    }
    for (const TextSpan& span : spans) EXPECT_FALSE(span.text.empty());
    return joined(spans);
  } catch (const Error& error) {
    *failed = true;
    EXPECT_EQ(error.file(), "template");
    EXPECT_FALSE(error.ways_out().empty());
    return error.what();
  }
}

void check(const Json& made, const std::string& what, const std::string& source, const Json& variables, int64_t clock) {
  bool failed = false;
  const std::string text = rendered(source, variables, clock, &failed);
  if (!made.contains("output")) {
    EXPECT_TRUE(failed) << what << "\nshould fail, but gives: " << text;
  } else {
    EXPECT_FALSE(failed) << what << "\nfails: " << text;
    if (!failed) {
      EXPECT_EQ(text, made["output"].get<std::string>()) << what;
    }
  }
}

void check_snippets(const Path& path) {
  const Json goldens = read_json(path);
  for (const Json& made : goldens["cases"]) {
    const std::string source = made["template"].get<std::string>();
    check(made, made["name"].get<std::string>() + ": " + source, source, goldens["variables"],
          goldens["clock"].get<int64_t>());
  }
}

TEST(ChatGolden, Snippets) { check_snippets(kGoldens / "snippets.json"); }
TEST(ChatGolden, RandomTemplates) { check_snippets(kGoldens / "random.json"); }

TEST(ChatGolden, TemplatesOverConversations) {
  const Json goldens = read_json(kGoldens / "templates.json");
  for (const Json& made : goldens["cases"]) {
    const std::string name = made["template"].get<std::string>();
    Json variables = goldens["settings"][made["setting"].get<std::string>()];
    variables["messages"] = goldens["conversations"][made["conversation"].get<std::string>()];
    check(made, name + ", " + made["conversation"].get<std::string>() + ", " + made["setting"].get<std::string>(),
          read_text(kGoldens / "templates" / (name + ".jinja"), 1 << 20), variables, goldens["clock"].get<int64_t>());
  }
}

}  // namespace
}  // namespace nibble
