// The ids of published tokenizers, compared with those of Hugging Face's library (tools/make_tokenization_goldens.py).
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "nibble/base/file.h"
#include "nibble/base/json.h"
#include "nibble/base/parallel.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/tokenizer/golden_texts_test.h"
#include "nibble/tokenizer/tokenizer.h"

namespace nibble {
namespace {

using testing::digest_of;
using testing::digest_of_ids;
using testing::golden_texts;
using testing::tokenization_golden;

const std::map<std::string, std::string> kFiles{{"deepseek_v3", "deepseek_v3.tokenizer.json"},
                                                {"gptoss", "gptoss.tokenizer.json"},
                                                {"qwen3", "qwen3.tokenizer.json"},
                                                {"smollm2", "smollm2.vocabulary.gguf"}};

class Published : public ::testing::TestWithParam<std::string> {
 protected:
  const Tokenizer& tokenizer() {
    static std::map<std::string, std::unique_ptr<Tokenizer>> loaded;
    auto& one = loaded[GetParam()];
    if (!one) one = load_tokenizer(testing::unpacked_tokenizer(kFiles.at(GetParam())));
    return *one;
  }
  Json golden() const { return tokenization_golden(GetParam() + ".json"); }
};

TEST_P(Published, HardTextsHaveTheLibrarysIds) {
  const Json expected = golden();
  const auto texts = golden_texts().hard;
  ASSERT_EQ(texts.size(), expected["hard"].size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto ids = tokenizer().encode(texts[i]);
    EXPECT_EQ(Json(ids), expected["hard"][i])
        << i << ": " << Json(texts[i].substr(0, 200)).dump(-1, ' ', true, Json::error_handler_t::replace);
    EXPECT_EQ(Json(digest_of(decode_tokens(tokenizer(), ids, true))), expected["decoded"][i]) << i;
  }
}

TEST_P(Published, RandomTextsHaveTheLibrarysIds) {
  const Json expected = golden();
  const auto texts = golden_texts().random;
  ASSERT_EQ(texts.size(), expected["random"].size());
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(Json(digest_of_ids(tokenizer().encode(texts[i]))), expected["random"][i]) << i << ": " << texts[i];
}

TEST_P(Published, ALongTextHasTheLibrarysIds) {
  const Json expected = golden()["long"];
  const auto ids = tokenizer().encode(read_text(testing::unpacked_tokenizer("tinyshakespeare.txt"), 2 << 20));
  EXPECT_EQ(ids.size(), expected["count"]);
  EXPECT_EQ(Json(digest_of_ids(ids)), expected["digest"]);
}

TEST_P(Published, TextThatMayHoldControlTokensHasThem) {
  const Json expected = golden();
  const auto texts = golden_texts().control;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto ids = tokenizer().encode_spans({{texts[i], true}});
    EXPECT_EQ(Json(ids), expected["control"][i]) << texts[i];
    EXPECT_EQ(Json(digest_of(decode_tokens(tokenizer(), ids))), expected["control_decoded"][i][0]) << texts[i];
    EXPECT_EQ(Json(digest_of(decode_tokens(tokenizer(), ids, true))), expected["control_decoded"][i][1]) << texts[i];
  }
}

TEST_P(Published, UserTextNeverBecomesAControlToken) {
  std::vector<std::string> texts = golden_texts().control;
  for (TokenId id = 0; id < tokenizer().size(); ++id) {
    if (tokenizer().is_control(id)) texts.emplace_back(tokenizer().bytes_of(id));
  }
  EXPECT_GT(texts.size(), golden_texts().control.size() + 10);
  for (const std::string& text : texts) {
    const auto ids = tokenizer().encode(text);
    for (const TokenId id : ids) EXPECT_FALSE(tokenizer().is_control(id)) << text << ": " << id;
    EXPECT_EQ(tokenizer().encode(decode_tokens(tokenizer(), ids)), ids) << text;
  }
}

// Wherever a text is cut into spans, its words are those of the whole.
TEST_P(Published, BoundariesOfSpansCutNoWord) {
  const std::string text = "Hello wörld, 12345 don't   stop\n\nnow 中文字 e\u0301";
  const auto whole = tokenizer().encode(text);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    if (cut < text.size() && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) continue;
    const TextSpan front{text.substr(0, cut), true};
    const TextSpan back{text.substr(cut), false};
    EXPECT_EQ(tokenizer().encode_spans({front, {"", true}, back}), whole) << cut;
  }
}

TEST_P(Published, SeveralThreadsMayEncodeAtOnce) {
  const auto& texts = golden_texts().random;
  const Tokenizer& shared = tokenizer();
  std::vector<std::vector<TokenId>> ids(400);
  parallel_for(ids.size(), 4, [&](uint64_t i) { ids[i] = shared.encode(texts[i]); });
  const Json expected = golden();
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(Json(digest_of_ids(ids[i])), expected["random"][i]) << i;
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, Published, ::testing::Values("deepseek_v3", "gptoss", "qwen3", "smollm2"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace nibble
