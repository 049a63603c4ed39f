#include "nibble/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "nibble/base/syscalls.h"
#include "nibble/checkpoint/checkpoint_folder_test.h"
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

TEST(Checkpoint, AWholeFolder) {
  const Folder folder;
  EXPECT_THAT(folder.scan(), IsEmpty());
  for (const ReadMode mode : {ReadMode::kPread, ReadMode::kMmap}) {
    for (const int threads : {1, 4}) {
      const Checkpoint checkpoint = Checkpoint::open(folder.path(), {mode, false, threads});
      EXPECT_EQ(checkpoint.container(), Container::kSafetensors);
      EXPECT_EQ(checkpoint.folder(), folder.path());
      ASSERT_EQ(checkpoint.files().size(), 2u);
      EXPECT_EQ(checkpoint.files()[1].name, shard_name(2, 2));
      EXPECT_EQ(checkpoint.files()[1].metadata.at("format"), "pt");
      EXPECT_EQ(checkpoint.files()[1].bytes, std::filesystem::file_size(folder / shard_name(2, 2)));
      EXPECT_EQ(checkpoint.files()[1].header_bytes + 2, checkpoint.files()[1].bytes);
      EXPECT_THAT(tensor_names(checkpoint), ElementsAre("a", "b", "c", "d"));
      EXPECT_EQ(checkpoint.find("c"), 2);
      EXPECT_EQ(checkpoint.find("e"), -1);
      EXPECT_EQ(checkpoint.tensors()[2].file, 1u);
      EXPECT_EQ(checkpoint.file_of(checkpoint.tensors()[2]), (folder / shard_name(2, 2)).string());
      EXPECT_THAT(checkpoint.read_all(checkpoint.tensors()[3]), ElementsAre(std::byte{'d'}));
      EXPECT_EQ(checkpoint.config()["model_type"], "x");
      EXPECT_TRUE(checkpoint.side_config().is_null());
      EXPECT_EQ(checkpoint.side_config_name(), "");
      EXPECT_EQ(checkpoint.gguf(), nullptr);
    }
  }
}

TEST(Checkpoint, SurvivesBeingMoved) {
  const Folder folder;
  Checkpoint first = Checkpoint::open(folder.path());
  const Checkpoint second = std::move(first);
  EXPECT_EQ(second.find("d"), 3);
  EXPECT_THAT(second.read_all(second.tensors()[0]), ElementsAre(std::byte{'a'}));
}

TEST(Checkpoint, ReadsPartsAndRefusesMoreThanATensor) {
  const TempDir dir;
  write_safetensors(dir / "model.safetensors", {{"w", Dtype::kU8, {4}}},
                    {{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}}}, {});
  const Checkpoint checkpoint = Checkpoint::open(dir.path());
  std::vector<std::byte> two(2);
  checkpoint.read(checkpoint.tensors()[0], 2, two);
  EXPECT_THAT(two, ElementsAre(std::byte{3}, std::byte{4}));
  const Error error = thrown_error([&] { checkpoint.read(checkpoint.tensors()[0], 3, two); });
  EXPECT_EQ(error.tensor(), "w");
  EXPECT_EQ(value_of(error, "tensor_bytes"), "4");
  EXPECT_EQ(thrown_error([&] { checkpoint.read(checkpoint.tensors()[0], UINT64_MAX, two); }).message(),
            "read past the end of a tensor");
}

ssize_t pread_with_device_error(int, void*, size_t, off_t) {
  errno = EIO;
  return -1;
}

TEST(Checkpoint, C125_device_error_names_file_tensor_and_offset) {
  const Folder folder;
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  const StoredTensor& tensor = checkpoint.tensors()[3];
  syscalls().pread = pread_with_device_error;
  const Error error = thrown_error([&] { checkpoint.read_all(tensor); });
  const Findings findings = folder.scan();
  syscalls() = real_syscalls();
  EXPECT_EQ(error.file(), (folder / shard_name(2, 2)).string());
  EXPECT_EQ(error.tensor(), "d");
  EXPECT_EQ(value_of(error, "offset"), std::to_string(tensor.offset));
  EXPECT_THAT(error.message(), HasSubstr("Input/output error"));
  // A scan says it of the index and of both shards and goes on.
  ASSERT_FALSE(findings.empty());
  const auto unreadable = std::ranges::count(findings, "unreadable-file", &Finding::rule);
  EXPECT_EQ(unreadable, 3);
}

