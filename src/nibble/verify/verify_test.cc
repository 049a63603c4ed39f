#include "nibble/verify/verify.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "nibble/base/error.h"
#include "nibble/verify/rule.h"
#include "nibble/verify/verify_for_test.h"

namespace nibble {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): helpers of tests, no header

TEST(Verify, GoldenCheckpointsOfTheFieldPass) {
  size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden_dir() / "models")) {
    if (!entry.is_directory() || entry.path().filename() == "expected") continue;
    const VerifyReport report = verify_quietly(entry.path());
    EXPECT_TRUE(report.ok) << entry.path() << "\n" << text_of(report.findings);
    EXPECT_GT(report.tensors, 0u);
    ++seen;
  }
  EXPECT_GT(seen, 10u);
}

TEST(Verify, OnlyAPathThatIsNoneThrows) {
  const TempDir dir;
  EXPECT_THROW(verify_quietly(dir / "absent"), Error);
  EXPECT_THROW(verify_quietly(dir.path()), Error);
  TinyCheckpoint::qwen3_moe().write(dir / "m");
  VerifyOptions options;
  options.against = dir / "absent";
  EXPECT_THROW(verify_quietly(dir / "m", options), Error);
}

// ---- what readers and models/ find must come out

bool names(const VerifyReport& report, std::string_view rule, std::string_view text) {
  for (const Finding& finding : of_rule(report, rule)) {
    if (text_of(finding).find(text) != std::string::npos) return true;
  }
  return false;
}

TEST(Verify, C51_missing_and_extra_files) {
  const TempDir dir;
  TinyCheckpoint::qwen3_moe().write(dir / "m", 3);
  std::filesystem::rename(dir / "m" / "model-00002-of-00003.safetensors", dir / "m" / "other.safetensors");
  const VerifyReport report = verify_quietly(dir / "m");
  EXPECT_FALSE(report.ok);
  EXPECT_TRUE(names(report, "missing-file", "model-00002-of-00003.safetensors")) << text_of(report.findings);
  EXPECT_TRUE(names(report, "index-mismatch", "other.safetensors")) << text_of(report.findings);
}

// What a run of quantize has not made yet is not lost: that comes before all that is missing.
TEST(Verify, AnUnfinishedRunIsNamedFirst) {
  const TempDir dir;
  TinyCheckpoint::qwen3_moe().write(dir / "m", 3);
  std::filesystem::remove(dir / "m" / "model-00002-of-00003.safetensors");
  std::filesystem::create_directory(dir / "m" / ".nibble");
  write_atomically(dir / "m" / ".nibble/lock", std::string_view());
  EXPECT_TRUE(of_rule(verify_quietly(dir / "m"), "unfinished-run").empty());  // a remnant
  write_atomically(dir / "m" / ".nibble/run.json", std::string_view("{}"));
  const VerifyReport report = verify_quietly(dir / "m");
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings[0].rule, "unfinished-run");
  EXPECT_NE(report.findings[0].message.find("run the same command again"), std::string::npos);
  EXPECT_TRUE(names(report, "missing-file", "model-00002-of-00003.safetensors"));
}

// A file that cannot be read explains the parameters that have no tensor, which come last.
TEST(Verify, WhyAFileCannotBeReadComesFirst) {
  const TempDir dir;
  TinyCheckpoint::qwen3_moe().write(dir / "m", 2);
  std::filesystem::resize_file(dir / "m" / "model-00001-of-00002.safetensors", 5);
  const VerifyReport report = verify_quietly(dir / "m");
  ASSERT_FALSE(of_rule(report, "empty-parameter").empty()) << text_of(report.findings);
  EXPECT_TRUE(report.findings[0].file.ends_with("model-00001-of-00002.safetensors")) << text_of(report.findings);
  EXPECT_NE(report.findings[0].rule, "empty-parameter");
}

TEST(Verify, AFileWithoutTensorsIsNoCheckpoint) {
  for (const bool config : {false, true}) {
    const TempDir dir;
    TinyCheckpoint tiny;
    if (config) tiny.config() = Json{{"model_type", "unknown"}};
    tiny.write(dir / "m");
    const VerifyReport report = verify_quietly(dir / "m");
    EXPECT_FALSE(report.ok);
    const Findings found = of_rule(report, "no-tensors");
    ASSERT_EQ(found.size(), 1u) << text_of(report.findings);
    EXPECT_NE(found[0].message.find("Fetch the weights again"), std::string::npos);
    EXPECT_EQ(value_of(found[0], "files"), "1");
  }
  EXPECT_TRUE(of_rule(verify_tiny(TinyCheckpoint::qwen3_moe()), "no-tensors").empty());
}

TEST(Verify, ShortFile) {
  const TempDir dir;
  TinyCheckpoint::qwen3_moe().write(dir / "m");
  const Path file = dir / "m" / "model.safetensors";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 100);
  const VerifyReport report = verify_quietly(dir / "m");
  EXPECT_FALSE(report.ok);
  EXPECT_NE(text_of(report.findings).find("model.safetensors"), std::string::npos) << text_of(report.findings);
}

