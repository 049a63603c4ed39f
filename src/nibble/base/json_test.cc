#include "nibble/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/thrown_error.h"

namespace nibble {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(std::string_view text) {
  try {
    parse_json(text, "some/config.json");
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("file some/config.json"), HasSubstr("try: ")));
    return error.what();
  }
  return "accepted";
}

TEST(Json, ReadsEveryKindOfValue) {
  const Json value =
      parse_json(R"( {"a": [1, -2, 2.5, true, false, null, "x\u00e9\ud83d\ude00"], "b": {"c": {}}} )", "t");
  EXPECT_EQ(value["a"].size(), 7u);
  EXPECT_EQ(value["a"][0].get<int>(), 1);
  EXPECT_EQ(value["a"][1].get<int>(), -2);
  EXPECT_EQ(value["a"][2].get<double>(), 2.5);
  EXPECT_TRUE(value["a"][3].get<bool>());
  EXPECT_FALSE(value["a"][4].get<bool>());
  EXPECT_TRUE(value["a"][5].is_null());
  EXPECT_EQ(value["a"][6].get<std::string>(), "x\u00e9\U0001F600");
  EXPECT_TRUE(value["b"]["c"].is_object());
  EXPECT_EQ(parse_json("17", "t"), Json(17));
  EXPECT_EQ(parse_json("[]", "t"), Json::array());
  EXPECT_EQ(parse_json("[[], [[1]], {}]", "t").dump(), "[[],[[1]],{}]");
}

TEST(Json, KeepsTheOrderOfKeys) {
  const char* text = R"({"z":1,"a":{"y":2,"b":3},"m":[{"q":1,"c":2}]})";
  EXPECT_EQ(parse_json(text, "t").dump(), text);
}

TEST(Json, ReadsAndWritesWhatPythonDoes) {
  const char* text = "{\n  \"limit\": [\n    0.0,\n    Infinity,\n    -Infinity,\n    NaN\n  ],\n  \"a\": 7\n}\n";
  const Json value = parse_json(text, "t");
  EXPECT_EQ(value["limit"][0].get<double>(), 0);
  EXPECT_EQ(value["limit"][1].get<double>(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(value["limit"][2].get<double>(), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(value["limit"][3].get<double>()));
  EXPECT_EQ(value["a"].get<int>(), 7);
  EXPECT_EQ(json_text(value), text);
  EXPECT_EQ(parse_json(strict_json_text(value), "t")["limit"][1], Json());
  EXPECT_EQ(json_text(parse_json("NaN", "t")), "NaN\n");
  // Numbers before, between and after keep their places.
  EXPECT_EQ(json_text(parse_json(R"([-1,2.5e+3,NaN,-0.5,Infinity,3e-1,{"NaN":"Infinity","b":-Infinity},1])", "t")),
            json_text(parse_json("[-1,2500.0,NaN,-0.5,Infinity,0.3,{\"NaN\":\"Infinity\",\"b\":-Infinity},1]", "t")));
  EXPECT_EQ(parse_json(R"({"a\"": "[NaN", "b": [12, NaN]})", "t")["b"][0], Json(12));
  EXPECT_EQ(parse_json(R"(["\\", 5, "NaN"])", "t").dump(), R"(["\\",5,"NaN"])");
}

TEST(Json, RefusesOtherSpellingsOfWhatIsNoNumber) {
  for (const char* text :
       {"nan",        "inf",       "Inf",       "-NaN",       "+Infinity",  "--Infinity",  "Infinit",      "Infinityy",
        "NaNNaN",     "1Infinity", "Infinity1", "1NaN",       "[NaN1]",     "-[Infinity]", "[1 Infinity]", "{NaN: 1}",
        "{Infinity}", "\"NaN",     "NaN\"\"",   "Infinity.0", "- Infinity", "tNaN",        "NaN NaN",      "[NaN,]"})
    EXPECT_NE(refusal(text), "accepted") << text;
  // The byte is that of the text as it was given.
  EXPECT_THAT(refusal("[Infinity, -Infinity, x]"), HasSubstr("byte 22"));
  const auto nested = [](size_t depth) { return std::string(depth, '[') + "NaN" + std::string(depth, ']'); };
  EXPECT_EQ(refusal(nested(kMaxJsonDepth)), "accepted");
  EXPECT_THAT(refusal(nested(kMaxJsonDepth + 1)), HasSubstr("nested too deeply"));
}

TEST(Json, TextIsThatOfTheLibrary) {
  const char* text = R"({"a": [], "b": {}, "c": [[1, {"d": "x\u00e9\n"}], null, true, 1e300, -7], "\"": {"e": [{}]}})";
  EXPECT_EQ(json_text(parse_json(text, "t")), parse_json(text, "t").dump(2) + "\n");
}