TEST(Checkpoint, LinkedShardsOfAHubCache) {
  const Folder folder;
  const TempDir blobs;
  std::filesystem::rename(folder / shard_name(1, 2), blobs / "0123abcd");
  std::filesystem::create_symlink(blobs / "0123abcd", folder / shard_name(1, 2));
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  EXPECT_EQ(checkpoint.files()[0].name, shard_name(1, 2));
  EXPECT_THAT(checkpoint.read_all(checkpoint.tensors()[0]), ElementsAre(std::byte{'a'}));
}

TEST(Checkpoint, ConfigsAndTheirFaults) {
  const Folder folder;
  write_atomically(folder / "config.json", std::string_view("{\"a\":1,}"));
  Findings findings = folder.scan();
  ASSERT_THAT(rules(findings), ElementsAre("bad-config"));
  EXPECT_EQ(findings[0].file, (folder / "config.json").string());
  EXPECT_EQ(value_of(findings[0], "byte"), "7");
  write_atomically(folder / "config.json", std::string_view("[1]"));
  EXPECT_THAT(rules(folder.scan()), ElementsAre("bad-config"));
  std::filesystem::remove(folder / "config.json");
  EXPECT_THAT(folder.scan(), IsEmpty());
  EXPECT_TRUE(Checkpoint::open(folder.path()).config().is_null());

  write_atomically(folder / "quantize_config.json", std::string_view("{\"bits\":4}"));
  EXPECT_EQ(Checkpoint::open(folder.path()).side_config_name(), "quantize_config.json");
  EXPECT_EQ(Checkpoint::open(folder.path()).side_config()["bits"], 4);
  write_atomically(folder / "hf_quant_config.json", std::string_view("{\"quantization\":{}}"));
  EXPECT_EQ(Checkpoint::open(folder.path()).side_config_name(), "hf_quant_config.json");
  write_atomically(folder / "hf_quant_config.json", std::string_view("{"));
  findings = folder.scan();
  ASSERT_THAT(rules(findings), ElementsAre("bad-config"));
  EXPECT_EQ(findings[0].file, (folder / "hf_quant_config.json").string());
}

TEST(Checkpoint, NoWeights) {
  const TempDir dir;
  const Error nothing = thrown_error([&] { Checkpoint::open(dir.path()); });
  EXPECT_EQ(nothing.file(), dir.path().string());
  EXPECT_THAT(nothing.message(), HasSubstr("no weights"));
  write_atomically(dir / "config.json", std::string_view("{}"));
  Findings findings;
  const Checkpoint checkpoint = Checkpoint::scan(dir.path(), {}, &findings);
  EXPECT_THAT(rules(findings), ElementsAre("no-weights"));
  EXPECT_TRUE(checkpoint.config().is_object());
  write_atomically(dir / "pytorch_model.bin", std::string_view("x"));
  findings.clear();
  Checkpoint::scan(dir.path(), {}, &findings);
  EXPECT_EQ(value_of(findings[0], "found"), "pytorch_model.bin");
}

TEST(Checkpoint, AbsentPathsNameTheNearest) {
  const TempDir dir;
  std::filesystem::create_directory(dir / "Qwen3-30B-A3B");
  std::filesystem::create_directory(dir / "gpt-oss-20b");
  const Error error = thrown_error([&] { Checkpoint::open(dir / "Qwen3-30B-A3b/"); });
  EXPECT_EQ(error.message(), "there is no such file or folder");
  EXPECT_EQ(value_of(error, "nearest"), "Qwen3-30B-A3B");
  EXPECT_THAT(error.what(), HasSubstr((dir / "Qwen3-30B-A3B").string()));
  const Error hub = thrown_error([&] { Checkpoint::open(dir / "Qwen/Qwen3-30B-A3B"); });
  EXPECT_EQ(value_of(hub, "missing_folder"), (dir / "Qwen").string());
  EXPECT_THAT(hub.what(), HasSubstr("does not download"));
}

TEST(Checkpoint, ALinkThatLeadsNowhereIsNamedAsOne) {
  const TempDir dir;
  std::filesystem::create_symlink("gone/model", dir / "link");
  for (const char* name : {"link", "link/"}) {
    const Error error = thrown_error([&] { Checkpoint::open(dir / name); });
    EXPECT_EQ(error.message(), "this is a link, and what it leads to is not there");
    EXPECT_EQ(value_of(error, "is_a_link_to"), "gone/model");
    EXPECT_THAT(error.what(), Not(HasSubstr("did you mean")));
  }
}