TEST(Verify, IndexAgainstShards) {
  const TempDir dir;
  TinyCheckpoint::qwen3_moe().write(dir / "m", 2);
  const Path index = dir / "m" / "model.safetensors.index.json";
  std::string text = read_text(index, 1 << 20);
  const size_t at = text.find("00001-of-00002");
  text.replace(at, 14, "00002-of-00002");
  write_atomically(index, std::string_view(text));
  const VerifyReport report = verify_quietly(dir / "m");
  EXPECT_FALSE(report.ok);
  EXPECT_FALSE(of_rule(report, "index-mismatch").empty()) << text_of(report.findings);
}

TEST(Verify, C53_names_that_match_nothing) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  EXPECT_EQ(tiny.rename("mlp.experts.", "mlp.switch_mlp."), 24u);
  const VerifyReport report = verify_tiny(tiny);
  EXPECT_FALSE(report.ok);
  EXPECT_TRUE(names(report, "unmatched-tensor", "24 unmatched")) << text_of(report.findings);
  EXPECT_TRUE(names(report, "unmatched-tensor", "24 empty parameters")) << text_of(report.findings);
  EXPECT_TRUE(names(report, "unmatched-tensor", "mlp.experts.0.")) << text_of(report.findings);
}

TEST(Verify, C55_missing_router) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.drop("model.layers.1.mlp.gate.weight");
  EXPECT_TRUE(names(verify_tiny(tiny), "empty-parameter", "model.layers.1.mlp.gate.weight"));
}

TEST(Verify, ShapeAgainstConfiguration) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.config()["vocab_size"] = 300;
  const VerifyReport report = verify_tiny(tiny);
  EXPECT_FALSE(report.ok);
  EXPECT_TRUE(names(report, "shape-mismatch", "300")) << text_of(report.findings);
}

TEST(Verify, TiesAgainstConfiguration) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.drop("lm_head.weight");
  EXPECT_FALSE(verify_tiny(tiny).ok);
  tiny.config()["tie_word_embeddings"] = true;
  EXPECT_TRUE(verify_tiny(tiny).ok) << text_of(verify_tiny(tiny).findings);
}

TEST(Verify, UnknownFamiliesAreCheckedToo) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.config()["model_type"] = "nobodys";
  tiny.config()["architectures"] = Json::array({"NobodysModel"});
  const VerifyReport good = verify_tiny(tiny);
  EXPECT_TRUE(good.ok) << text_of(good.findings);
  EXPECT_FALSE(of_rule(good, "unknown-family").empty());
  auto& data = tiny.at("lm_head.weight").data;
  std::fill(data.begin(), data.end(), std::byte{0xFF});
  EXPECT_FALSE(verify_tiny(tiny).ok);
}

// ---- hostile input

TEST(Verify, BrokenConfigurationsAreFindings) {
  const TempDir dir;
  TinyCheckpoint::qwen3_moe().write(dir / "m");
  for (const char* text : {"", "[", "[]", "null", "7", "\"x\"", "{\"model_type\": 5}",
                           "{\"model_type\": \"qwen3_moe\"}", "{\"model_type\": \"qwen3_moe\", \"hidden_size\": -1}",
                           "{\"model_type\": \"qwen3_moe\", \"quantization_config\": []}",
                           "{\"model_type\": \"qwen3_moe\", \"quantization_config\": {\"quant_method\": 5}}"}) {
    write_atomically(dir / "m" / "config.json", std::string_view(text));
    const VerifyReport report = verify_quietly(dir / "m");
    EXPECT_TRUE(of_rule(report, "internal-error").empty()) << text << "\n" << text_of(report.findings);
  }
}

TEST(Verify, EveryTruncationAndEveryFlippedHeaderByteIsSurvived) {
  TinyOptions options;
  options.layers = 1;
  options.experts = 2;
  options.vocabulary = 16;
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe(options);
  tiny.quantize("compressed-tensors", "nvfp4");
  const TempDir dir;
  tiny.write(dir / "m");
  const Path file = dir / "m" / "model.safetensors";
  const std::string content = read_text(file, 1 << 30);
  uint64_t header = 0;
  std::memcpy(&header, content.data(), 8);
  for (size_t i = 0; i < header + 8; i += 97) {
    std::string broken = content;
    broken[i] = static_cast<char>(broken[i] ^ 0x15);
    write_atomically(file, std::string_view(broken));
    const VerifyReport flipped = verify_quietly(dir / "m");
    EXPECT_TRUE(of_rule(flipped, "internal-error").empty()) << i << text_of(flipped.findings);
    write_atomically(file, std::string_view(content).substr(0, i));
    EXPECT_FALSE(verify_quietly(dir / "m").ok) << i;
  }
}

// ---- the report

TEST(Verify, TheReportIsTheSameEveryTime) {
  TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
  tiny.quantize("compressed-tensors", "nvfp4");
  for (const std::string& name : tiny.matching("*weight_scale")) tiny.at(name).data[0] = std::byte{0x7F};
  const TempDir dir;
  tiny.write(dir / "m");
  const std::string first = text_of(verify_quietly(dir / "m").findings);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(text_of(verify_quietly(dir / "m").findings), first);
}

TEST(Verify, RulesHaveStableNamesAndSummaries) {
  std::set<std::string_view> seen;
  for (const Rule* rule : rules()) {
    EXPECT_TRUE(seen.insert(rule->name).second) << rule->name;
    EXPECT_EQ(rule->name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), std::string_view::npos) << rule->name;
    EXPECT_FALSE(rule->summary.empty());
  }
  EXPECT_TRUE(seen.contains("scale-direction"));
}

}  // namespace
}  // namespace nibble
