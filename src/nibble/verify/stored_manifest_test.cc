#include "nibble/verify/stored_manifest.h"

#include <gtest/gtest.h>

namespace nibble {
namespace {

const std::string kHash(64, 'a');

TEST(StoredManifest, ReadsWhatIsRecorded) {
  Findings findings;
  const auto manifest = parse_manifest(R"({"contract": 1, "outputs": [{"file": "model.safetensors", "bytes": 12,
      "sha256": ")" + kHash + R"("}], "tensors": [{"name": "w", "format": "f", "more": 1}], "unknown": {}})",
                                       "nibble.json", &findings);
  ASSERT_TRUE(manifest.has_value());
  EXPECT_TRUE(findings.empty());
  EXPECT_EQ(manifest->contract, "1");
  ASSERT_NE(manifest->find("model.safetensors"), nullptr);
  EXPECT_EQ(manifest->find("model.safetensors")->bytes, 12u);
  EXPECT_EQ(manifest->find("other"), nullptr);
  ASSERT_EQ(manifest->tensors.size(), 1u);
  EXPECT_EQ(manifest->tensors[0].format, "f");
}

TEST(StoredManifest, AnEmptyObjectRecordsNothing) {
  Findings findings;
  const auto manifest = parse_manifest("{}", "nibble.json", &findings);
  ASSERT_TRUE(manifest.has_value());
  EXPECT_TRUE(manifest->outputs.empty());
}

// However many keys there are.
TEST(StoredManifest, AKeyThatStandsTwiceIsFoundFarApart) {
  for (const int keys : {2, 15, 16, 17, 18, 40}) {
    for (const bool twice : {false, true}) {
      std::string text = "{\"tensors\": [{\"name\": \"a\"";
      for (int i = 1; i < keys; ++i) text += ", \"k" + std::to_string(i) + "\": 1";
      text += std::string(", \"") + (twice ? "k" + std::to_string(keys - 1) : "last") + "\": 1}]}";
      Findings findings;
      EXPECT_EQ(parse_manifest(text, "nibble.json", &findings).has_value(), !twice) << text;
      EXPECT_EQ(findings.size(), twice ? 1u : 0u);
    }
  }
}

TEST(StoredManifest, ARuleSaysThatAWeightWasRounded) {
  Findings findings;
  const auto manifest = parse_manifest(
      R"({"tensors": [{"name": "a", "rule": "mx.even"}, {"name": "b", "rule": null}, {"name": "c"}, {"name": "d",
      "rule": ""}]})",
      "nibble.json", &findings);
  ASSERT_TRUE(manifest.has_value());
  ASSERT_EQ(manifest->tensors.size(), 4u);
  EXPECT_EQ(manifest->tensors[0].rule, "mx.even");
  for (const size_t i : {1u, 2u, 3u}) EXPECT_EQ(manifest->tensors[i].rule, "");
}

TEST(StoredManifest, NullIsAsGoodAsAbsent) {
  Findings findings;
  const auto manifest = parse_manifest(
      R"({"outputs": null, "contract": "2a", "tensors": [{"rel_rmse": 1e-3, "format": null, "name": "w\u0041"}]})",
      "nibble.json", &findings);
  ASSERT_TRUE(manifest.has_value());
  EXPECT_EQ(manifest->contract, "2a");
  ASSERT_EQ(manifest->tensors.size(), 1u);
  EXPECT_EQ(manifest->tensors[0].name, "wA");
  EXPECT_EQ(manifest->tensors[0].format, "");
}

TEST(StoredManifest, WhateverIsMalformedIsAFinding) {
  for (const std::string& text : {
           std::string(""),
           std::string("["),
           std::string("[]"),
           std::string("null"),
           std::string("{\"outputs\": {}}"),
           std::string("{\"outputs\": [1]}"),
           std::string("{\"outputs\": [{\"file\": \"a\", \"bytes\": 1}]}"),
           "{\"outputs\": [{\"file\": \"a\", \"sha256\": \"" + kHash + "\"}]}",
           "{\"outputs\": [{\"file\": \"../a\", \"bytes\": 1, \"sha256\": \"" + kHash + "\"}]}",
           "{\"outputs\": [{\"file\": \"a/../../b\", \"bytes\": 1, \"sha256\": \"" + kHash + "\"}]}",
           "{\"outputs\": [{\"file\": \"/a\", \"bytes\": 1, \"sha256\": \"" + kHash + "\"}]}",
           "{\"outputs\": [{\"file\": \"a/\", \"bytes\": 1, \"sha256\": \"" + kHash + "\"}]}",
           "{\"outputs\": [{\"file\": \"\", \"bytes\": 1, \"sha256\": \"" + kHash + "\"}]}",
           "{\"outputs\": [{\"file\": \"a\", \"bytes\": -1, \"sha256\": \"" + kHash + "\"}]}",
           std::string("{\"outputs\": [{\"file\": \"a\", \"bytes\": 1, \"sha256\": \"xyz\"}]}"),
           std::string("{\"tensors\": [{\"format\": \"f\"}]}"),
           std::string("{\"tensors\": 3}"),
           "{\"outputs\": [{\"file\": \"a\", \"bytes\": true, \"sha256\": \"" + kHash + "\"}]}",
           "{\"outputs\": [{\"file\": 0, \"bytes\": 1, \"sha256\": \"" + kHash + "\"}]}",
           std::string("{\"tensors\": [{\"name\": \"a\", \"format\": 0}]}"),
           std::string("{\"tensors\": [{\"name\": \"\"}]}"),
           std::string("{\"tensors\": [{\"name\": \"a\", \"name\": \"b\"}]}"),
           std::string("{\"tensors\": [{\"name\": 1}]}"),
           std::string("{\"tensors\": [{\"name\": \"a\", \"rule\": 1}]}"),
           std::string("{\"contract\": 1} {}"),
       }) {
    Findings findings;
    EXPECT_FALSE(parse_manifest(text, "nibble.json", &findings).has_value()) << text;
    ASSERT_EQ(findings.size(), 1u) << text;
    EXPECT_EQ(findings[0].rule, "manifest-hash");
    EXPECT_EQ(findings[0].file, "nibble.json");
    EXPECT_EQ(findings[0].severity, Severity::kError);
  }
}

}  // namespace
}  // namespace nibble
