#include "nibble/chat/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nibble/base/error.h"

namespace nibble {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;

// "[…]" around what may hold control tokens.
std::string marked(const std::string& source, const Json& variables, const std::vector<std::string>& trusted = {}) {
  std::string out;
  for (const TextSpan& span : ChatTemplate::parse(source, "t").render(variables, trusted)) {
    out += span.may_hold_control_tokens ? "[" + span.text + "]" : span.text;
  }
  return out;
}

std::string failure(const std::string& source, const ChatLimits& limits = {}, const Json& variables = Json::object()) {
  try {
    ChatTemplate::parse(source, "file.jinja", limits).render(variables);
  } catch (const Error& error) {
    EXPECT_EQ(error.file(), "file.jinja");
    return error.what();
  }
  return "";
}

TEST(ChatProvenance, LiteralsAreTheTemplatesAndVariablesTheUsers) {
  const Json user = {{"u", "user"}, {"l", {"a", "b"}}, {"d", {{"k", "v"}}}, {"bos", "<s>"}};
  EXPECT_EQ(marked("<x>{{ u }}</x>", user), "[<x>]user[</x>]");
  EXPECT_EQ(marked("{{ '<' + u + '>' ~ u }}", user), "[<]user[>]user");
  EXPECT_EQ(marked("{{ bos }}{{ u }}", user, {"bos"}), "[<s>]user");
  EXPECT_EQ(marked("{{ l | join('|') }}", user), "a[|]b");
  EXPECT_EQ(marked("{{ '|'.join(l) }}{{ u.replace('s', '<S>') }}", user), "a[|]bu[<S>]er");
  EXPECT_EQ(marked("{{ 'a-b'.replace('-', u) }}", user), "[a]user[b]");
  EXPECT_EQ(marked("{{ ('<' ~ u ~ '>')[0:3] }}{{ ('<' ~ u)[::-1] }}", user), "[<]usresu[<]");
  EXPECT_EQ(marked("{{ (u ~ '<a>') | upper }}{{ ('x' ~ u) | title | trim }}", user), "USER[<A>X]user");
  EXPECT_EQ(marked("{{ ('é' ~ u ~ 'ß') | upper }}", user), "[É]USER[SS]");
  EXPECT_EQ(marked("{{ d | tojson }}{{ {'<a>': u} | tojson }}", user), R"({"k": "v"}{"[<a>]": "user"})");
  EXPECT_EQ(marked("{{ '%s!' % u }}{{ '{}?'.format(u) }}", user), "user[!]user[?]");
  EXPECT_EQ(marked("{{ '{}'.format('<a>') }}", user), "[<a>]");
  EXPECT_EQ(marked("{{ (' ' ~ u ~ '<a> <b>').split() | join(u) }}", user), "user[<a>]user[<b>]");
  EXPECT_EQ(marked("{% set x %}<a>{{ u }}{% endset %}{{ x * 2 }}", user), "[<a>]user[<a>]user");
  EXPECT_EQ(marked("{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(u) }}{{ m('a') }}", user), "[<]user[><a>]");
  EXPECT_EQ(marked("{{ [u, '<a>'] }}", user), "['user', '[<a>]']");
  EXPECT_EQ(marked("{{ ('<a>\n' ~ u) | indent(2, true) }}", user), "[  <a>\n  ]user");
}

TEST(ChatProvenance, TextThatIsMadeIsNotTheTemplates) {
  EXPECT_EQ(marked("{{ 1 }}{{ none }}{{ 1.5 ~ true }}", Json::object()), "1None1.5True");
  EXPECT_EQ(marked("{{ strftime_now('%Y') }}", Json::object()), "1970");
}

TEST(ChatProvenance, PartsOfAVariableCanBeTrusted) {
  const Json user = {{"messages", {{{"role", "user"}, {"content", "<a>"}}}}};
  EXPECT_EQ(marked("{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}", user, {"messages[].role"}),
            "[<|user|>]<a>");
}

TEST(ChatErrors, NameThePlace) {
  EXPECT_THAT(failure("a\n  {{ x.y }}"), HasSubstr("'x' is undefined (file file.jinja, line 2, column 7)"));
  EXPECT_THAT(failure("{{ 'é' ~ (1 + ) }}"),
              HasSubstr("expected an expression, found ')' (file file.jinja, line 1, column 15)"));
  EXPECT_THAT(failure("\r\n{{ raise_exception('no ' ~ 1) }}"), HasSubstr("no 1 (file file.jinja, line 2, column 19)"));
  EXPECT_THAT(failure("{% include 'x' %}"),
              HasSubstr("the tag 'include' is not supported (file file.jinja, line 1, column 4)"));
  EXPECT_THAT(failure("{% if no %}{{ x | urlize }}{% endif %}"), HasSubstr("the filter 'urlize' is not supported"));
  EXPECT_THAT(failure("{{ x is nope }}"), HasSubstr("the test 'nope' is not supported"));
  EXPECT_THAT(failure("{{ [].append(1) }}"), HasSubstr("access to attribute 'append' of 'list' object is unsafe"));
  EXPECT_THAT(failure("\xff"), HasSubstr("not UTF-8"));
}

TEST(ChatErrors, KeepTheTemplatesOwnWords) {
  try {
    ChatTemplate::parse("{{ raise_exception('Roles must alternate') }}", "t").render(Json::object());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "Roles must alternate");
    EXPECT_FALSE(error.ways_out().empty());
  }
}

