#include "nibble/base/mapped_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "nibble/base/file.h"
#include "nibble/testing/temp_dir.h"

namespace nibble {
namespace {

using testing::TempDir;

// A mapping of four pages whose file is cut to one: reading behind that raises SIGBUS, like a failing disk.
class CutMapping {
 public:
  CutMapping() {
    write_atomically(dir_ / "model.safetensors", std::string(4 * page_, 'x'));
    file_ = std::make_unique<InputFile>(InputFile::open(dir_ / "model.safetensors", ReadMode::kMmap));
    EXPECT_EQ(::truncate((dir_ / "model.safetensors").c_str(), static_cast<off_t>(page_)), 0);
  }
  size_t page() const { return page_; }
  const InputFile& file() const { return *file_; }
  std::byte touch(size_t offset) const { return *const_cast<const volatile std::byte*>(&file_->mapping()[offset]); }

 private:
  size_t page_ = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  TempDir dir_;
  std::unique_ptr<InputFile> file_;
};

TEST(MappingErrorDeathTest, NamesTheFileAndTheOffsetAndExitsWithOne) {
  const CutMapping cut;
  const size_t offset = 2 * cut.page() + 17;
  EXPECT_EXIT(
      {
        install_mapping_error_handler();
        cut.touch(offset);
      },
      ::testing::ExitedWithCode(1),
      "cannot read a mapped page \\(file .*model.safetensors, offset " + std::to_string(offset) + "\\); try: ");
}

TEST(MappingErrorDeathTest, ReadThroughTheMapping) {
  const CutMapping cut;
  EXPECT_EXIT(
      {
        install_mapping_error_handler();
        std::byte byte{};
        cut.file().read_at(3 * cut.page(), std::span(&byte, 1));
      },
      ::testing::ExitedWithCode(1), "model.safetensors, offset " + std::to_string(3 * cut.page()));
}

TEST(MappingErrorDeathTest, OffsetZeroHasADigit) {
  const TempDir dir;
  write_atomically(dir / "f", "x");
  const InputFile file = InputFile::open(dir / "f", ReadMode::kMmap);
  ASSERT_EQ(::truncate((dir / "f").c_str(), 0), 0);
  EXPECT_EXIT(
      {
        install_mapping_error_handler();
        std::byte byte{};
        file.read_at(0, std::span(&byte, 1));
      },
      ::testing::ExitedWithCode(1), "/f, offset 0\\)");
}

TEST(MappingErrorDeathTest, ClosedFilesAreForgotten) {
  const CutMapping cut;
  EXPECT_EXIT(
      {
        install_mapping_error_handler();
        unregister_mapping(cut.file().mapping());
        cut.touch(cut.page());
      },
      ::testing::ExitedWithCode(1), "cannot read a mapped page; try: ");
}

TEST(MappingErrorDeathTest, OtherBusErrorsStaySignals) {
  EXPECT_EXIT(
      {
        install_mapping_error_handler();
        ::raise(SIGBUS);
      },
      ::testing::KilledBySignal(SIGBUS), "");
}

TEST(MappedFiles, MoreMappingsThanSlotsAndLongPaths) {
  std::byte memory[600];
  for (auto& byte : memory) register_mapping({&byte, 1}, std::string(2000, 'p'));
  for (auto& byte : memory) unregister_mapping({&byte, 1});
}

}  // namespace
}  // namespace nibble
