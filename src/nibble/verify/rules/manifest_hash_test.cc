#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "nibble/base/hash.h"
#include "nibble/base/log.h"
#include "nibble/verify/rederive_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

std::string manifest_for(const Path& folder, const std::string& format) {
  const std::string model = read_text(folder / "model.safetensors", 1 << 30);
  const std::string config = read_text(folder / "config.json", 1 << 20);
  const auto row = [](const std::string& file, const std::string& content) {
    return "{\"file\": \"" + file + "\", \"bytes\": " + std::to_string(content.size()) + ", \"sha256\": \"" +
           sha256_hex(std::as_bytes(std::span(content))) + "\"}";
  };
  return "{\"contract\": 1, \"outputs\": [" + row("model.safetensors", model) + ", " + row("config.json", config) +
         "], \"tensors\": [{\"name\": \"model.layers.0.mlp.experts.1.up_proj.weight\", \"format\": \"" + format +
         "\"}]}";
}

class ManifestHash : public ::testing::Test {
 protected:
  ManifestHash() {
    TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
    tiny.quantize("compressed-tensors", "int4-g32");
    tiny.write(folder());
  }
  Path folder() const { return dir_ / "model"; }
  Findings errors(const VerifyOptions& options = {}) const {
    const VerifyReport report = verify_quietly(folder(), options);
    Findings found;
    for (const Finding& finding : of_rule(report, "manifest-hash")) {
      if (finding.severity == Severity::kError) found.push_back(finding);
    }
    return found;
  }
  void record(const std::string& format = "int4-g32") const {
    write_atomically(folder() / "nibble.json", std::string_view(manifest_for(folder(), format)));
  }

 private:
  TempDir dir_;
};

TEST_F(ManifestHash, WithoutAManifestThereIsANote) {
  const Findings found = of_rule(verify_quietly(folder()), "manifest-hash");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::kNote);
}

TEST_F(ManifestHash, WhatIsRecordedPasses) {
  record();
  EXPECT_TRUE(errors().empty()) << text_of(errors());
}

TEST_F(ManifestHash, OneChangedByteInAShardOrAConfiguration) {
  record();
  for (const char* file : {"model.safetensors", "config.json"}) {
    std::string content = read_text(folder() / file, 1 << 30);
    const std::string original = content;
    content.back() = static_cast<char>(content.back() ^ 1);
    if (std::string_view(file) == "config.json") content.back() = ' ';
    write_atomically(folder() / file, std::string_view(content));
    const Findings found = errors();
    ASSERT_EQ(found.size(), 1u) << text_of(found);
    EXPECT_TRUE(found[0].file.ends_with(file)) << found[0].file;
    EXPECT_EQ(value_of(found[0], "recorded"), sha256_hex(std::as_bytes(std::span(original))));
    write_atomically(folder() / file, std::string_view(original));
  }
}

TEST_F(ManifestHash, ARecordOfNothingIsAnError) {
  for (const char* text : {"{}", "{\"contract\": 2, \"outputs\": []}", "{\"contract\": 2, \"outputs\": null}"}) {
    write_atomically(folder() / "nibble.json", std::string_view(text));
    EXPECT_EQ(errors().size(), 1u) << text;
  }
}

TEST_F(ManifestHash, AFileThatIsNotRecordedIsAWarning) {
  record();
  std::string text = read_text(folder() / "nibble.json", 1 << 20);
  const size_t first = text.find("{\"file\""), second = text.find("{\"file\"", first + 1);
  text.erase(first, second - first);
  write_atomically(folder() / "nibble.json", text);
  uint64_t of_files = 0;
  for (const Finding& finding : of_rule(verify_quietly(folder(), {}), "manifest-hash")) {
    EXPECT_EQ(finding.severity, Severity::kWarning);
    // The manifest of this test records one tensor alone.
    if (finding.message.find("the file is not recorded") == std::string::npos) continue;
    ++of_files;
    EXPECT_NE(finding.file.find("model.safetensors"), std::string::npos);
  }
  EXPECT_EQ(of_files, 1u);
}

TEST_F(ManifestHash, QuickComparesSizesOnly) {
  record();
  std::string content = read_text(folder() / "model.safetensors", 1 << 30);
  content.back() = static_cast<char>(content.back() ^ 1);
  write_atomically(folder() / "model.safetensors", std::string_view(content));
  VerifyOptions quick;
  quick.quick = true;
  EXPECT_TRUE(errors(quick).empty());
  EXPECT_NE(text_of(of_rule(verify_quietly(folder(), quick), "manifest-hash")).find("without --quick"),
            std::string::npos);
}

TEST_F(ManifestHash, AnotherFormatThanRecorded) {
  record("int4-g64");
  const Findings found = errors();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(value_of(found[0], "stored"), "int4-g32");
  EXPECT_EQ(value_of(found[0], "recorded"), "int4-g64");
}

TEST_F(ManifestHash, MissingFileAndMalformedManifest) {
  record();
  std::filesystem::remove(folder() / "config.json");
  EXPECT_NE(text_of(errors()).find("config.json"), std::string::npos);
  write_atomically(folder() / "nibble.json", std::string_view("{\"outputs\": 7}"));
  const Findings found = errors();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].file.ends_with("nibble.json"));
}

// What quantize writes beside the weights counts as much as these: who loads them goes by it.
TEST(ManifestOfQuantize, EveryFileThatAProgramReadsIsCompared) {
  log::set_level(log::Level::kOff);
  const TempDir dir;
  TinyCheckpoint::qwen3_moe().write(dir / "source");
  const std::vector<std::string> companions = {"tokenizer.json", "chat_template.jinja", "original/params.json",
                                               "README.md"};
  std::filesystem::create_directories(dir / "source/original");
  for (const std::string& name : companions) write_atomically(dir / "source" / name, "{}" + name);
  QuantizeRequest request = request_for(dir / "source", dir / "target", "nvfp4");
  request.layout = "modelopt";
  request.shard_bytes = 60'000;
  quantize(request);
  EXPECT_TRUE(of_rule(verify_quietly(dir / "target"), "manifest-hash").empty());
  std::vector<std::string> names = companions;
  names.insert(names.end(), {"config.json", "hf_quant_config.json", "model.safetensors.index.json"});
  for (const std::string& name : names) {
    const std::string content = read_text(dir / "target" / name, 1 << 20);
    const auto severity = name == "README.md" ? Severity::kNote : Severity::kError;
    for (const bool there : {true, false}) {
      if (there) write_atomically(dir / "target" / name, content + " ");
      if (!there) std::filesystem::remove(dir / "target" / name);
      const VerifyReport report = verify_quietly(dir / "target");
      const Findings found = of_rule(report, "manifest-hash");
      ASSERT_EQ(found.size(), 1u) << name << text_of(report.findings);
      EXPECT_EQ(found[0].severity, severity) << name;
      EXPECT_TRUE(found[0].file.ends_with(name)) << found[0].file;
      EXPECT_EQ(report.ok, name == "README.md") << name << text_of(report.findings);
    }
    write_atomically(dir / "target" / name, content);
  }
}

}  // namespace
}  // namespace nibble
