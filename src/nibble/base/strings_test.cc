#include "nibble/base/strings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nibble/base/error.h"
#include "nibble/base/rng.h"

namespace nibble {
namespace {

TEST(Strings, WithoutSuffix) {
  EXPECT_EQ(without_suffix("m.weight", ".weight"), "m");
  EXPECT_EQ(without_suffix(".weight", ".weight"), "");
  EXPECT_EQ(without_suffix("m.weight_scale", ".weight"), "m.weight_scale");
  EXPECT_EQ(without_suffix("weight", ".weight"), "weight");
}

using ::testing::ElementsAre;

TEST(Split, KeepsEmptyParts) {
  EXPECT_THAT(split("a.b.c", '.'), ElementsAre("a", "b", "c"));
  EXPECT_THAT(split("", '.'), ElementsAre(""));
  EXPECT_THAT(split(".", '.'), ElementsAre("", ""));
  EXPECT_THAT(split("a..b.", '.'), ElementsAre("a", "", "b", ""));
}

TEST(StartsEndsWith, Basics) {
  EXPECT_TRUE(starts_with("model.layers", "model."));
  EXPECT_TRUE(starts_with("x", ""));
  EXPECT_FALSE(starts_with("mod", "model"));
  EXPECT_TRUE(ends_with("a.weight", ".weight"));
  EXPECT_TRUE(ends_with("x", ""));
  EXPECT_FALSE(ends_with("weight", "a.weight"));
}

// The definition itself, exponential and obvious.
bool matches_by_definition(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] == '*')
    return matches_by_definition(pattern.substr(1), name) ||
           (!name.empty() && matches_by_definition(pattern, name.substr(1)));
  return !name.empty() && (pattern[0] == '?' || pattern[0] == name[0]) &&
         matches_by_definition(pattern.substr(1), name.substr(1));
}

TEST(Glob, AgreesWithItsDefinition) {
  uint64_t draw = 0;
  const auto random_text = [&draw](std::string_view alphabet, uint64_t longest) {
    std::string text(random_bits(1, draw++) % (longest + 1), '\0');
    for (char& c : text) c = alphabet[random_bits(1, draw++) % alphabet.size()];
    return text;
  };
  int matches = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::string pattern = random_text("ab.*?*", 7);
    const std::string name = random_text("ab.", 8);
    const bool expected = matches_by_definition(pattern, name);
    ASSERT_EQ(glob_match(pattern, name), expected) << pattern << " on " << name;
    matches += expected ? 1 : 0;
  }
  EXPECT_GT(matches, 5'000);  // both answers occur
  EXPECT_LT(matches, 95'000);
}

TEST(Glob, WholeNamesAndDots) {
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("model.layers.*.mlp.experts.*", "model.layers.61.mlp.experts.3.up_proj.weight"));
  EXPECT_FALSE(glob_match("mlp", "mlp.gate"));
  EXPECT_FALSE(glob_match("", "a"));
}

// What Python's fnmatch.fnmatchcase answers.
TEST(Glob, ClassesAsInTheShell) {
  const std::pair<std::string_view, std::string_view> matching[] = {
      {"[ab]", "b"},       {"[a-c]x", "cx"},       {"[!a]", "b"},
      {"[!a-c]", "d"},     {"l.[0-9].w", "l.7.w"}, {"l.[0-9]*.w", "l.71.w"},
      {"[]]", "]"},        {"[!]]", "a"},          {"[a-]", "-"},
      {"[-a]", "-"},       {"[a-cx-z]", "y"},      {"[*]", "*"},
      {"[", "["},          {"[ab", "[ab"},         {"[!", "[!"},
      {"[]", "[]"},        {"a[0][1]b", "a01b"},   {"*[13579]", "layers.61"},
      {"[!0-9]*", "mtp.0"}};
  for (const auto& [pattern, name] : matching) EXPECT_TRUE(glob_match(pattern, name)) << pattern << " on " << name;
  const std::pair<std::string_view, std::string_view> others[] = {
      {"[ab]", "c"},  {"[ab]", "ab"},          {"[ab]", "[ab]"},          {"[!a]", "a"}, {"[a-c]", "d"},
      {"[c-a]", "b"}, {"l.[0-9].w", "l.71.w"}, {"*[13579]", "layers.60"}, {"[ab]", ""},  {"[!a]", ""}};
  for (const auto& [pattern, name] : others) EXPECT_FALSE(glob_match(pattern, name)) << pattern << " on " << name;
}

