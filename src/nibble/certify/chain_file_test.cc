#include "nibble/certify/chain_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nibble/base/error.h"
#include "nibble/testing/temp_dir.h"

namespace nibble {
namespace {

using ::testing::HasSubstr;

std::vector<Chain> read(const std::string& text) {
  const testing::TempDir dir;
  write_atomically(dir.path() / "chains.jsonl", text);
  return read_chains(dir.path() / "chains.jsonl");
}

std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ChainFile, is_read_as_it_was_written) {
  const Chain first{.prompt = {1, 2}, .answer = {3, 4, 5}, .capped = true, .given = {1}, .cluster = 7};
  const Chain second{.prompt = {9}, .answer = {0}, .cluster = 1};
  const std::vector<Chain> chains = read(chain_line(first) + "\n" + chain_line(second));
  ASSERT_EQ(chains.size(), 2U);
  EXPECT_EQ(chains[0].prompt, first.prompt);
  EXPECT_EQ(chains[0].answer, first.answer);
  EXPECT_EQ(chains[0].given, first.given);
  EXPECT_TRUE(chains[0].capped);
  EXPECT_EQ(chains[0].cluster, 7U);
  EXPECT_FALSE(chains[1].capped);
  EXPECT_EQ(read_tokens(chains[0]), (std::vector<TokenId>{1, 2, 3, 4}));
  EXPECT_EQ(chosen_positions(chains[0]), (std::vector<uint64_t>{0, 2}));
}

TEST(ChainFile, lines_are_clusters_of_their_own_and_may_carry_more) {
  const std::vector<Chain> chains =
      read("{\"prompt\": [1], \"answer\": [2], \"text\": \"hello\"}\n\n{\"prompt\": [1], \"answer\": [2]}\n");
  ASSERT_EQ(chains.size(), 2U);
  EXPECT_EQ(chains[0].cluster, 0U);
  EXPECT_EQ(chains[1].cluster, 2U);  // the line's number: the empty one counts
}

TEST(ChainFile, refusals_name_line_and_numbers) {
  const std::string good = "{\"prompt\": [1], \"answer\": [2, 3]}\n";
  EXPECT_THAT(refusal(good + "{\"prompt\": [], \"answer\": [2]}"), HasSubstr("line 2, prompt_tokens 0"));
  EXPECT_THAT(refusal("{\"prompt\": [1]}"), HasSubstr("answer_tokens 0"));
  EXPECT_THAT(refusal("[1, 2]"), HasSubstr("a line is no chain"));
  EXPECT_THAT(refusal("{\"prompt\": [-1], \"answer\": [2]}"), HasSubstr("found -1"));
  EXPECT_THAT(refusal("{\"prompt\": [1], \"answer\": [4294967296]}"), HasSubstr("found 4294967296"));
  EXPECT_THAT(refusal("{\"prompt\": 1, \"answer\": [2]}"), HasSubstr("key prompt"));
  EXPECT_THAT(refusal("{\"prompt\": [1], \"answer\": [2, 3], \"given\": [2]}"), HasSubstr("position 2"));
  EXPECT_THAT(refusal("{\"prompt\": [1], \"answer\": [2, 3], \"given\": [1, 0]}"), HasSubstr("position 0"));
  EXPECT_THAT(refusal("{\"prompt\": [1], \"answer\": [2], \"given\": [0]}"), HasSubstr("no token that was chosen"));
  EXPECT_THAT(refusal("\n\n"), HasSubstr("no chain is there"));
  EXPECT_THAT(refusal("{\"prompt\": [1"), HasSubstr("line 1"));
}

}  // namespace
}  // namespace nibble
