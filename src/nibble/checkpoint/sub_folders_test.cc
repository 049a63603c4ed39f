#include "nibble/checkpoint/sub_folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "nibble/testing/temp_dir.h"

namespace nibble {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

void put(const Path& path, uint64_t bytes = 1) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path).put('x');
  std::filesystem::resize_file(path, bytes);  // sparse
}

TEST(SubFolders, CompanionsAndModelsAreToldApart) {
  const testing::TempDir dir;
  for (const char* file : {"beside.txt", "b/2.png", "b/1.png", "b/deep/3.txt", ".git/x", "b/.hidden", "b/.cache/y"})
    put(dir / file);
  std::filesystem::create_directories(dir / "empty");
  for (const char* file : {"model.safetensors", "x.gguf", "pytorch_model.bin", "x.pth", "model.onnx", "config.json",
                           "nibble.json", ".nibble/run.json", "model.safetensors.partial"})
    put(dir / (std::string("with ") + Path(file).begin()->string()) / "deep" / file);
  std::filesystem::create_directory_symlink(dir / "b", dir / "link");
  const SubFolders found = sort_sub_folders(dir.path());
  EXPECT_THAT(found.files, ElementsAre("b/1.png", "b/2.png", "b/deep/3.txt"));
  EXPECT_EQ(found.left.size(), 10u);
  EXPECT_THAT(found.left.front(), Pair("link", "it is a link to a folder"));
  for (size_t i = 1; i < found.left.size(); ++i) EXPECT_EQ(found.left[i].second, "it holds a model");
}

TEST(SubFolders, ThereIsAnEndToWhatACompanionMayBe) {
  const testing::TempDir dir;
  put(dir / "large" / "a", 128'000'000);
  put(dir / "large" / "b", 128'000'000);
  EXPECT_THAT(sort_sub_folders(dir.path()).left, IsEmpty());
  put(dir / "large" / "c", 1);
  for (int i = 0; i < 1000; ++i) put(dir / "many" / std::to_string(i));
  SubFolders found = sort_sub_folders(dir.path());
  EXPECT_THAT(found.left, ElementsAre(Pair("large", "it holds more than 256 MB")));
  EXPECT_EQ(found.files.size(), 1000u);
  put(dir / "many" / "one more");
  found = sort_sub_folders(dir.path());
  EXPECT_THAT(found.left,
              ElementsAre(Pair("large", "it holds more than 256 MB"), Pair("many", "it holds more than 1000 files")));
  EXPECT_THAT(found.files, IsEmpty());
}

}  // namespace
}  // namespace nibble
