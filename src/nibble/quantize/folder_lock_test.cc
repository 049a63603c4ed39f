// What a process may remove while another works on the same target.
#include "nibble/quantize/folder_lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "nibble/base/error.h"
#include "nibble/base/log.h"
#include "nibble/base/syscalls.h"
#include "nibble/quantize/journal.h"
#include "nibble/quantize/quantize.h"
#include "nibble/testing/faulty_syscalls.h"
#include "nibble/testing/folder.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/thrown_error.h"
#include "nibble/testing/tiny.h"

namespace nibble {
namespace {

using testing::BadLocks;
using testing::TempDir;
using testing::thrown_error;
using testing::TinyCheckpoint;

constexpr const char* kWeight = "model.layers.0.mlp.experts.1.up_proj.weight";

// The other process, which has the lock until it is waited for.
struct Restarting {
  std::optional<FolderLock> lock;
  Path manifest;
};
Restarting restarting;

class TwoProcesses : public ::testing::Test {
 protected:
  void SetUp() override { log::set_level(log::Level::kOff); }

  QuantizeRequest request(bool broken) const {
    TinyCheckpoint source = TinyCheckpoint::qwen3_moe();
    if (broken) source.set_values(kWeight, std::vector<float>(size_t{32} * 64, std::numeric_limits<float>::infinity()));
    source.write(dir_ / (broken ? "broken" : "source"));
    QuantizeRequest request;
    request.source = dir_ / (broken ? "broken" : "source");
    request.target = dir_ / "target";
    request.format = parse_format("mxfp4");
    request.rule = default_rule(request.format);
    request.quiet = true;
    return request;
  }

  bool exists(const char* name) const { return std::filesystem::exists(dir_ / "target" / name); }

