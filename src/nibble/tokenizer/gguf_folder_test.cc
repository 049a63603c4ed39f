// The texts are compared with what the `tokenizers` library writes for the same vocabulary
// (tests/golden/tokenizers, made by tools/make_tokenizer_goldens.py).
#include "nibble/tokenizer/gguf_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/base/json.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/tokenizer/pre_tokenizer.h"

namespace nibble {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

GgufFile golden_gguf() { return read_gguf(InputFile::open(testing::golden_dir() / "models/llama_gguf/model.gguf")); }

GgufValue* value_of(GgufFile* gguf, const std::string& key) {
  for (auto& [name, value] : gguf->metadata) {
    if (name == key) return &value;
  }
  return nullptr;
}

void set(GgufFile* gguf, const std::string& key, GgufValue value) {
  if (GgufValue* there = value_of(gguf, key)) {
    *there = std::move(value);
  } else {
    gguf->metadata.emplace_back(key, std::move(value));
  }
}

void erase(GgufFile* gguf, const std::string& key) {
  std::erase_if(gguf->metadata, [&](const auto& pair) { return pair.first == key; });
}

GgufValue::Array& list(GgufFile* gguf, const std::string& key) {
  return std::get<GgufValue::Array>(value_of(gguf, "tokenizer.ggml." + key)->value);
}

std::map<std::string, std::string> texts_of(const GgufFile& gguf) {
  std::map<std::string, std::string> texts;
  for (auto& [name, text] : tokenizer_texts(gguf, "model.gguf")) texts.emplace(name, text);
  return texts;
}

Json json_of(const GgufFile& gguf, const std::string& name) { return parse_json(texts_of(gguf).at(name), name); }

// The message of the refusal; "" if there is none.
std::string refusal(const std::function<void(GgufFile*)>& change) {
  GgufFile gguf = golden_gguf();
  change(&gguf);
  try {
    tokenizer_texts(gguf, "model.gguf");
  } catch (const Error& error) {
    EXPECT_EQ(error.file(), "model.gguf");
    EXPECT_FALSE(error.ways_out().empty()) << error.what();
    return error.what();
  }
  return "";
}

class TokenizerJson : public ::testing::TestWithParam<std::string> {};

TEST_P(TokenizerJson, IsWhatTheTokenizersLibraryWrites) {
  GgufFile gguf = golden_gguf();
  set(&gguf, "tokenizer.ggml.pre", {GetParam()});
  if (GetParam() == "llama-bpe") erase(&gguf, "tokenizer.ggml.add_bos_token");  // its own default: added
  const Json golden = read_json(testing::golden_dir() / "tokenizers" / (GetParam() + ".json"));
  EXPECT_EQ(json_of(gguf, "tokenizer.json").dump(1), golden.dump(1));
}

INSTANTIATE_TEST_SUITE_P(EveryPreTokenizer, TokenizerJson,
                         ::testing::Values("gpt-2", "smollm", "llama-bpe", "qwen2", "gpt-4o", "deepseek-v3", "glm4",
                                           "minimax-m2", "kimi-k2"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(TokenizerTexts, EveryKnownPreTokenizerHasAGolden) {
  for (const PreTokenizer& row : pre_tokenizers()) {
    EXPECT_TRUE(std::filesystem::exists(testing::golden_dir() / "tokenizers" / (std::string(row.name) + ".json")))
        << row.name;
  }
}

TEST(TokenizerTexts, ConfigurationHoldsSpecialTokensAndTheTemplateTwice) {
  const GgufFile gguf = golden_gguf();
  const auto texts = texts_of(gguf);
  std::vector<std::string> names;
  names.reserve(texts.size());
  for (const auto& [name, text] : texts) names.push_back(name);
  EXPECT_THAT(names, UnorderedElementsAre("tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
                                          "generation_config.json"));
  const std::string chat =
      "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}";
  EXPECT_EQ(texts.at("chat_template.jinja"), chat);
  EXPECT_EQ(json_of(gguf, "tokenizer_config.json"), (Json{{"add_prefix_space", false},
                                                          {"add_bos_token", false},
                                                          {"add_eos_token", false},
                                                          {"bos_token", "<|im_start|>"},
                                                          {"eos_token", "<|im_end|>"},
                                                          {"pad_token", "<|im_end|>"},
                                                          {"unk_token", "<|endoftext|>"},
                                                          {"clean_up_tokenization_spaces", false},
                                                          {"model_max_length", 512},
                                                          {"tokenizer_class", "PreTrainedTokenizerFast"},
                                                          {"chat_template", chat}}));
  EXPECT_EQ(json_of(gguf, "generation_config.json"),
            (Json{{"bos_token_id", 1}, {"eos_token_id", 2}, {"pad_token_id", 2}}));
}

TEST(TokenizerTexts, AnswersMayEndWithTwoTokens) {
  GgufFile gguf = golden_gguf();
  set(&gguf, "tokenizer.ggml.eot_token_id", {uint64_t{0}});
  EXPECT_EQ(json_of(gguf, "generation_config.json")["eos_token_id"], Json::array({2, 0}));
}

TEST(TokenizerTexts, UserDefinedTokensAreAddedButNotSpecial) {
  GgufFile gguf = golden_gguf();
  list(&gguf, "tokens").push_back({std::string("<think>")});
  list(&gguf, "token_type").push_back({int64_t{4}});
  const Json json = json_of(gguf, "tokenizer.json");
  const auto id = list(&gguf, "tokens").size() - 1;
  EXPECT_EQ(json["added_tokens"].size(), 4u);
  EXPECT_EQ(json["added_tokens"][3]["id"], id);
  EXPECT_EQ(json["added_tokens"][3]["special"], false);
  EXPECT_EQ(json["model"]["vocab"]["<think>"], id);
}

TEST(TokenizerTexts, MergesOfTokensWithSpacesAreCutWhereBothSidesExist) {
  GgufFile gguf = golden_gguf();
  for (const char* token : {"a ", "a b"}) {  // "b" is there as a byte's symbol
    list(&gguf, "tokens").push_back({std::string(token)});
    list(&gguf, "token_type").push_back({int64_t{1}});
  }
  list(&gguf, "merges").push_back({std::string("a  b")});
  const Json json = json_of(gguf, "tokenizer.json");
  EXPECT_EQ(json["model"]["merges"].back(), Json::array({"a ", "b"}));
}

TEST(TokenizerTexts, AFileWithoutTokenizerGivesNothing) {
  GgufFile gguf = golden_gguf();
  erase(&gguf, "tokenizer.ggml.model");
  EXPECT_TRUE(tokenizer_texts(gguf, "model.gguf").empty());
}

TEST(TokenizerTexts, OtherKindsAreRefusedByName) {
  EXPECT_THAT(refusal([](GgufFile* g) { set(g, "tokenizer.ggml.model", {std::string("llama")}); }),
              HasSubstr("tokenizer.ggml.model llama"));
  EXPECT_THAT(refusal([](GgufFile* g) { set(g, "tokenizer.ggml.pre", {std::string("tekken")}); }),
              HasSubstr("tokenizer.ggml.pre tekken, known gpt-2 smollm"));
  EXPECT_THAT(refusal([](GgufFile* g) { erase(g, "tokenizer.ggml.pre"); }), HasSubstr("does not name"));
}

TEST(TokenizerTexts, ListsAreCheckedAgainstEachOther) {
  EXPECT_THAT(refusal([](GgufFile* g) { list(g, "token_type").pop_back(); }), HasSubstr("types 276, tokens 277"));
  EXPECT_THAT(refusal([](GgufFile* g) { erase(g, "tokenizer.ggml.token_type"); }), HasSubstr("lacks this key"));
  EXPECT_THAT(refusal([](GgufFile* g) { erase(g, "tokenizer.ggml.tokens"); }), HasSubstr("lacks this key"));
  EXPECT_THAT(refusal([](GgufFile* g) { erase(g, "tokenizer.ggml.merges"); }), HasSubstr("lacks this key"));
  EXPECT_THAT(refusal([](GgufFile* g) { set(g, "tokenizer.ggml.tokens", {uint64_t{5}}); }), HasSubstr("not a list"));
  EXPECT_THAT(refusal([](GgufFile* g) { list(g, "tokens").clear(); }), HasSubstr("empty"));
  EXPECT_THAT(refusal([](GgufFile* g) { list(g, "token_type")[7] = {int64_t{-3}}; }), HasSubstr("entry 7"));
}

TEST(TokenizerTexts, TokensAreDistinctUtf8OfBoundedLength) {
  EXPECT_THAT(refusal([](GgufFile* g) { list(g, "tokens")[9] = {std::string("<|im_end|>")}; }),
              HasSubstr("first 2, second 9"));
  EXPECT_THAT(refusal([](GgufFile* g) { list(g, "tokens")[9] = {std::string("\xff\xfe")}; }),
              HasSubstr("entry 9, text \\xff\\xfe"));
  EXPECT_THAT(refusal([](GgufFile* g) { list(g, "tokens")[9] = {std::string(4097, 'x')}; }), HasSubstr("bytes 4097"));
  EXPECT_THAT(refusal([](GgufFile* g) { list(g, "tokens")[9] = {uint64_t{1}}; }), HasSubstr("not a list of strings"));
}

TEST(TokenizerTexts, MergesNameTokensThatExist) {
  for (const char* merge : {"nospace", "the cat", "Ġ  t", " t", "Ġ "}) {
    EXPECT_THAT(refusal([&](GgufFile* g) { list(g, "merges")[3] = {std::string(merge)}; }), HasSubstr("entry 3"))
        << merge;
  }
}

TEST(TokenizerTexts, IdsLieInTheList) {
  EXPECT_THAT(refusal([](GgufFile* g) { set(g, "tokenizer.ggml.eos_token_id", {uint64_t{277}}); }),
              HasSubstr("id 277, tokens 277"));
  EXPECT_THAT(refusal([](GgufFile* g) {
                set(g, "tokenizer.ggml.add_bos_token", {true});
                erase(g, "tokenizer.ggml.bos_token_id");
              }),
              HasSubstr("`tokenizer.ggml.bos_token_id` is absent"));
}

}  // namespace
}  // namespace nibble
