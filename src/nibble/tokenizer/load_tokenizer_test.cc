// Refusals: of what is not there, of kinds that are not read, of damaged files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/thrown_error.h"
#include "nibble/tokenizer/golden_texts_test.h"
#include "nibble/tokenizer/tokenizer_json.h"

namespace nibble {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;
using testing::thrown_error;
using testing::tokenization_golden;
using testing::value_of;

Json base() {
  static const Json json = tokenization_golden("small.json")["base"];
  return json;
}

Error refusal(const std::function<void(Json*)>& change) {
  Json json = base();
  change(&json);
  const Error error = thrown_error([&] { tokenizer_from_json({"t.json", json_text(json)}, {}); });
  EXPECT_EQ(error.file(), "t.json") << error.what();
  EXPECT_FALSE(error.ways_out().empty()) << error.what();
  return error;
}

Json added(uint64_t id, const std::string& name) { return {{"id", id}, {"content", name}, {"special", true}}; }

TEST(LoadTokenizer, NamesKindsThatItDoesNotRead) {
  const auto kind = [](const std::function<void(Json*)>& change) { return value_of(refusal(change), "kind"); };
  for (const char* type : {"WordPiece", "Unigram", "WordLevel"})
    EXPECT_EQ(kind([&](Json* json) { (*json)["model"]["type"] = type; }), type);
  EXPECT_THAT(kind([](Json* json) { (*json)["model"]["byte_fallback"] = true; }), HasSubstr("SentencePiece"));
  EXPECT_THAT(kind([](Json* json) { (*json)["model"]["end_of_word_suffix"] = "</w>"; }), HasSubstr("end_of_word"));
  EXPECT_THAT(kind([](Json* json) { (*json)["model"]["dropout"] = 0.1; }), HasSubstr("dropout"));
  EXPECT_EQ(kind([](Json* json) { (*json)["normalizer"] = {{"type", "Lowercase"}}; }), "Lowercase");
  EXPECT_EQ(kind([](Json* json) { (*json)["pre_tokenizer"] = {{"type", "Metaspace"}}; }), "Metaspace");
  EXPECT_EQ(kind([](Json* json) { (*json)["pre_tokenizer"] = nullptr; }), "none");
  EXPECT_EQ(kind([](Json* json) { (*json)["decoder"] = {{"type", "WordPiece"}}; }), "WordPiece");
  EXPECT_EQ(kind([](Json* json) { (*json)["post_processor"] = {{"type", "Other"}}; }), "Other");
}

TEST(LoadTokenizer, RefusesDamagedVocabularies) {
  const auto row = [](const std::function<void(Json*)>& change) { return value_of(refusal(change), "row"); };
  EXPECT_EQ(row([](Json* json) { (*json)["model"]["vocab"]["new"] = 3; }), "new");
  EXPECT_EQ(row([](Json* json) { (*json)["model"]["vocab"]["new"] = -1; }), "new");
  EXPECT_EQ(row([](Json* json) { (*json)["model"]["vocab"]["new"] = 2.5; }), "new");
  EXPECT_EQ(row([](Json* json) { (*json)["model"]["vocab"]["new"] = uint64_t{1} << 40; }), "new");
  EXPECT_EQ(row([](Json* json) { (*json)["model"]["vocab"][std::string(5000, 'x')] = 900; }), std::string(80, 'x'));
  EXPECT_EQ(row([](Json* json) { (*json)["model"]["merges"].push_back({"nothere", "a"}); }), "nothere");
  EXPECT_EQ(row([](Json* json) { (*json)["model"]["merges"].push_back({"q", "q"}); }), "qq");
  EXPECT_EQ(row([](Json* json) { (*json)["model"]["merges"].push_back({"q", "a", "b"}); }), "q");
  EXPECT_EQ(row([](Json* json) { (*json)["model"]["merges"].push_back("q a b"); }), "q a b");
  EXPECT_THAT(refusal([](Json* json) { (*json)["model"]["vocab"] = Json::object(); }).message(), HasSubstr("empty"));
  EXPECT_THAT(refusal([](Json* json) { json->erase("model"); }).message(), HasSubstr("model"));
}

TEST(LoadTokenizer, RefusesDamagedAddedTokens) {
  const auto end = base()["model"]["vocab"].size();
  const auto with = [](const std::vector<Json>& tokens) {
    return refusal([&](Json* json) { (*json)["added_tokens"] = tokens; });
  };
  EXPECT_EQ(value_of(with({added(end + 1, "<s>")}), "expected"), std::to_string(end));
  EXPECT_EQ(value_of(with({added(3, "<s>")}), "id"), "3");
  EXPECT_EQ(value_of(with({added(end, "<s>"), added(end, "<t>")}), "expected"), std::to_string(end + 1));
  EXPECT_EQ(value_of(with({added(end, "<s>"), added(end + 1, "<s>")}), "row"), "<s>");
  EXPECT_EQ(value_of(with({added(end, "")}), "bytes"), "0");
  EXPECT_EQ(value_of(with({added(end, std::string(2000, 'x'))}), "limit"), "1024");
  EXPECT_EQ(value_of(with({added(uint64_t{1} << 33, "<s>")}), "limit"), "4194304");
}

TEST(LoadTokenizer, RefusesDamagedFrames) {
  EXPECT_EQ(value_of(refusal([](Json* json) {
                       (*json)["post_processor"] = {
                           {"type", "BertProcessing"}, {"sep", {"x", 1}}, {"cls", {"y", 9999}}};
                     }),
                     "id"),
            "9999");
  const Json text{{"Sequence", {{"id", "A"}}}};
  EXPECT_THAT(refusal([&](Json* json) {
                (*json)["post_processor"] = {{"type", "TemplateProcessing"}, {"single", {text, text}}};
              }).message(),
              HasSubstr("twice"));
}

TEST(LoadTokenizer, TheConfigurationSaysWhatStandsAroundAPrompt) {
  Json json = base();
  const auto end = static_cast<TokenId>(json["model"]["vocab"].size());
  json["added_tokens"] = {added(static_cast<uint64_t>(end), "<s>"), added(static_cast<uint64_t>(end) + 1, "</s>")};
  const auto load = [&](const Json& config) {
    return tokenizer_from_json({"t.json", json_text(json)}, {"c.json", json_text(config)});
  };
  const Json bos{{"content", "<s>"}, {"lstrip", false}};
  EXPECT_EQ(load({{"add_bos_token", true}, {"bos_token", bos}})->prefix(), std::vector<TokenId>{end});
  EXPECT_EQ(load({{"add_eos_token", true}, {"eos_token", "</s>"}})->suffix(), std::vector<TokenId>{end + 1});
  EXPECT_TRUE(load({{"add_bos_token", false}, {"bos_token", bos}})->prefix().empty());
  EXPECT_TRUE(load({{"bos_token", bos}})->prefix().empty());
  EXPECT_TRUE(load({{"add_bos_token", true}, {"bos_token", nullptr}})->prefix().empty());
  const Error error = thrown_error([&] { load({{"add_bos_token", true}, {"bos_token", "<other>"}}); });
  EXPECT_EQ(error.file(), "c.json");
  EXPECT_EQ(value_of(error, "token"), "<other>");
}

TEST(LoadTokenizer, AControlTokenInTheVocabularyIsMadeByNoMerge) {
  Json json = base();
  const auto id = json["model"]["vocab"]["hello"].get<uint64_t>();
  json["added_tokens"] = Json::array({added(id, "hello")});
  for (const bool whole : {false, true}) {
    json["model"]["ignore_merges"] = whole;
    const auto tokenizer = tokenizer_from_json({"t.json", json_text(json)}, {});
    EXPECT_EQ(tokenizer->encode_spans({{"hello", true}}), std::vector<TokenId>{static_cast<TokenId>(id)});
    EXPECT_EQ(decode_tokens(*tokenizer, tokenizer->encode("hello")), "hello");
    EXPECT_EQ(tokenizer->encode("hello").size(), 2u);
  }
}

TEST(LoadTokenizer, RefusesWhereThereIsNone) {
  const TempDir folder;
  const auto error = [&] { return thrown_error([&] { load_tokenizer(folder.path()); }); };
  EXPECT_EQ(error().message(), "the folder has no tokenizer");
  EXPECT_EQ(error().file(), folder.path().string());
  EXPECT_THAT(error().ways_out(), ::testing::Contains(HasSubstr("tokenizer.json")));
  write_atomically(folder / "tokenizer.model", std::string_view("x"));
  EXPECT_THAT(error().file(), HasSubstr("tokenizer.model"));
  write_atomically(folder / "tiktoken.model", std::string_view("YQ== 0\n"));
  EXPECT_THAT(error().message(), HasSubstr("without tokenizer_config.json"));
  write_atomically(folder / "tokenizer_config.json", std::string_view(R"({"tokenizer_class": "QWenTokenizer"})"));
  EXPECT_EQ(value_of(error(), "class"), "QWenTokenizer");
  EXPECT_EQ(thrown_error([&] { load_tokenizer(folder / "gone"); }).message(), "there is no such file or folder");
}

TEST(LoadTokenizer, RefusesDamagedTiktokenFiles) {
  const TempDir folder;
  write_atomically(
      folder / "tokenizer_config.json",
      std::string_view(R"({"auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", null]}})"));
  for (const char* text :
       {"", "YQ==", "YQ== x", "Y*== 1", "YQ== 1 2", "YQ== 99999999999", " 1", "YQ== 0\nYg== 0", "YQ== 0\nYQ== 1"}) {
    write_atomically(folder / "tiktoken.model", std::string_view(text));
    const Error error = thrown_error([&] { load_tokenizer(folder.path()); });
    EXPECT_THAT(error.file(), HasSubstr("tiktoken.model")) << text;
    EXPECT_FALSE(error.ways_out().empty()) << text;
  }
}

}  // namespace
}  // namespace nibble