TEST(ChatLimits, EndWhateverGrows) {
  ChatLimits limits;
  limits.steps = 200'000;
  limits.output_bytes = 1 << 20;
  limits.memory_bytes = 16 << 20;
  for (const char* source : {
           "{{ 'x' * 10 ** 9 }}",
           "{{ 'x' * 10 ** 30 }}",
           "{{ range(10 ** 12) | list }}",
           "{{ [0] * 10 ** 9 }}",
           "{{ [[]] * 10 ** 12 }}",
           "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
           "{% macro m(x) %}{{ m(x ~ x) }}{% endmacro %}{{ m('ab') }}",
           "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
           "{% set ns = namespace(s='x') %}{% for i in range(99999) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
           "{% set ns = namespace(l=[]) %}{% for i in range(99999) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}",
           "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
           "{% set n = namespace(g=[1]) %}{%for i in range(999)%}{%set n.g = n.g|map('d')%}{%endfor%}{{n.g|list}}",
           "{% set ns = namespace(c=1) %}{% for i in range(99999) %}{% set ns.c = cycler(ns.c) %}{% endfor %}",
           "{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}",
           "{{ '%999999999d' % 1 }}",
           "{{ '{:999999999}'.format(1) }}",
           "{{ 'a'.center(10 ** 9) }}",
           "{{ 'ab'.replace('', 'x' * 10 ** 6) | length }}{{ ('a' * 10 ** 5).replace('a', 'x' * 100) }}",
           "{{ ([('x' * 10 ** 5)] * 1000) | join }}",
           "{{ [1] | batch(10 ** 9, 0) | list }}",
           "{{ 'x' | indent(10 ** 10) }}",
           "{{ {'a': 1} | tojson(indent=10 ** 10) }}",
           "{{ 10 ** 40 }}",
           "{% set a = 'a' * 10 ** 5 %}{% for i in range(99999) %}{{ (a ~ 'b') in a * 10 }}{% endfor %}",
       }) {
    EXPECT_NE(failure(source, limits), "") << source;
  }
}

TEST(ChatLimits, NestingEnds) {
  const auto repeated = [](const std::string& text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
  };
  for (const std::string& source :
       {"{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}", "{{ " + repeated("not ", 5000) + "1 }}",
        "{{ " + repeated("-", 5000) + "1 }}", "{{ 1" + repeated(" + 1", 5000) + " }}",
        "{{ x" + repeated(".a", 5000) + " }}", "{{ x" + repeated("|d", 5000) + " }}",
        "{{ " + repeated("1 if 1 else ", 5000) + "1 }}", repeated("{% if 1 %}", 5000) + repeated("{% endif %}", 5000),
        "{% set " + repeated("(", 5000) + "a" + repeated(",)", 5000) + " = 1 %}",
        "{{ " + repeated("[", 5000) + repeated("]", 5000) + " }}"}) {
    const std::string what = failure(source);
    EXPECT_THAT(what, HasSubstr("nests too deeply")) << source.substr(0, 40);
  }
}

TEST(ChatLimits, SourceIsShort) {
  ChatLimits limits;
  limits.source_bytes = 10;
  EXPECT_THAT(failure("01234567890", limits), HasSubstr("too long (file file.jinja, bytes 11, limit 10)"));
}

TEST(ChatTemplate, RendersAgainAndAgain) {
  const ChatTemplate made = ChatTemplate::parse("{{ x }}{% set x = 5 %}{{ x }}", "t");
  for (int i = 0; i < 3; ++i) {
    const auto spans = made.render({{"x", i}});
    ASSERT_EQ(spans.size(), 1u);
    EXPECT_EQ(spans[0].text, std::to_string(i) + "5");
  }
  EXPECT_TRUE(ChatTemplate::parse("", "t").render(Json::object()).empty());
}

}  // namespace
}  // namespace nibble