TEST(Json, TypedAccessRefusesWhatIsNoNumber) {
  const Json value = parse_json(R"({"eps": NaN, "size": Infinity})", "t");
  try {
    json_double(value, "eps", "config.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("`eps` should be a finite number"), HasSubstr("eps NaN")));
  }
  EXPECT_THROW(json_uint(value, "size", "t"), Error);
  EXPECT_THROW(json_uint(value, "eps", "t"), Error);
  EXPECT_THROW(json_string(value, "eps", "t"), Error);
}

TEST(Json, RefusesDoubleKeysAtAnyDepth) {
  EXPECT_THAT(refusal(R"({"a": 1, "b": 2, "a": 3})"), AllOf(HasSubstr("twice"), HasSubstr("key a")));
  EXPECT_THAT(refusal(R"([{"x": {"deep": 1, "deep": 1}}])"), HasSubstr("key deep"));
  EXPECT_THAT(refusal("{\"a\": 1, \"\\u0061\": 2}"), HasSubstr("key a"));  // the same key, spelled in two ways
  EXPECT_EQ(refusal(R"({"a": {"a": 1}, "b": {"a": 1}})"), "accepted");
}

TEST(Json, RefusesDeepNesting) {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(refusal(nested(kMaxJsonDepth)), "accepted");
  EXPECT_THAT(refusal(nested(kMaxJsonDepth + 1)), AllOf(HasSubstr("nested too deeply"), HasSubstr("limit 64")));
  std::string deep;
  deep.resize(10'000'000, '[');
  EXPECT_THAT(refusal(deep), HasSubstr("nested too deeply"));
  std::string objects;
  for (int i = 0; i < 65; ++i) objects += R"({"a":)";
  EXPECT_THAT(refusal(objects), HasSubstr("nested too deeply"));
  EXPECT_EQ(refusal("[[1],[2],[3]]"), "accepted");  // depth, not number
}

TEST(Json, RefusesTrailingText) {
  EXPECT_THAT(refusal("{} x"), HasSubstr("byte 3"));
  EXPECT_THAT(refusal("1 2"), HasSubstr("not valid JSON"));
  EXPECT_EQ(refusal("{} \t\r\n"), "accepted");
  // The library takes a zero byte for the end.
  EXPECT_THAT(refusal(std::string_view("{}\0garbage", 10)), AllOf(HasSubstr("zero byte"), HasSubstr("byte 2")));
  EXPECT_THAT(refusal(std::string_view("\"a\0b\"", 5)), HasSubstr("byte 2"));
}

TEST(Json, NamesTheByteFromZero) {
  EXPECT_THAT(refusal(R"({"a" 1})"), HasSubstr("byte 5"));
  EXPECT_THAT(refusal("?"), HasSubstr("byte 0"));
  EXPECT_THAT(refusal("[1,"), HasSubstr("byte 3"));  // where the text ends
  EXPECT_THAT(refusal(""), HasSubstr("byte 0"));
}

TEST(Json, RefusesWhatOnlyLooksLikeJson) {
  for (const char* text : {"{'a': 1}", "[1,]", "{\"a\":1,}", "nan", "[Infinity", "// x\n1", "/* x */ 1", "01", "+1",
                           ".5", "1.", "tru", "{a: 1}", "\"\\x41\"", "\"a\nb\"", "\"open", "{\"a\":1", "[1 2]"})
    EXPECT_THAT(refusal(text), HasSubstr("not valid JSON")) << text;
}

TEST(Json, RefusesBrokenUtf8) {
  for (const char* text : {"\"\xff\"", "\"\xc3\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"",
                           "\"\\ud800\"", "\"\\udc00\\ud800\""})
    EXPECT_THAT(refusal(text), HasSubstr("not valid JSON")) << text;
  EXPECT_EQ(refusal("\"Gr\u00fc\u00dfe \U0001F600\""), "accepted");
}

TEST(Json, RefusesNumbersThatDoNotFitADouble) {
  EXPECT_THAT(refusal("[1e999]"), AllOf(HasSubstr("out of range"), HasSubstr("number 1e999")));
  EXPECT_THAT(refusal("-1e999"), HasSubstr("out of range"));
  EXPECT_THAT(refusal(std::string(400, '9')), HasSubstr("out of range"));
  EXPECT_EQ(parse_json("1.7976931348623157e308", "t").get<double>(), 1.7976931348623157e308);
  EXPECT_EQ(parse_json("18446744073709551615", "t").get<uint64_t>(), UINT64_MAX);
  EXPECT_TRUE(parse_json("18446744073709551616", "t").is_number_float());
  EXPECT_EQ(parse_json("-9223372036854775808", "t").get<int64_t>(), INT64_MIN);
}

TEST(Json, MessagesStayShort) {
  EXPECT_LT(refusal("\"" + std::string(1'000'000, 'x')).size(), 1000u);
  EXPECT_LT(refusal("1e" + std::string(1'000'000, '9')).size(), 1000u);
}

TEST(Json, BigObjectsTakeLinearTime) {
  // A weight map of Kimi-K3's size. Looking each new key up from the front would take minutes.
  std::string text = "{";
  for (int i = 0; i < 500'000; ++i)
    text += (i == 0 ? "\"model.layers." : ",\"model.layers.") + std::to_string(i) + ".w\":\"model-00001.safetensors\"";
  text += "}";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(parse_json(text, "t").size(), 500'000u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));  // sanitizers included
}

TEST(Json, FileHasALimit) {
  const testing::TempDir dir;
  write_atomically(dir / "c.json", R"({"a": 1})");
  EXPECT_EQ(read_json(dir / "c.json")["a"], 1);
  EXPECT_THROW(read_json(dir / "c.json", 7), Error);
}

TEST(Json, TextIsIndentedUtf8WithANewline) {
  EXPECT_EQ(json_text(parse_json(R"({"b":["ü",1],"a":{}})", "t")),
            "{\n  \"b\": [\n    \"ü\",\n    1\n  ],\n  \"a\": {}\n}\n");
  EXPECT_EQ(json_text(Json("\xff")), "\"\uFFFD\"\n");  // a name from elsewhere that is no UTF-8
}

TEST(JsonAccess, AbsentAndNullAreNothing) {
  const Json object = parse_json(R"({"n": null})", "t");
  for (const char* key : {"n", "missing"}) {
    EXPECT_EQ(json_uint(object, key, "t"), std::nullopt);
    EXPECT_EQ(json_double(object, key, "t"), std::nullopt);
    EXPECT_EQ(json_bool(object, key, "t"), std::nullopt);
    EXPECT_EQ(json_string(object, key, "t"), std::nullopt);
  }
  EXPECT_EQ(json_uint(Json::array(), "a", "t"), std::nullopt);  // no object, no members
}

TEST(JsonAccess, WholeNumbers) {
  const Json object = parse_json(R"({"a": 7, "b": 7.0, "c": 1e18, "max": 18446744073709551615, "neg": -1, "half": 0.5,
                                     "big": 1e19, "text": "7", "yes": true})",
                                 "t");
  EXPECT_EQ(json_uint(object, "a", "t"), 7u);
  EXPECT_EQ(json_uint(object, "b", "t"), 7u);
  EXPECT_EQ(json_uint(object, "c", "t"), 1'000'000'000'000'000'000u);
  EXPECT_EQ(json_uint(object, "max", "t"), UINT64_MAX);
  for (const char* key : {"neg", "half", "big", "text", "yes"}) EXPECT_THROW(json_uint(object, key, "t"), Error) << key;
  EXPECT_EQ(json_uint(Json{{"made_here", 5}}, "made_here", "t"), 5u);  // a signed integer inside
  EXPECT_THROW(json_uint(Json{{"made_here", -5}}, "made_here", "t"), Error);
}

TEST(JsonAccess, OtherTypes) {
  const Json object = parse_json(R"({"d": 0.25, "i": 3, "yes": true, "s": "x"})", "t");
  EXPECT_EQ(json_double(object, "d", "t"), 0.25);
  EXPECT_EQ(json_double(object, "i", "t"), 3.0);
  EXPECT_EQ(json_bool(object, "yes", "t"), true);
  EXPECT_EQ(json_string(object, "s", "t"), "x");
  EXPECT_THROW(json_double(object, "s", "t"), Error);
  EXPECT_THROW(json_bool(object, "i", "t"), Error);
  EXPECT_THROW(json_string(object, "d", "t"), Error);
}

TEST(JsonAccess, RefusalNamesKeyWantedAndFound) {
  const Json object = parse_json(R"({"hidden_size": "7168", "layers": [1, 2, 3]})", "t");
  const auto text = [](const std::function<void()>& work) -> std::string { return testing::thrown_error(work).what(); };
  EXPECT_THAT(
      text([&] { json_uint(object, "hidden_size", "config.json"); }),
      AllOf(HasSubstr("`hidden_size` should be a whole number"), HasSubstr("file config.json"), HasSubstr("\"7168\"")));
  EXPECT_THAT(text([&] { json_string(object, "layers", "config.json"); }), HasSubstr("layers an array of 3 values"));
}

}  // namespace
}  // namespace nibble
