// What a scan reports of folders whose index, shards and names do not fit together.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nibble/checkpoint/checkpoint.h"
#include "nibble/checkpoint/checkpoint_folder_test.h"
#include "nibble/checkpoint/shard_index.h"
#include "nibble/testing/thrown_error.h"

namespace nibble {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace folder_test;  // NOLINT(google-build-using-namespace): helpers of tests, no header
using testing::TempDir;
using testing::thrown_error;
using testing::value_of;

TEST(CheckpointScan, C51_stale_index) {
  const TempDir dir;
  std::vector<std::pair<std::string, std::string>> map;
  for (int i = 1; i <= 30; ++i) map.emplace_back(fmt::format("t{:02}", i), shard_name(i, 30));
  write_index(dir.path(), map, 30);
  for (int i = 1; i <= 15; ++i)
    write_shard(dir / shard_name(i, 15), {fmt::format("t{:02}", 2 * i - 1), fmt::format("t{:02}", 2 * i)});
  const Error error = thrown_error([&] { Checkpoint::open(dir.path()); });
  EXPECT_EQ(error.file(), (dir / "model.safetensors.index.json").string());
  EXPECT_EQ(value_of(error, "named"), "30");
  EXPECT_EQ(value_of(error, "present"), "0");
  EXPECT_EQ(value_of(error, "others"), "15");
  EXPECT_THAT(error.what(), HasSubstr("--reindex"));
  Findings findings;
  const Checkpoint listed = Checkpoint::scan(dir.path(), {}, &findings);
  EXPECT_THAT(rules(findings), ElementsAre("index-mismatch"));
  EXPECT_EQ(listed.tensors().size(), 30u);

  Findings rebuilt;
  rebuild_index(dir.path(), &rebuilt);
  EXPECT_FALSE(has_error(rebuilt));
  const ShardIndex index = read_shard_index(dir / "model.safetensors.index.json");
  EXPECT_EQ(index.weights.size(), 30u);
  EXPECT_EQ(index.files.size(), 15u);
  EXPECT_EQ(index.total_size, 30u);
  EXPECT_EQ(Checkpoint::open(dir.path()).tensors().size(), 30u);
}

TEST(CheckpointScan, C51_some_files_present_and_others_found) {
  const Folder folder;
  std::filesystem::rename(folder / shard_name(2, 2), folder / shard_name(2, 3));
  const Findings findings = folder.scan();
  EXPECT_THAT(rules(findings), ElementsAre("index-mismatch", "missing-file"));
  EXPECT_EQ(value_of(findings[0], "named"), "2");
  EXPECT_EQ(value_of(findings[0], "present"), "1");
  EXPECT_EQ(value_of(findings[0], "others"), "1");
  EXPECT_EQ(findings[1].file, (folder / shard_name(2, 2)).string());
  EXPECT_EQ(value_of(findings[1], "tensors_in_it"), "2");
}

TEST(RebuildIndex, RefusesDoubleTensorsDamagedAndMissingShardsAndWritesNothing) {
  const Folder folder;
  const std::string before = read_text(folder / "model.safetensors.index.json", 1 << 20);
  const auto refused = [&] {
    Findings findings;
    rebuild_index(folder.path(), &findings);
    EXPECT_EQ(read_text(folder / "model.safetensors.index.json", 1 << 20), before);
    return rules(findings);
  };
  write_shard(folder / shard_name(2, 2), {"c", "b"});
  EXPECT_THAT(refused(), ElementsAre("duplicate-tensor"));
  write_atomically(folder / shard_name(2, 2), std::string_view("12345678{}"));
  EXPECT_THAT(refused(), ElementsAre("bad-header"));
  std::filesystem::remove(folder / shard_name(2, 2));
  EXPECT_THAT(refused(), ElementsAre("missing-file"));
  std::filesystem::remove(folder / shard_name(1, 2));
  EXPECT_THAT(refused(), ElementsAre("no-weights"));
}

TEST(RebuildIndex, LeavesOtherFormsOfTheModelOut) {
  const Folder folder;
  write_shard(folder / "consolidated.safetensors", {"a", "x"});
  std::filesystem::remove(folder / "model.safetensors.index.json");
  Findings findings;
  rebuild_index(folder.path(), &findings);
  EXPECT_FALSE(has_error(findings));
  EXPECT_EQ(read_shard_index(folder / "model.safetensors.index.json").weights.size(), 4u);
}

TEST(CheckpointScan, C115_one_name_in_two_shards) {
  const Folder folder;
  write_shard(folder / shard_name(2, 2), {"c", "d", "a"});
  const Findings findings = folder.scan();
  EXPECT_THAT(rules(findings), ElementsAre("duplicate-tensor"));
  EXPECT_EQ(findings[0].tensor, "a");
  EXPECT_EQ(value_of(findings[0], "first_file"), shard_name(1, 2));
  EXPECT_EQ(value_of(findings[0], "second_file"), shard_name(2, 2));
  const Checkpoint checkpoint = [&] {
    Findings ignored;
    return Checkpoint::scan(folder.path(), {}, &ignored);
  }();
  const StoredTensor& first = checkpoint.tensors()[0];
  EXPECT_EQ(value_of(findings[0], "first_bytes_at"), fmt::format("[{}, {}]", first.offset, first.offset + 1));
  EXPECT_EQ(checkpoint.find("a"), 0);
}

TEST(CheckpointScan, C115_one_name_in_two_shards_of_which_the_index_names_one) {
  const Folder folder;
  write_shard(folder / shard_name(1, 2), {"w"});
  write_shard(folder / shard_name(2, 2), {"w"});
  folder.index({{"w", 1}}, 1);
  const Findings findings = folder.scan();
  ASSERT_THAT(rules(findings), ElementsAre("duplicate-tensor"));
  EXPECT_EQ(value_of(findings[0], "first_file"), shard_name(1, 2));
  EXPECT_EQ(value_of(findings[0], "second_file"), shard_name(2, 2));
  std::filesystem::remove(folder / "model.safetensors.index.json");
  EXPECT_THAT(rules(folder.scan()), ElementsAre("missing-file", "duplicate-tensor"));
}

TEST(CheckpointScan, AShardThatTheIndexForgot) {
  const Folder folder;
  folder.index({{"a", 1}, {"b", 1}}, 2);
  const Findings findings = folder.scan();
  ASSERT_THAT(rules(findings), ElementsAre("index-mismatch", "index-mismatch"));
  EXPECT_EQ(findings[0].tensor, "c");
  EXPECT_EQ(value_of(findings[0], "found_in"), shard_name(2, 2));
  EXPECT_EQ(findings[1].tensor, "d");
}

TEST(CheckpointScan, IndexAndShardsThatDisagree) {
  const Folder folder;
  folder.index({{"a", 1}, {"b", 1}, {"c", 2}, {"d", 2}, {"e", 2}}, 4);
  Findings findings = folder.scan();
  EXPECT_THAT(rules(findings), ElementsAre("index-mismatch"));
  EXPECT_EQ(findings[0].tensor, "e");
  EXPECT_EQ(value_of(findings[0], "named_shard"), shard_name(2, 2));

  folder.index({{"a", 1}, {"b", 1}, {"c", 2}}, 4);
  findings = folder.scan();
  EXPECT_THAT(rules(findings), ElementsAre("index-mismatch", "index-mismatch"));
  EXPECT_EQ(findings[0].tensor, "d");
  EXPECT_EQ(findings[0].severity, Severity::kError);
  EXPECT_EQ(findings[1].severity, Severity::kNote);  // total_size is 4, the index's tensors make 3

  folder.index({{"a", 1}, {"b", 2}, {"c", 2}, {"d", 2}}, 4);
  findings = folder.scan();
  EXPECT_THAT(rules(findings), ElementsAre("index-mismatch"));
  EXPECT_EQ(findings[0].tensor, "b");
  EXPECT_EQ(value_of(findings[0], "named_shard"), shard_name(2, 2));
  EXPECT_EQ(value_of(findings[0], "found_in"), shard_name(1, 2));
}

TEST(CheckpointScan, WrongTotalSizeIsANote) {
  const Folder folder;
  folder.index({{"a", 1}, {"b", 1}, {"c", 2}, {"d", 2}}, 999);
  const Findings findings = folder.scan();
  ASSERT_THAT(rules(findings), ElementsAre("index-mismatch"));
  EXPECT_EQ(findings[0].severity, Severity::kNote);
  EXPECT_EQ(value_of(findings[0], "total_size"), "999");
  EXPECT_EQ(value_of(findings[0], "sum"), "4");
  EXPECT_EQ(Checkpoint::open(folder.path()).tensors().size(), 4u);
}

TEST(CheckpointScan, AnIndexOfAnotherModelDoesNotPrintEveryTensor) {
  const TempDir dir;
  std::vector<std::pair<std::string, std::string>> map;
  map.reserve(1000);
  for (int i = 0; i < 1000; ++i) map.emplace_back(fmt::format("t{}", i), "model.safetensors");
  write_shard(dir / "model.safetensors", {"x"});
  write_index(dir.path(), map, 1000);
  Findings findings;
  Checkpoint::scan(dir.path(), {}, &findings);
  ASSERT_EQ(findings.size(), 22u);
  EXPECT_EQ(findings[20].message, "980 more tensors like the 20 above");
  EXPECT_EQ(value_of(findings[20], "tensors"), "1000");
  EXPECT_EQ(findings[21].tensor, "x");
}

TEST(CheckpointScan, MissingShardAndDanglingLink) {
  const Folder folder;
  std::filesystem::remove(folder / shard_name(2, 2));
  Findings findings = folder.scan();
  ASSERT_THAT(rules(findings), ElementsAre("missing-file"));
  EXPECT_EQ(findings[0].file, (folder / shard_name(2, 2)).string());
  EXPECT_EQ(value_of(findings[0], "tensors_in_it"), "2");
  EXPECT_EQ(value_of(findings[0], "named"), "2");
  EXPECT_EQ(value_of(findings[0], "present"), "1");
  std::filesystem::create_symlink("../blobs/12ab", folder / shard_name(2, 2));
  findings = folder.scan();
  ASSERT_THAT(rules(findings), ElementsAre("missing-file"));
  EXPECT_EQ(value_of(findings[0], "is_a_link_to"), "../blobs/12ab");
}

// As caches leave them whose blobs were cleaned away.
TEST(CheckpointScan, LinksThatLeadNowhereAreNoWeights) {
  const TempDir dir;
  write_atomically(dir / "config.json", std::string_view("{}"));
  std::filesystem::create_symlink("../blobs/12ab", dir / "model.safetensors");
  Findings findings;
  Checkpoint::scan(dir.path(), {}, &findings);
  ASSERT_THAT(rules(findings), ElementsAre("no-weights"));
  EXPECT_EQ(value_of(findings[0], "link"), "model.safetensors");
  EXPECT_EQ(value_of(findings[0], "is_a_link_to"), "../blobs/12ab");
}

TEST(CheckpointScan, FilesThatTheIndexDoesNotNameAreWarnings) {
  const Folder folder;
  write_shard(folder / "consolidated.safetensors", {"a"});
  const Findings findings = folder.scan();
  ASSERT_THAT(rules(findings), ElementsAre("extra-file"));
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
  EXPECT_EQ(findings[0].file, (folder / "consolidated.safetensors").string());
  EXPECT_EQ(Checkpoint::open(folder.path()).tensors().size(), 4u);
}

TEST(CheckpointScan, SubFoldersAreNotEntered) {
  const Folder folder;
  std::filesystem::create_directory(folder / "original");
  write_shard(folder / "original" / Path("model.safetensors"), {"a"});
  EXPECT_THAT(folder.scan(), IsEmpty());
}

TEST(CheckpointScan, WithoutAnIndex) {
  const auto scan = [](const std::vector<std::pair<std::string, std::string>>& files, Findings* findings) {
    const TempDir dir;
    for (const auto& [file, tensor] : files) write_shard(dir / file, {tensor});
    return tensor_names(Checkpoint::scan(dir.path(), {}, findings));
  };
  Findings findings;
  EXPECT_THAT(scan({{"model.safetensors", "a"}, {"adapter.safetensors", "b"}}, &findings), ElementsAre("a"));
  ASSERT_THAT(rules(findings), ElementsAre("extra-file"));
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
  EXPECT_THAT(findings[0].file, HasSubstr("adapter.safetensors"));
  findings.clear();
  EXPECT_THAT(scan({{"anything.safetensors", "a"}}, &findings), ElementsAre("a"));
  EXPECT_THAT(findings, IsEmpty());

  EXPECT_THAT(scan({{shard_name(1, 2), "a"}, {shard_name(2, 2), "b"}, {"consolidated.safetensors", "c"}}, &findings),
              ElementsAre("a", "b"));
  ASSERT_THAT(rules(findings), ElementsAre("missing-file", "extra-file"));
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
  findings.clear();

  EXPECT_THAT(scan({{shard_name(1, 3), "a"}, {shard_name(3, 3), "b"}}, &findings), ElementsAre("a", "b"));
  ASSERT_THAT(rules(findings), ElementsAre("missing-file", "missing-file"));
  EXPECT_EQ(findings[1].severity, Severity::kError);
  EXPECT_THAT(findings[1].file, HasSubstr(shard_name(2, 3)));
  findings.clear();

  EXPECT_THAT(scan({{shard_name(1, 2), "a"}}, &findings), ElementsAre("a"));
  ASSERT_THAT(rules(findings), ElementsAre("missing-file"));
  EXPECT_THAT(findings[0].file, HasSubstr(shard_name(2, 2)));
  findings.clear();

  EXPECT_THAT(scan({{"x.safetensors", "a"}, {"y.safetensors", "b"}}, &findings), ElementsAre("a", "b"));
  ASSERT_THAT(rules(findings), ElementsAre("missing-file"));
  EXPECT_EQ(findings[0].severity, Severity::kError);
  EXPECT_EQ(value_of(findings[0], "files"), "2");
  findings.clear();

  // gpt-oss counts from 0 to the number after "of".
  EXPECT_THAT(scan({{shard_name(0, 2), "a"}, {shard_name(1, 2), "b"}, {shard_name(2, 2), "c"}}, &findings),
              ElementsAre("a", "b", "c"));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
}

TEST(CheckpointScan, AnIndexUnderAnotherName) {
  const TempDir dir;
  write_shard(dir / "diffusion-1.safetensors", {"a"});
  write_shard(dir / "diffusion-2.safetensors", {"b"});
  write_atomically(dir / "diffusion.safetensors.index.json",
                   std::string_view(R"({"weight_map":{"a":"diffusion-1.safetensors","b":"diffusion-2.safetensors"}})"));
  EXPECT_THAT(tensor_names(Checkpoint::open(dir.path())), ElementsAre("a", "b"));
}

TEST(CheckpointScan, ABrokenIndexIsReportedAndTheShardsListed) {
  const Folder folder;
  write_atomically(folder / "model.safetensors.index.json", std::string_view(R"({"weight_map":{"a":"../x"}})"));
  Findings findings;
  const Checkpoint checkpoint = Checkpoint::scan(folder.path(), {}, &findings);
  ASSERT_THAT(rules(findings), ElementsAre("bad-index"));
  EXPECT_EQ(value_of(findings[0], "shard"), "../x");
  EXPECT_EQ(checkpoint.tensors().size(), 4u);
}

TEST(CheckpointScan, DamagedShards) {
  const Folder folder;
  const Path second = folder / shard_name(2, 2);
  const std::string whole = read_text(second, 1 << 20);
  write_atomically(second, std::string_view(whole).substr(0, whole.size() - 1));
  Findings findings;
  const Checkpoint cut = Checkpoint::scan(folder.path(), {}, &findings);
  ASSERT_THAT(rules(findings), ElementsAre("short-file"));
  EXPECT_EQ(findings[0].file, second.string());
  EXPECT_EQ(findings[0].tensor, "d");
  EXPECT_EQ(value_of(findings[0], "missing_bytes"), "1");
  EXPECT_EQ(cut.tensors().size(), 4u);
  EXPECT_THAT(cut.read_all(cut.tensors()[2]), ElementsAre(std::byte{'c'}));
  EXPECT_EQ(thrown_error([&] { cut.read_all(cut.tensors()[3]); }).tensor(), "d");

  // The header itself is cut or broken: no tensors, and no complaint that the index names them.
  write_atomically(second, std::string_view(whole).substr(0, 20));
  EXPECT_THAT(rules(folder.scan()), ElementsAre("short-file"));
  write_atomically(second, std::string_view("12345678{}"));
  EXPECT_THAT(rules(folder.scan()), ElementsAre("bad-header"));
  EXPECT_EQ(thrown_error([&] { Checkpoint::open(folder.path()); }).file(), second.string());

  write_atomically(second, whole + "xyz");
  findings = folder.scan();
  ASSERT_THAT(rules(findings), ElementsAre("trailing-bytes"));
  EXPECT_EQ(value_of(findings[0], "trailing_bytes"), "3");
  EXPECT_EQ(findings[0].severity, Severity::kError);
  findings = folder.scan({.allow_trailing = true});
  ASSERT_THAT(rules(findings), ElementsAre("trailing-bytes"));
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
}

TEST(CheckpointScan, AnIndexAloneMissesEveryFile) {
  const TempDir dir;
  write_index(dir.path(), {{"a", "1.safetensors"}, {"b", "2.safetensors"}}, 2);
  Findings findings;
  Checkpoint::scan(dir.path(), {}, &findings);
  ASSERT_THAT(rules(findings), ElementsAre("missing-file", "missing-file"));
  EXPECT_EQ(value_of(findings[0], "present"), "0");
}

}  // namespace
}  // namespace nibble