  TempDir dir_;
};

TEST_F(TwoProcesses, PresenceIsSeen) {
  std::filesystem::create_directories(dir_ / "target" / kJournalFolder);
  Presence first(dir_ / "target");
  EXPECT_EQ(first.company(), Company::kAlone);
  {
    Presence second(dir_ / "target");
    EXPECT_EQ(first.company(), Company::kOthers);
    EXPECT_EQ(second.company(), Company::kOthers);
  }
  EXPECT_EQ(first.company(), Company::kAlone);
  const BadLocks none(ENOLCK);
  EXPECT_EQ(first.company(), Company::kUnknown);
}

TEST_F(TwoProcesses, FileSystemsWithoutLocksAreWrittenTo) {
  QuantizeRequest good = request(false);
  quantize(good);
  const auto expected = testing::folder_contents(dir_ / "target");
  const BadLocks none(ENOLCK);
  good.restart = true;
  EXPECT_TRUE(quantize(good).finished);
  EXPECT_EQ(testing::folder_contents(dir_ / "target"), expected);
  std::filesystem::remove_all(dir_ / "target");
  good.restart = false;
  good.shard_bytes = 60'000;
  for (uint32_t worker = 1; worker <= 3; ++worker) {
    good.worker = worker;
    good.workers = 3;
    EXPECT_EQ(quantize(good).finished, worker == 3);
  }
  EXPECT_FALSE(exists(kJournalFolder));
}

TEST_F(TwoProcesses, WhatCannotBeLockedIsSaidWithTheReason) {
  const QuantizeRequest good = request(false);
  {
    const BadLocks broken(EIO);
    const Error error = thrown_error([&] { quantize(good); });
    EXPECT_NE(error.message().find("Input/output error"), std::string::npos) << error.what();
  }
  std::filesystem::remove_all(dir_ / "target");
  for (const char* file : {"lock", "present"}) {
    std::filesystem::create_directories(dir_ / "target" / kJournalFolder / file);
    const Error error = thrown_error([&] { quantize(good); });
    EXPECT_NE(error.message().find("Is a directory"), std::string::npos) << error.what();
    EXPECT_NE(error.file().find(file), std::string::npos) << error.what();
    std::filesystem::remove_all(dir_ / "target");
  }
  std::filesystem::create_directories(dir_ / "target");
  write_atomically(dir_ / "target" / kJournalFolder, "a file");
  const Error error = thrown_error([&] { quantize(good); });
  EXPECT_NE(error.message().find("cannot make the folder"), std::string::npos) << error.what();
}

// A --restart begins with a finished target and no journal: who comes then waits and looks again.
TEST_F(TwoProcesses, AFinishedTargetIsJudgedUnderTheLock) {
  const QuantizeRequest good = request(false);
  quantize(good);
  restarting.lock.emplace(dir_ / "target");
  restarting.manifest = dir_ / "target/nibble.json";
  syscalls().flock = [](int fd, int operation) {
    std::filesystem::remove(restarting.manifest);  // what --restart does next
    restarting.lock.reset();
    syscalls().flock = real_syscalls().flock;
    return real_syscalls().flock(fd, operation);
  };
  const QuantizeResult result = quantize(good);
  syscalls() = real_syscalls();
  EXPECT_FALSE(restarting.lock.has_value());
  for (const std::string& note : result.notes) EXPECT_EQ(note.find("already complete"), std::string::npos) << note;
  EXPECT_TRUE(exists("nibble.json"));
  EXPECT_FALSE(exists(kJournalFolder));
}

TEST_F(TwoProcesses, ARefusalLeavesTheUsersFolder) {
  std::filesystem::create_directories(dir_ / "target");
  EXPECT_NE(thrown_error([&] { quantize(request(true)); }).message().find("infinite"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(dir_ / "target"));
  QuantizeRequest deep = request(true);
  deep.target = dir_ / "made/for/it";
  EXPECT_NE(thrown_error([&] { quantize(deep); }).message().find("infinite"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "made"));
}

// A run that ends with an error takes its journal with it, unless another one counts on that.
TEST_F(TwoProcesses, ARefusalLeavesWhatOthersWorkOn) {
  const QuantizeRequest broken = request(true);
  EXPECT_NE(thrown_error([&] { quantize(broken); }).message().find("infinite"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "target"));
  std::filesystem::create_directories(dir_ / "target" / kJournalFolder);
  const Presence other(dir_ / "target");
  EXPECT_NE(thrown_error([&] { quantize(broken); }).message().find("infinite"), std::string::npos);
  EXPECT_TRUE(exists(".nibble/run.json"));
}

TEST_F(TwoProcesses, RestartIsRefusedWhileAnotherWorks) {
  QuantizeRequest good = request(false);
  good.restart = true;
  std::filesystem::create_directories(dir_ / "target" / kJournalFolder);
  {
    const Presence other(dir_ / "target");
    const Error error = thrown_error([&] { quantize(good); });
    EXPECT_NE(error.message().find("another process works on this target"), std::string::npos) << error.what();
    EXPECT_FALSE(error.ways_out().empty());
  }
  EXPECT_TRUE(quantize(good).finished);
  EXPECT_FALSE(exists(kJournalFolder));
}

// Workers that all find the last shard done: each takes the lock, removes what is there and lets the next one in, which
// meanwhile makes the lock's file again.
TEST_F(TwoProcesses, ManyMayFinishAtOnce) {
  TinyCheckpoint::qwen3_moe().write(dir_ / "source");
  const Checkpoint source = Checkpoint::open(dir_ / "source");
  std::atomic<int> inside{0}, together{0}, failed{0};
  const auto finish = [&] {
    for (int round = 0; round < 300; ++round) {
      try {
        const FolderLock lock(dir_ / "target");
        if (++inside > 1) ++together;
        const Journal journal = Journal::open(dir_ / "target", Json(), source, {"model.safetensors"});
        --inside;
        journal.remove();
      } catch (const Error& error) {
        ++failed;
        ADD_FAILURE() << error.what();
      }
    }
  };
  std::vector<std::thread> workers;
  workers.reserve(4);
  for (int w = 0; w < 4; ++w) workers.emplace_back(finish);
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(together, 0);
  EXPECT_FALSE(exists(kJournalFolder));
}

// Where the file system has no locks, or between one's last step and another's first: what is to be removed goes by
// itself.
TEST_F(TwoProcesses, AnotherMayRemoveTheJournalMeanwhile) {
  TinyCheckpoint::qwen3_moe().write(dir_ / "source");
  const Checkpoint source = Checkpoint::open(dir_ / "source");
  const Path folder = dir_ / "target" / kJournalFolder;
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) {
      for (const char* name : {"lock", "present", "model.safetensors.json"}) ::unlink((folder / name).c_str());
      ::rmdir(folder.c_str());  // while run.json is there it stays
    }
  });
  for (int round = 0; round < 3000; ++round) {
    std::filesystem::create_directories(folder);
    try {
      const Journal journal = Journal::open(dir_ / "target", Json(), source, {"model.safetensors"});
      for (const char* name : {"lock", "present", "model.safetensors.json"}) std::ofstream(folder / name).put('x');
      EXPECT_NO_THROW(journal.remove());
    } catch (const Error& error) {
      EXPECT_NE(error.what(), nullptr);  // the folder went before run.json stood in it
    }
  }
  stop = true;
  other.join();
  EXPECT_FALSE(exists(kJournalFolder));
}

// Nothing of a journal that cannot be read stands in the way of a new beginning; without it the advice is that.
TEST_F(TwoProcesses, ADamagedJournalCanBeLeftBehind) {
  for (const char* text : {"", "{", "[]", "null", "{\"shards\": 1}", "{\"shards\": [1, \"../x\"]}"}) {
    QuantizeRequest good = request(false);
    std::filesystem::create_directories(dir_ / "target" / kJournalFolder);
    write_atomically(dir_ / "target" / kJournalFolder / "run.json", text);
    const Error error = thrown_error([&] { quantize(good); });
    ASSERT_FALSE(error.ways_out().empty()) << text << error.what();
    EXPECT_NE(error.ways_out().back().find("--restart"), std::string::npos) << text << error.what();
    good.restart = true;
    EXPECT_TRUE(quantize(good).finished) << text;
    std::filesystem::remove_all(dir_ / "target");
  }
}

}  // namespace
}  // namespace nibble