TEST(Checkpoint, ASingleFileWithTheConfigBesideIt) {
  const Folder folder;
  const Checkpoint checkpoint = Checkpoint::open(folder / shard_name(2, 2));
  EXPECT_THAT(tensor_names(checkpoint), ElementsAre("c", "d"));
  EXPECT_EQ(checkpoint.path(), folder / shard_name(2, 2));
  EXPECT_EQ(checkpoint.folder(), folder.path());
  EXPECT_EQ(checkpoint.config()["model_type"], "x");
  EXPECT_EQ(thrown_error([&] { Checkpoint::open(folder / "config.json"); }).message(),
            "neither a .safetensors nor a .gguf file");
}

TEST(Checkpoint, Gguf) {
  const TempDir dir;
  const Path golden = testing::golden_dir() / "checkpoint" / "reference.gguf";
  copy_atomically(golden, dir / "m.gguf");
  copy_atomically(golden, dir / "no_ending");
  for (const Path& path : {dir.path(), dir / "m.gguf", dir / "no_ending"}) {
    const Checkpoint checkpoint = Checkpoint::open(path);
    EXPECT_EQ(checkpoint.container(), Container::kGguf);
    ASSERT_NE(checkpoint.gguf(), nullptr);
    EXPECT_EQ(checkpoint.gguf()->get_string("general.architecture"), "llama");
    EXPECT_EQ(checkpoint.files()[0].header_bytes, 0x220u);
    const int64_t embedding = checkpoint.find("token_embd.weight");
    ASSERT_EQ(embedding, 0);
    std::vector<float> values(6);
    checkpoint.read(checkpoint.tensors()[0], 0, std::as_writable_bytes(std::span(values)));
    EXPECT_THAT(values, ElementsAre(0, 1, 2, 3, 4, 5));
  }
  copy_atomically(golden, dir / "second.gguf");
  const Error two = thrown_error([&] { Checkpoint::open(dir.path()); });
  EXPECT_EQ(value_of(two, "gguf_files"), "2");
  EXPECT_THAT(two.what(), HasSubstr("m.gguf"));
  // Beside safetensors a GGUF is another form of the model.
  write_shard(dir / "model.safetensors", {"a"});
  EXPECT_EQ(Checkpoint::open(dir.path()).container(), Container::kSafetensors);
}

TEST(Checkpoint, DamagedGguf) {
  const TempDir dir;
  const std::string whole = read_text(testing::golden_dir() / "checkpoint" / "reference.gguf", 1 << 20);
  const auto scan = [&](const std::string& text) {
    write_atomically(dir / "m.gguf", text);
    Findings findings;
    const Checkpoint checkpoint = Checkpoint::scan(dir.path(), {}, &findings);
    EXPECT_EQ(checkpoint.files().size(), 1u);
    return std::pair(rules(findings), checkpoint.tensors().size());
  };
  EXPECT_EQ(scan(whole.substr(0, 0x260)), (std::pair<std::vector<std::string>, size_t>{{"short-file"}, 3}));
  EXPECT_EQ(scan(whole.substr(0, 0x100)), (std::pair<std::vector<std::string>, size_t>{{"short-file"}, 0}));
  EXPECT_EQ(scan("GGUFxxxx" + whole.substr(8)), (std::pair<std::vector<std::string>, size_t>{{"bad-header"}, 0}));
}

TEST(Checkpoint, Companions) {
  const Folder folder;
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json", "modeling_x.py",
        "merges.txt", "vocab.json", "qwen.tiktoken", "README.md", "LICENSE", "tokenizer.model",
        // not companions
        "hf_quant_config.json", "quantize_config.json", "quant_config.json", "nibble.json", "pytorch_model.bin", "x.pt",
        "x.pth", "x.gguf", "model.onnx", "pytorch_model.bin.index.json", ".gitattributes", "model.safetensors.partial",
        "extra.safetensors"})
    write_atomically(folder / name, std::string_view("{}"));
  std::filesystem::create_directory(folder / "folder.py");
  Findings ignored;
  const Checkpoint checkpoint = Checkpoint::scan(folder.path(), {}, &ignored);
  std::vector<std::string> names;
  for (const Path& path : checkpoint.companions()) {
    EXPECT_EQ(path.parent_path(), folder.path());
    names.push_back(path.filename().string());
  }
  EXPECT_THAT(names, ElementsAre("LICENSE", "README.md", "chat_template.jinja", "generation_config.json", "merges.txt",
                                 "modeling_x.py", "qwen.tiktoken", "tokenizer.json", "tokenizer.model",
                                 "tokenizer_config.json", "vocab.json"));
}

}  // namespace
}  // namespace nibble
