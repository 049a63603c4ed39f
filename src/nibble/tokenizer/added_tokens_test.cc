// What the goldens of small_test.cc cannot show: where control tokens may stand.
#include "nibble/tokenizer/added_tokens.h"

#include <gtest/gtest.h>

namespace nibble {
namespace {

AddedToken token(std::string name, TokenId id, bool special = true) {
  AddedToken made;
  made.control = is_control_name(name, special);
  made.name = std::move(name);
  made.id = id;
  made.special = special;
  return made;
}

// "a[7]b": text and ids.
std::string shown(const std::vector<TextPart>& parts) {
  std::string text;
  for (const TextPart& part : parts) text += part.id < 0 ? part.text.text : "[" + std::to_string(part.id) + "]";
  return text;
}

struct Names {
  std::vector<AddedToken> tokens{token("<end>", 1), token("<think>", 2, false), token("word", 3, false), token("<", 4),
                                 token("<end>!", 5)};
  AddedTokenFinder finder{{&tokens[0], &tokens[1], &tokens[2], &tokens[3], &tokens[4]}, {}};

  std::string cut(const std::vector<TextSpan>& spans) const { return shown(finder.cut(marked_text(spans))); }
};

TEST(AddedTokens, WhichAreControlTokens) {
  EXPECT_TRUE(is_control_name("<s>", true));
  EXPECT_TRUE(is_control_name("word", true));
  EXPECT_TRUE(is_control_name("<think>", false));
  EXPECT_TRUE(is_control_name("[INST]", false));
  EXPECT_TRUE(is_control_name("<｜User｜>", false));
  EXPECT_FALSE(is_control_name("word", false));
  EXPECT_FALSE(is_control_name("  \n", false));
  EXPECT_FALSE(is_control_name("12é中", false));
  EXPECT_FALSE(is_control_name("!", true));
}

TEST(AddedTokens, ControlTokensStandOnlyWhereTheyMay) {
  const Names names;
  EXPECT_EQ(names.cut({{"a<end>b<think>word", true}}), "a[1]b[2][3]");
  // One character is text, whoever wrote it; so is a word.
  EXPECT_EQ(names.cut({{"a<end>b<think>word", false}}), "a[4]end>b[4]think>[3]");
  EXPECT_EQ(names.cut({{"<end>", true}, {"<end>", false}, {"<end>", true}}), "[1][4]end>[1]");
}

TEST(AddedTokens, NoneArisesFromTwoSpans) {
  const Names names;
  for (const bool front : {false, true}) {
    for (const bool back : {false, true}) {
      for (size_t cut = 1; cut < 5; ++cut) {
        const std::string text = "<end>";
        EXPECT_EQ(names.cut({{text.substr(0, cut), front}, {text.substr(cut), back}}), "[4]end>") << cut;
      }
    }
  }
  // Words may.
  EXPECT_EQ(names.cut({{"wo", true}, {"rd", false}}), "[3]");
}

TEST(AddedTokens, ALongerTokenThatWouldLeaveTheSpanGivesWay) {
  const Names names;
  EXPECT_EQ(names.cut({{"<end>!", true}}), "[5]");
  EXPECT_EQ(names.cut({{"<end>", true}, {"!", false}}), "[1]!");
}

TEST(AddedTokens, BrokenTextIsReplacedSpanBySpan) {
  const MarkedText marked = marked_text({{"a\xC3", true},
                                         {"\xA9"
                                          "b",
                                          false},
                                         {"", true}});
  EXPECT_EQ(marked.text, "a\uFFFD\uFFFDb");
  ASSERT_EQ(marked.trusted.size(), 1u);
  EXPECT_EQ(marked.trusted[0].end, 4u);
}

}  // namespace
}  // namespace nibble
