// A target that is finished: what is run again over it, and what has become of it meanwhile.
#include "nibble/quantize/finished_target.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/base/log.h"
#include "nibble/quantize/quantize.h"
#include "nibble/testing/folder.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/thrown_error.h"
#include "nibble/testing/tiny.h"

namespace nibble {
namespace {

using testing::folder_contents;

// What lies beside its shards: config.json, index, tokenizer, a file of a folder in it.
class FinishedTarget : public ::testing::Test {
 protected:
  void SetUp() override {
    log::set_level(log::Level::kOff);
    testing::TinyCheckpoint::qwen3_moe().write(dir_ / "source");
    std::filesystem::create_directories(dir_ / "source/original");
    write_atomically(dir_ / "source/original/params.json", std::string_view("{}"));
    write_atomically(dir_ / "source/tokenizer.json", std::string_view("{\"a\": 1}"));
    quantize(request());
    expected_ = folder_contents(dir_ / "target");
  }

  QuantizeRequest request() const {
    QuantizeRequest request;
    request.source = dir_ / "source";
    request.target = dir_ / "target";
    request.format = parse_format("nvfp4");
    request.rule = default_rule(request.format);
    request.shard_bytes = 60'000;  // several shards
    request.quiet = true;
    return request;
  }

  void expect_same() const { EXPECT_EQ(folder_contents(dir_ / "target"), expected_); }

  const std::vector<std::string> beside_{"config.json", "model.safetensors.index.json", "tokenizer.json",
                                         "original/params.json"};
  testing::TempDir dir_;
  std::map<std::string, std::string> expected_;
};

TEST_F(FinishedTarget, gets_again_what_is_missing_beside_the_shards) {
  for (const std::string& name : beside_) {
    ASSERT_TRUE(expected_.contains(name)) << name;
    std::filesystem::remove(dir_ / "target" / name);
    const QuantizeResult result = quantize(request());
    ASSERT_FALSE(result.notes.empty());
    EXPECT_NE(result.notes.back().find(name), std::string::npos) << result.notes.back();
    expect_same();
  }
  std::filesystem::remove_all(dir_ / "target/original");
  quantize(request());
  expect_same();
}

TEST_F(FinishedTarget, with_another_file_beside_the_shards_is_refused) {
  for (const std::string& name : beside_) {
    for (const std::string& content :
         {expected_.at(name).substr(0, 20) + "...", std::string(), expected_.at(name) + " "}) {
      write_atomically(dir_ / "target" / name, content);
      const Error error = testing::thrown_error([&] { quantize(request()); });
      EXPECT_TRUE(error.file().ends_with(name)) << error.what();
      ASSERT_EQ(error.ways_out().size(), 3u) << error.what();
      std::filesystem::remove(dir_ / "target" / name);  // as the last of the ways out has it
      quantize(request());
      expect_same();
    }
  }
}

// Its manifest records the old one.
TEST_F(FinishedTarget, of_a_source_with_another_tokenizer_is_refused) {
  for (const bool there : {true, false}) {
    write_atomically(dir_ / "source/tokenizer.json", std::string_view("{\"a\": 2}"));
    if (!there) std::filesystem::remove(dir_ / "target/tokenizer.json");
    const Error error = testing::thrown_error([&] { quantize(request()); });
    EXPECT_TRUE(error.file().ends_with("target/tokenizer.json")) << error.what();
    EXPECT_EQ(std::filesystem::exists(dir_ / "target/tokenizer.json"), there);
  }
}

TEST_F(FinishedTarget, may_have_documents_that_were_edited) {
  write_atomically(dir_ / "source/README.md", std::string_view("of the source"));
  auto again = request();
  again.restart = true;
  quantize(again);
  write_atomically(dir_ / "target/README.md", std::string_view("of the target"));
  EXPECT_NO_THROW(quantize(request()));
  EXPECT_EQ(read_text(dir_ / "target/README.md", 100), "of the target");
}

// Those of versions that recorded the shards alone.
TEST_F(FinishedTarget, whose_manifest_records_the_shards_alone_is_judged_by_the_source) {
  Json manifest = read_json(dir_ / "target/nibble.json", 1 << 20);
  Json shards = Json::array();
  for (const Json& output : manifest["outputs"]) {
    if (output["file"].get<std::string>().ends_with(".safetensors")) shards.push_back(output);
  }
  ASSERT_LT(shards.size(), manifest["outputs"].size());
  manifest["outputs"] = shards;
  write_atomically(dir_ / "target/nibble.json", json_text(manifest));
  EXPECT_NO_THROW(quantize(request()));
  std::filesystem::remove(dir_ / "target/tokenizer.json");
  quantize(request());
  EXPECT_EQ(read_text(dir_ / "target/tokenizer.json", 100), "{\"a\": 1}");
}

}  // namespace
}  // namespace nibble
