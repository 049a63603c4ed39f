#include "nibble/tokenizer/bpe.h"

#include <gtest/gtest.h>

#include <map>

#include "nibble/base/rng.h"

namespace nibble {
namespace {

// Bytes a to h are ids 0 to 7; merges make the ids from 8 on.
BpeModel letters() {
  BpeModel model;
  model.byte_ids.fill(-1);
  for (TokenId i = 0; i < 8; ++i) model.byte_ids[size_t{'a'} + static_cast<size_t>(i)] = i;
  return model;
}

std::vector<TokenId> encode(const BpeEncoder& encoder, std::string_view word) {
  BpeEncoder::Workspace workspace;
  std::vector<TokenId> ids;
  encoder.append_word(word, &workspace, &ids);
  return ids;
}

// The definition, one merge at a time over the whole word.
std::vector<TokenId> merged_slowly(std::vector<TokenId> ids, const std::vector<BpeMerge>& merges) {
  std::map<std::pair<TokenId, TokenId>, size_t> ranks;
  for (size_t i = 0; i < merges.size(); ++i) ranks[{merges[i].left, merges[i].right}] = i;
  while (true) {
    size_t best = merges.size();
    size_t at = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = ranks.find({ids[i], ids[i + 1]});
      if (found == ranks.end() || found->second >= best) continue;
      best = found->second;
      at = i;
    }
    if (best == merges.size()) return ids;
    ids[at] = merges[best].made;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST(Bpe, IsTheDefinitionOnRandomVocabularies) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<BpeMerge> merges;
    merges.reserve(40);
    uint64_t at = 0;
    const auto random = [&](uint64_t below) { return static_cast<TokenId>(random_bits(seed, at++) % below); };
    // Ids may be made by several pairs, as in files that came from tiktoken's.
    for (TokenId i = 0; i < 40; ++i) merges.push_back({random(8 + static_cast<uint64_t>(i)), random(8), 8 + i / 2});
    const BpeEncoder encoder(letters(), merges);
    for (int word = 0; word < 20; ++word) {
      std::string text;
      std::vector<TokenId> symbols;
      for (TokenId i = random(30); i >= 0; --i) {
        symbols.push_back(random(8));
        text += static_cast<char>('a' + symbols.back());
      }
      EXPECT_EQ(encode(encoder, text), merged_slowly(symbols, merges)) << seed << " " << text;
    }
  }
}

TEST(Bpe, TakesALongWordInOrderlyTime) {
  std::vector<BpeMerge> merges{{0, 0, 8}};
  for (TokenId id = 8; id < 20; ++id) merges.push_back({id, id, id + 1});
  const BpeEncoder encoder(letters(), merges);
  const auto ids = encode(encoder, std::string(1 << 20, 'a'));  // in quadratic time this would take hours
  EXPECT_EQ(ids, std::vector<TokenId>((1 << 20) >> 13, 20));
}

TEST(Bpe, TakesWholeWordsWithoutMerging) {
  BpeModel model = letters();
  model.whole_words = {{"abc", 30}};
  const BpeEncoder encoder(std::move(model), {{0, 1, 8}});
  EXPECT_EQ(encode(encoder, "abc"), (std::vector<TokenId>{30}));
  EXPECT_EQ(encode(encoder, "abcd"), (std::vector<TokenId>{8, 2, 3}));
  EXPECT_EQ(encode(encoder, ""), (std::vector<TokenId>{}));
}

}  // namespace
}  // namespace nibble
