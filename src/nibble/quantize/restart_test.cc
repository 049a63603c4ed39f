// --restart: nothing of an earlier run is left, whatever state that is in, and nothing of anybody else's goes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "nibble/base/error.h"
#include "nibble/base/log.h"
#include "nibble/quantize/quantize.h"
#include "nibble/testing/folder.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/thrown_error.h"
#include "nibble/testing/tiny.h"

namespace nibble {
namespace {

using ::testing::Contains;
using testing::folder_contents;
using ::testing::HasSubstr;
using testing::thrown_error;
using testing::TinyCheckpoint;

constexpr const char* kState = ".nibble/run.json";

class Restart : public ::testing::Test {
 protected:
  void SetUp() override {
    log::set_level(log::Level::kOff);
    TinyCheckpoint::qwen3_moe().write(dir_ / "source");
    quantize(request("undisturbed"));
    expected_ = folder_contents(dir_ / "undisturbed");
  }

  QuantizeRequest request(const char* target, uint64_t shard_bytes = UINT64_MAX) const {
    QuantizeRequest request;
    request.source = dir_ / "source";
    request.target = dir_ / target;
    request.format = parse_format("mxfp4");
    request.rule = default_rule(request.format);
    request.shard_bytes = shard_bytes;
    request.quiet = true;
    return request;
  }

  // A journal with some of its shards done.
  void stop_in_the_middle() const {
    QuantizeRequest part = request("target", 30'000);
    part.workers = 2;
    ASSERT_FALSE(quantize(part).finished);
  }

  void put(const std::string& name, const char* text = "mine") const { write_atomically(dir_ / "target" / name, text); }

  // Runs with --restart; what is there then besides an undisturbed run's files.
  std::vector<std::string> left_over() const {
    QuantizeRequest again = request("target");
    again.restart = true;
    EXPECT_TRUE(quantize(again).finished);
    auto got = folder_contents(dir_ / "target");
    for (const auto& [name, content] : expected_) {
      EXPECT_TRUE(got[name] == content) << name;
      got.erase(name);
    }
    std::vector<std::string> names;
    names.reserve(got.size());
    for (const auto& [name, content] : got) names.push_back(name);
    return names;
  }

  testing::TempDir dir_;
  std::map<std::string, std::string> expected_;
};

TEST_F(Restart, TakesWhatWasBeingWritten) {
  stop_in_the_middle();
  for (const char* name : {"model-00003-of-00012.safetensors.partial", "model.safetensors.partial",
                           "config.json.partial", "nibble.json.partial", "model.safetensors.index.json.partial"})
    put(name);
  put("letter.partial");
  EXPECT_THAT(left_over(), ::testing::ElementsAre("letter.partial"));
}

TEST_F(Restart, TakesTheShardsOfADamagedJournal) {
  for (const char* state : {"", "{", "[]", "{\"shards\": 1}", "{\"shards\": [null]}"}) {
    stop_in_the_middle();
    put(kState, state);
    put("model-user.safetensors");
    EXPECT_THAT(left_over(), ::testing::ElementsAre("model-user.safetensors")) << state;
    std::filesystem::remove_all(dir_ / "target");
  }
}

// The run was stopped when its weights and all but its manifest were there.
TEST_F(Restart, TakesTheFilesOfAnUnfinishedEnd) {
  stop_in_the_middle();
  put("hf_quant_config.json");
  put("model.safetensors.index.json");
  EXPECT_THAT(left_over(), ::testing::IsEmpty());
}

TEST_F(Restart, LeavesOthersFilesWhateverAJournalSays) {
  stop_in_the_middle();
  put(kState, R"({"shards": ["notes.txt", "tokenizer.json", "model-user.safetensors", "sub/model.safetensors"]})");
  const std::vector<std::string> others{"model-user.safetensors", "notes.txt", "sub/model.safetensors",
                                        "tokenizer.json"};
  std::filesystem::create_directories(dir_ / "target/sub");
  for (const std::string& name : others) put(name);
  const auto left = left_over();
  for (const std::string& name : others) EXPECT_THAT(left, Contains(name));
}

TEST_F(Restart, LeavesOthersFilesWhateverAManifestSays) {
  for (const char* manifest :
       {"{", R"({"outputs": [{"file": "notes.txt"}, {"file": "model-user.safetensors"}, {"file": "../x"}]})"}) {
    quantize(request("target"));
    put("nibble.json", manifest);
    put("notes.txt");
    put("model-user.safetensors");
    put("model-1-of-2.safetensors");
    EXPECT_THAT(left_over(), ::testing::ElementsAre("model-1-of-2.safetensors", "model-user.safetensors", "notes.txt"));
    std::filesystem::remove_all(dir_ / "target");
  }
}

TEST_F(Restart, IsTheAdviceForADamagedManifest) {
  quantize(request("target"));
  for (const char* text : {"", "{\"a", "[]", "{\"contract\": 4}", "\xFF"}) {
    put("nibble.json", text);
    const Error error = thrown_error([&] { quantize(request("target")); });
    EXPECT_THAT(error.file(), HasSubstr("nibble.json")) << error.what();
    EXPECT_THAT(error.ways_out(), Contains(HasSubstr("--restart"))) << error.what();
  }
  EXPECT_THAT(left_over(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace nibble
