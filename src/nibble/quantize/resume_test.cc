// Whatever stops a run, and whenever: run again, and the output is byte for byte that of an undisturbed one.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include "nibble/base/error.h"
#include "nibble/base/log.h"
#include "nibble/quantize/quantize.h"
#include "nibble/testing/faulty_syscalls.h"
#include "nibble/testing/folder.h"
#include "nibble/testing/temp_dir.h"

namespace nibble {
namespace {

using testing::FaultySyscalls;
using testing::folder_contents;

QuantizeRequest request_for(const Path& source, const Path& target, const std::string& format = "nvfp4") {
  QuantizeRequest request;
  request.source = source;
  request.target = target;
  request.format = parse_format(format);
  request.rule = default_rule(request.format);
  request.shard_bytes = 60'000;  // several shards
  request.quiet = true;
  return request;
}

class Resume : public ::testing::Test {
 protected:
  void SetUp() override {
    log::set_level(log::Level::kOff);
    testing::copy_folder(testing::golden_dir() / "models" / "qwen3_moe", dir_ / "source");
    quantize(request_for(dir_ / "source", dir_ / "undisturbed"));
    expected_ = folder_contents(dir_ / "undisturbed");
  }

  QuantizeRequest request() const { return request_for(dir_ / "source", dir_ / "target"); }
  void expect_same() const {
    const auto got = folder_contents(dir_ / "target");
    ASSERT_EQ(got.size(), expected_.size());
    for (const auto& [name, content] : expected_) {
      ASSERT_TRUE(got.contains(name)) << name;
      EXPECT_TRUE(got.at(name) == content) << name << " differs";
    }
  }
  uint64_t count_calls() {
    const FaultySyscalls counter;
    quantize(request_for(dir_ / "source", dir_ / "counted"));
    return counter.calls();
  }

