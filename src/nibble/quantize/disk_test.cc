// C39, C125: what a disk can refuse. Room is asked for before the first file is created, and a byte that cannot be read
// is an error that says where it is.
#include <gtest/gtest.h>

#include "nibble/base/error.h"
#include "nibble/base/log.h"
#include "nibble/quantize/quantize.h"
#include "nibble/testing/faulty_syscalls.h"
#include "nibble/testing/folder.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/thrown_error.h"
#include "nibble/testing/tiny.h"

namespace nibble {
namespace {

using testing::BadByte;
using testing::SmallDisk;
using testing::thrown_error;
using testing::TinyCheckpoint;
using testing::value_of;

constexpr uint64_t kSourceShards = 5;

class Disk : public ::testing::Test {
 protected:
  void SetUp() override {
    log::set_level(log::Level::kOff);
    testing::TinyOptions options;
    options.hidden = 256;
    options.intermediate = 128;
    TinyCheckpoint source = TinyCheckpoint::qwen3_moe(options);
    source.quantize("deepseek", "fp8-block");
    source.write(dir_ / "source", kSourceShards);
  }
  QuantizeRequest request(const char* target) const {
    QuantizeRequest request;
    request.source = dir_ / "source";
    request.target = dir_ / target;
    request.format = parse_format("int4-g32");
    request.rule = default_rule(request.format);
    request.shard_bytes = 250'000;
    request.quiet = true;
    return request;
  }
  // Bytes of a finished target, all files.
  uint64_t output_bytes() const {
    quantize(request("undisturbed"));
    uint64_t bytes = 0;
    for (const auto& [name, content] : testing::folder_contents(dir_ / "undisturbed")) bytes += content.size();
    return bytes;
  }
  uint64_t largest_source_shard() const {
    uint64_t bytes = 0;
    for (const auto& [name, content] : testing::folder_contents(dir_ / "source"))
      bytes = std::max<uint64_t>(bytes, content.size());
    return bytes;
  }

  testing::TempDir dir_;
};

TEST_F(Disk, C39_room_for_the_output_and_one_source_shard_is_enough) {
  const uint64_t output = output_bytes();
  const uint64_t shard = largest_source_shard();
  ASSERT_GT(testing::folder_contents(dir_ / "undisturbed").size(), 4u) << "several shards";
  {
    const SmallDisk disk(output + shard);
    quantize(request("target"));
    EXPECT_LE(disk.written(), output + shard) << "whatever was written, removed or not";
  }
  EXPECT_TRUE(testing::folder_contents(dir_ / "target") == testing::folder_contents(dir_ / "undisturbed"));
}

TEST_F(Disk, C39_one_byte_less_than_the_output_is_refused_before_any_file_is_created) {
  const uint64_t output = output_bytes();
  for (const uint64_t room : {output - 1, output / 2, uint64_t{0}}) {
    const SmallDisk disk(room);
    const Error error = thrown_error([&] { quantize(request("target")); });
    EXPECT_FALSE(std::filesystem::exists(dir_ / "target"));
    EXPECT_EQ(disk.written(), 0u);
    EXPECT_EQ(value_of(error, "free"), std::to_string(room));
    const uint64_t needed = std::stoull(value_of(error, "needed"));
    EXPECT_GE(needed, output);
    EXPECT_LE(needed, output + output / 4) << "not much more than it takes";
    EXPECT_EQ(value_of(error, "missing"), std::to_string(needed - room));
    EXPECT_FALSE(error.ways_out().empty());
  }
}

// What the check lets through must also fit: the records at the end are not forgotten.
TEST_F(Disk, C39_what_is_needed_is_enough) {
  uint64_t needed = 0;
  {
    const SmallDisk disk(0);
    needed = std::stoull(value_of(thrown_error([&] { quantize(request("target")); }), "needed"));
  }
  const SmallDisk disk(needed);
  EXPECT_NO_THROW(quantize(request("target")));
}

TEST_F(Disk, C39_a_resumed_run_needs_only_what_is_left) {
  const uint64_t output = output_bytes();
  auto part = request("target");
  part.workers = 2;
  ASSERT_FALSE(quantize(part).finished);
  const SmallDisk disk(output - 250'000 + largest_source_shard() / 2);
  EXPECT_TRUE(quantize(request("target")).finished);
}

TEST_F(Disk, C125_an_unreadable_byte_of_the_source_is_named) {
  quantize(request("undisturbed"));
  for (const uint64_t offset : {uint64_t{3}, uint64_t{150'001}}) {
    const BadByte bad(offset);
    const Error error = thrown_error([&] { quantize(request("target")); });
    EXPECT_NE(error.file().find(".safetensors"), std::string::npos) << error.what();
    EXPECT_EQ(value_of(error, "offset"), std::to_string(offset)) << error.what();
    EXPECT_NE(std::string(error.what()).find("Input/output error"), std::string::npos) << error.what();
    EXPECT_FALSE(std::filesystem::exists(dir_ / "target" / "nibble.json"));
  }
  quantize(request("target"));
  EXPECT_TRUE(testing::folder_contents(dir_ / "target") == testing::folder_contents(dir_ / "undisturbed"));
}

}  // namespace
}  // namespace nibble
