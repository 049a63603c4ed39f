// Small tokenizers, each with one setting of its own, compared with Hugging Face's library
// (tools/make_tokenization_goldens.py); and a release in tiktoken's form, compared with the definition.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nibble/testing/temp_dir.h"
#include "nibble/tokenizer/golden_texts_test.h"
#include "nibble/tokenizer/tokenizer_json.h"

namespace nibble {
namespace {

using testing::digest_of_ids;
using testing::golden_texts;
using testing::tokenization_golden;

Json changed(Json base, const Json& changes) {
  for (const auto& [key, value] : changes.items()) {
    if (key == "model") {
      for (const auto& [setting, to] : value.items()) base["model"][setting] = to;
    } else {
      base[key] = value;
    }
  }
  return base;
}

std::vector<TokenId> framed(const Tokenizer& tokenizer, std::vector<TokenId> ids) {
  ids.insert(ids.begin(), tokenizer.prefix().begin(), tokenizer.prefix().end());
  ids.insert(ids.end(), tokenizer.suffix().begin(), tokenizer.suffix().end());
  return ids;
}

TEST(SmallTokenizers, HaveTheLibrarysIds) {
  const Json golden = tokenization_golden("small.json");
  EXPECT_GT(golden["cases"].size(), 50u);
  for (const Json& one : golden["cases"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    const auto tokenizer =
        tokenizer_from_json({"tokenizer.json", json_text(changed(golden["base"], one["changes"]))}, {});
    for (const Json& row : one["texts"]) {
      const auto ids = tokenizer->encode_spans({{row["text"].get<std::string>(), true}});
      EXPECT_EQ(Json(ids), row["ids"]) << row["text"];
      EXPECT_EQ(Json(framed(*tokenizer, ids)), row["framed"]) << row["text"];
      if (!row.contains("decoded")) continue;
      EXPECT_EQ(Json(decode_tokens(*tokenizer, ids)), row["decoded"]) << row["text"];
      EXPECT_EQ(Json(decode_tokens(*tokenizer, ids, true)), row["shown"]) << row["text"];
    }
  }
}

TEST(Tiktoken, HasTheIdsOfTheDefinition) {
  const auto tokenizer = load_tokenizer(testing::golden_dir() / "tokenization/kimi");
  const Json golden = tokenization_golden("kimi/ids.json");
  ASSERT_GT(golden["texts"].size(), 80u);
  for (size_t i = 0; i < golden["texts"].size(); ++i)
    EXPECT_EQ(Json(tokenizer->encode(golden["texts"][i].get<std::string>())), golden["ids"][i]) << golden["texts"][i];
  const auto& random = golden_texts().random;
  ASSERT_EQ(random.size(), golden["random"].size());
  for (size_t i = 0; i < random.size(); ++i)
    EXPECT_EQ(Json(digest_of_ids(tokenizer->encode(random[i]))), golden["random"][i]) << i << ": " << random[i];
}

TEST(Tiktoken, NamesControlTokensAndReservesTheRest) {
  const auto tokenizer = load_tokenizer(testing::golden_dir() / "tokenization/kimi");
  EXPECT_EQ(tokenizer->size(), 3256);
  EXPECT_EQ(tokenizer->find_added("[BOS]"), 3000);
  EXPECT_EQ(tokenizer->find_added("<|reserved_token_3004|>"), 3004);
  EXPECT_EQ(tokenizer->find_added("[PAD]"), 3255);
  EXPECT_TRUE(tokenizer->is_control(3010));
  EXPECT_EQ(tokenizer->encode_spans({{"<|im_end|>", true}}), std::vector<TokenId>{3002});
  EXPECT_GT(tokenizer->encode("<|im_end|>").size(), 1u);
}

}  // namespace
}  // namespace nibble