TEST(Glob, NoExponentialTime) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += i % 2 == 0 ? "a*" : "[a-b]*";
  EXPECT_FALSE(glob_match(pattern + "b", std::string(5'000, 'a')));
}

TEST(EditDistance, ClosedForms) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  for (size_t n : {0u, 1u, 5u, 40u}) {
    const std::string a(n, 'a');
    EXPECT_EQ(edit_distance(a, ""), n);                           // n removals
    EXPECT_EQ(edit_distance("", a), n);                           // n insertions
    EXPECT_EQ(edit_distance(a, std::string(n, 'b')), n);          // n substitutions
    EXPECT_EQ(edit_distance(a, a), 0u);                           // nothing
    EXPECT_EQ(edit_distance(a, a + "xyz"), 3u);                   // one end grows
    EXPECT_EQ(edit_distance("x" + a, a + "x"), n > 0 ? 2u : 0u);  // a letter moves over equal ones
  }
}

TEST(EditDistance, IsAMetric) {
  const auto word = [](uint64_t i) {
    std::string text(random_bits(2, i) % 6, '\0');
    for (size_t j = 0; j < text.size(); ++j) text[j] = static_cast<char>('a' + random_bits(3, 10 * i + j) % 3);
    return text;
  };
  for (uint64_t i = 0; i < 2'000; ++i) {
    const std::string a = word(3 * i);
    const std::string b = word(3 * i + 1);
    const std::string c = word(3 * i + 2);
    EXPECT_EQ(edit_distance(a, b), edit_distance(b, a));
    EXPECT_LE(edit_distance(a, c), edit_distance(a, b) + edit_distance(b, c));
    EXPECT_EQ(edit_distance(a, b) == 0, a == b);
  }
}

TEST(NearestName, FirstOfTheNearest) {
  const std::vector<std::string> names{"routed_expert", "shared_expert", "router"};
  EXPECT_EQ(nearest_name("routed_experts", names), "routed_expert");
  EXPECT_EQ(nearest_name("ruoter", names), "router");
  EXPECT_EQ(nearest_name("x", {}), "");
  EXPECT_EQ(nearest_name("nothing", names), "");
}

TEST(HumanBytes, ThreeDigits) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1'000), "1.00 kB");
  EXPECT_EQ(human_bytes(9'994), "9.99 kB");
  EXPECT_EQ(human_bytes(9'996), "10.0 kB");
  EXPECT_EQ(human_bytes(99'960), "100 kB");
  EXPECT_EQ(human_bytes(999'499), "999 kB");
  EXPECT_EQ(human_bytes(999'500), "1.00 MB");
  EXPECT_EQ(human_bytes(1'500'000'000), "1.50 GB");
  EXPECT_EQ(human_bytes(1'000'000'000'000), "1.00 TB");
  EXPECT_EQ(human_bytes(UINT64_MAX), "18.4 EB");
}

TEST(ParseBytes, Units) {
  EXPECT_EQ(parse_bytes("1"), 1u);
  EXPECT_EQ(parse_bytes("123456789"), 123456789u);
  EXPECT_EQ(parse_bytes("1e9"), 1'000'000'000u);
  EXPECT_EQ(parse_bytes("5GB"), 5'000'000'000u);
  EXPECT_EQ(parse_bytes("5 GB"), 5'000'000'000u);
  EXPECT_EQ(parse_bytes("5g"), 5'000'000'000u);
  EXPECT_EQ(parse_bytes("0.5kB"), 500u);
  EXPECT_EQ(parse_bytes("512MiB"), 536'870'912u);
  EXPECT_EQ(parse_bytes("2KiB"), 2'048u);
  EXPECT_EQ(parse_bytes("1.5GiB"), 1'610'612'736u);
  EXPECT_EQ(parse_bytes("2T"), 2'000'000'000'000u);
  EXPECT_EQ(parse_bytes("1TiB"), 1'099'511'627'776u);
  EXPECT_EQ(parse_bytes("9e18"), 9'000'000'000'000'000'000u);
}

TEST(ParseBytes, RefusesEverythingElse) {
  for (const char* text :
       {"",      " ",   "GB",    "5XB",  "5 GBs", "-5GB",       "-1",   "0",  "0GB",  "1e-9",  "0.4",   "inf", "INF",
        "infGB", "nan", "nanGB", "1e19", "1e400", "10000000TB", "0x10", "+5", " 5GB", "5,5GB", "5GB/s", "five"})
    EXPECT_THROW(parse_bytes(text), Error) << text;
}

TEST(ParseBytes, ReadsWhatHumanBytesPrints) {
  for (uint64_t bytes : {uint64_t{1}, uint64_t{999}, uint64_t{12'300}, uint64_t{4'560'000}, uint64_t{7'890'000'000}})
    EXPECT_EQ(parse_bytes(human_bytes(bytes)), bytes);
}

TEST(WithCommas, GroupsOfThree) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1'000), "1,000");
  EXPECT_EQ(with_commas(1'234'567), "1,234,567");
  EXPECT_EQ(with_commas(UINT64_MAX), "18,446,744,073,709,551,615");
}

}  // namespace
}  // namespace nibble