  testing::TempDir dir_;
  std::map<std::string, std::string> expected_;
};

TEST_F(Resume, the_undisturbed_run_has_several_shards_and_leaves_no_journal) {
  EXPECT_TRUE(expected_.contains("model.safetensors.index.json"));
  EXPECT_TRUE(expected_.contains("nibble.json"));
  for (const auto& [name, content] : expected_) {
    EXPECT_EQ(name.find(".nibble/"), std::string::npos) << name;
    EXPECT_EQ(name.find(".partial"), std::string::npos) << name;
  }
}

TEST_F(Resume, killed_at_any_call_then_run_again_gives_the_same_bytes) {
  const uint64_t calls = count_calls();
  ASSERT_GT(calls, 20u);
  for (uint64_t n = 0; n < calls; ++n) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const FaultySyscalls fault(n, FaultySyscalls::Kill::kNow);
      quantize(request());
      ::_exit(3);  // not reached: the call comes before the end
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "call " << n;
    quantize(request());
    expect_same();
    std::filesystem::remove_all(dir_ / "target");
  }
}

TEST_F(Resume, full_disk_at_any_call_is_an_error_and_loses_nothing) {
  const uint64_t calls = count_calls();
  for (uint64_t n = 0; n < calls; ++n) {
    {
      const FaultySyscalls fault(n, ENOSPC, true);
      EXPECT_THROW(quantize(request()), Error) << "call " << n;
    }
    // A whole shard that no record knows would take the space that making it again needs.
    for (const auto& [name, content] : testing::folder_contents(dir_ / "target")) {
      const bool shard = name.starts_with("model") && name.ends_with(".safetensors");
      EXPECT_TRUE(!shard || std::filesystem::exists(dir_ / "target/.nibble" / (name + ".json")) ||
                  !std::filesystem::exists(dir_ / "target/.nibble/run.json"))
          << "call " << n << ": " << name;
    }
    quantize(request());
    expect_same();
    std::filesystem::remove_all(dir_ / "target");
  }
}

// One has all the work: the others must not begin again what it has finished meanwhile.
TEST_F(Resume, workers_without_work_leave_a_finished_target_alone) {
  for (int round = 0; round < 10; ++round) {
    std::vector<std::jthread> workers;
    for (uint32_t i = 1; i <= 8; ++i) {
      workers.emplace_back([this, i] {
        auto part = request();
        part.shard_bytes = uint64_t{1} << 30;
        part.threads = 1;
        part.worker = i;
        part.workers = 8;
        quantize(part);
      });
    }
    workers.clear();
    for (const auto& [name, content] : testing::folder_contents(dir_ / "target"))
      EXPECT_EQ(name.find(".nibble/"), std::string::npos) << name;
    EXPECT_TRUE(std::filesystem::exists(dir_ / "target/nibble.json"));
    std::filesystem::remove_all(dir_ / "target");
  }
}

TEST_F(Resume, one_io_error_at_any_call_is_an_error_and_loses_nothing) {
  const uint64_t calls = count_calls();
  for (uint64_t n = 0; n < calls; ++n) {
    std::string message;
    {
      const FaultySyscalls fault(n, EIO, false);
      try {
        quantize(request());
      } catch (const Error& error) {
        message = error.what();
      }
    }
    EXPECT_NE(message.find("Input/output error"), std::string::npos) << "call " << n << ": " << message;
    quantize(request());
    expect_same();
    std::filesystem::remove_all(dir_ / "target");
  }
}

TEST_F(Resume, any_number_of_threads_gives_the_same_bytes) {
  for (const int threads : {2, 3, 8}) {
    auto threaded = request();
    threaded.threads = threads;
    quantize(threaded);
    expect_same();
    std::filesystem::remove_all(dir_ / "target");
  }
}

TEST_F(Resume, any_number_of_workers_in_any_order_gives_the_same_bytes) {
  for (const uint32_t workers : {2u, 3u, 7u}) {
    for (uint32_t i = workers; i >= 1; --i) {
      auto part = request();
      part.worker = i;
      part.workers = workers;
      const QuantizeResult result = quantize(part);
      EXPECT_EQ(result.finished, i == 1 || result.shards_left == 0) << i << "/" << workers;
    }
    expect_same();
    std::filesystem::remove_all(dir_ / "target");
  }
}

TEST_F(Resume, a_dead_workers_part_can_be_done_by_another) {
  auto part = request();
  part.workers = 3;
  for (const uint32_t i : {1u, 3u}) {
    part.worker = i;
    EXPECT_FALSE(quantize(part).finished);
  }
  quantize(request());  // nobody is worker 2: a run without --worker takes what is left
  expect_same();
}

// C21: a resumed run must not go on with changed inputs or options.
class C21_resume_refuses_changes : public Resume {
 protected:
  void stop_in_the_middle() {
    auto part = request();
    part.workers = 2;
    ASSERT_FALSE(quantize(part).finished);
  }
  std::string refusal(const QuantizeRequest& changed) {
    try {
      quantize(changed);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(C21_resume_refuses_changes, one_byte_of_a_source_shard) {
  stop_in_the_middle();
  const Path file = dir_ / "source/model.safetensors";
  std::string content = read_text(file, UINT64_MAX);
  content[content.size() - 100] = static_cast<char>(content[content.size() - 100] ^ 1);
  write_atomically(file, content);
  const std::string message = refusal(request());
  EXPECT_NE(message.find("model.safetensors"), std::string::npos) << message;
  EXPECT_NE(message.find("--restart"), std::string::npos) << message;
  auto again = request();
  again.restart = true;
  quantize(again);
  EXPECT_TRUE(folder_contents(dir_ / "target").contains("model.safetensors.index.json"));
}

TEST_F(C21_resume_refuses_changes, the_group_size_with_both_values) {
  auto part = request_for(dir_ / "source", dir_ / "target", "int4-g32");
  part.shard_bytes = 50'000;
  part.workers = 2;
  ASSERT_FALSE(quantize(part).finished);
  auto changed = request_for(dir_ / "source", dir_ / "target", "int4-g16");
  changed.shard_bytes = 50'000;
  const std::string message = refusal(changed);
  EXPECT_NE(message.find("recipe.format"), std::string::npos) << message;
  EXPECT_NE(message.find("int4-g32"), std::string::npos) << message;
  EXPECT_NE(message.find("int4-g16"), std::string::npos) << message;
}

TEST_F(C21_resume_refuses_changes, the_contract_version) {
  stop_in_the_middle();
  const Path journal = dir_ / "target/.nibble/run.json";
  std::string text = read_text(journal, UINT64_MAX);
  const std::string field = fmt::format("\"contract\": {}", kContractVersion);
  ASSERT_NE(text.find(field), std::string::npos);
  text.replace(text.find(field), field.size(), "\"contract\": 0");
  write_atomically(journal, text);
  const std::string message = refusal(request());
  EXPECT_NE(message.find("contract"), std::string::npos) << message;
}

TEST_F(C21_resume_refuses_changes, a_key_of_the_configuration_with_both_values) {
  stop_in_the_middle();
  const Path file = dir_ / "source/config.json";
  std::string config = read_text(file, UINT64_MAX);
  const std::string key = "\"rms_norm_eps\": ";
  const size_t at = config.find(key);
  ASSERT_NE(at, std::string::npos) << config;
  const size_t end = config.find_first_of(",\n}", at);
  const std::string old = config.substr(at + key.size(), end - at - key.size());
  config.replace(at, end - at, key + "0.25");
  write_atomically(file, config);
  const std::string message = refusal(request());
  EXPECT_NE(message.find("source.config.rms_norm_eps"), std::string::npos) << message;
  EXPECT_NE(message.find("0.25"), std::string::npos) << message;
  EXPECT_NE(message.find(old), std::string::npos) << message;
}

// NaN is not equal to itself, but a configuration that holds it has not changed.
TEST_F(C21_resume_refuses_changes, no_configuration_with_a_nan_that_stays) {
  const Path file = dir_ / "source/config.json";
  std::string config = read_text(file, UINT64_MAX);
  config.insert(config.find('{') + 1, "\"time_step_limit\": [0.0, Infinity], \"x\": NaN, \"y\": {\"z\": [NaN]},");
  write_atomically(file, config);
  stop_in_the_middle();
  EXPECT_EQ(refusal(request()), "");
  std::filesystem::remove_all(dir_ / "target");
  stop_in_the_middle();
  config.replace(config.find("NaN"), 3, "1.5");
  write_atomically(file, config);
  const std::string message = refusal(request());
  EXPECT_NE(message.find("source.config.x"), std::string::npos) << message;
  EXPECT_NE(message.find("NaN"), std::string::npos) << message;
  EXPECT_NE(message.find("1.5"), std::string::npos) << message;
}

TEST_F(C21_resume_refuses_changes, a_list_with_both_values_on_one_line) {
  const Path file = dir_ / "source/config.json";
  const std::string config = read_text(file, UINT64_MAX);
  const auto with = [&config](const char* list) {
    std::string text = config;
    text.insert(text.find('{') + 1, fmt::format("\"limits\": {},", list));
    return text;
  };
  write_atomically(file, with("[0.0, Infinity]"));
  stop_in_the_middle();
  write_atomically(file, with("[0.0, \"a\\n  b\"]"));
  const std::string message = refusal(request());
  EXPECT_NE(message.find("old [0.0,Infinity]"), std::string::npos) << message;
  EXPECT_NE(message.find(R"(new [0.0,"a\n  b"])"), std::string::npos) << message;
}

TEST_F(C21_resume_refuses_changes, a_finished_target_of_another_source) {
  quantize(request());
  std::filesystem::last_write_time(dir_ / "source/model.safetensors",
                                   std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_EQ(refusal(request()), "") << "younger, but the same";
  const Path file = dir_ / "source/model.safetensors";
  std::string content = read_text(file, UINT64_MAX);
  content[content.size() - 100] = static_cast<char>(content[content.size() - 100] ^ 1);
  write_atomically(file, content);
  std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  std::string message = refusal(request());
  EXPECT_NE(message.find("old_xxh3_128"), std::string::npos) << message;
  EXPECT_NE(message.find("--restart"), std::string::npos) << message;
  auto again = request();
  again.restart = true;
  quantize(again);
  EXPECT_EQ(refusal(request()), "");
  write_atomically(file, content + "x");
  EXPECT_NE(refusal(request()), "");
}

TEST_F(C21_resume_refuses_changes, a_finished_target_of_another_configuration) {
  quantize(request());
  const Path file = dir_ / "source/config.json";
  std::string config = read_text(file, UINT64_MAX);
  const size_t at = config.find("\"rms_norm_eps\"");
  ASSERT_NE(at, std::string::npos);
  config.insert(at, "\"something_else\": 1, ");
  write_atomically(file, config);
  const std::string message = refusal(request());
  EXPECT_NE(message.find("config.json"), std::string::npos) << message;
}

TEST_F(Resume, a_damaged_record_of_the_journal_is_work_to_be_done_again) {
  for (const char* content : {"", "[]", R"({"bytes": 1})", R"({"bytes": 1, "tensors": 7})"}) {
    auto part = request();
    part.workers = 2;
    ASSERT_FALSE(quantize(part).finished);
    size_t damaged = 0;
    for (const Path& path : list_files(dir_ / "target/.nibble")) {
      if (path.filename() == "run.json" || path.extension() != ".json") continue;
      write_atomically(path, std::string_view(content));
      ++damaged;
    }
    ASSERT_GE(damaged, 2u);
    quantize(request());
    expect_same();
    std::filesystem::remove_all(dir_ / "target");
  }
}

TEST_F(Resume, restart_leaves_nothing_of_the_finished_result) {
  auto first = request_for(dir_ / "source", dir_ / "target", "mxfp4");
  first.shard_bytes = 20'000;  // more shards than the next one has
  quantize(first);
  write_atomically(dir_ / "target/letter.txt", std::string_view("mine"));
  auto again = request();
  again.restart = true;
  quantize(again);
  expected_["letter.txt"] = "mine";
  expect_same();
  first.restart = true;
  first.shard_bytes = UINT64_MAX;  // one file and no index
  quantize(first);
  const auto got = folder_contents(dir_ / "target");
  EXPECT_FALSE(got.contains("model.safetensors.index.json"));
  EXPECT_TRUE(got.contains("model.safetensors"));
  for (const auto& [name, content] : got) EXPECT_EQ(name.find("-of-"), std::string::npos) << name;
}

TEST_F(Resume, a_damaged_manifest_is_refused) {
  quantize(request());
  const Path path = dir_ / "target/nibble.json";
  const std::string whole = read_text(path, UINT64_MAX);
  for (const char* key : {"\"tensors\"", "\"role\"", "\"recipe\"", "\"inputs\"", "\"contract\""}) {
    std::string text = whole;
    text.replace(text.find(key) + 1, 1, "x");
    write_atomically(path, text);
    EXPECT_THROW(quantize(request()), Error) << key;
  }
  for (const char* text : {"", "[]", "{\"recipe\": 5}"}) {
    write_atomically(path, std::string_view(text));
    EXPECT_THROW(quantize(request()), Error) << text;
  }
  auto again = request();
  again.restart = true;
  quantize(again);
  expect_same();
}

TEST_F(Resume, what_a_run_killed_while_it_cleaned_up_leaves_is_removed) {
  quantize(request());
  std::filesystem::create_directories(dir_ / "target/.nibble");
  write_atomically(dir_ / "target/.nibble/lock", std::string_view());
  quantize(request());
  EXPECT_FALSE(std::filesystem::exists(dir_ / "target/.nibble"));
  expect_same();
}

TEST_F(Resume, a_finished_target_is_left_alone_and_another_recipe_is_refused) {
  quantize(request());
  EXPECT_NO_THROW(quantize(request()));
  expect_same();
  auto other = request();
  other.keep = {"name:model.layers.0.mlp.experts.0.*"};
  EXPECT_THROW(quantize(other), Error);
  expect_same();
}

}  // namespace
}  // namespace nibble
