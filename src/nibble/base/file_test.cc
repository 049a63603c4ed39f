#include "nibble/base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include "nibble/testing/faulty_syscalls.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/thrown_error.h"

namespace nibble {
namespace {

using ::testing::AllOf;
using testing::Calls;
using ::testing::ElementsAre;
using testing::FaultySyscalls;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ShortTransfers;
using testing::TempDir;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// What `work` throws, in its rendered form.
std::string error_of(const std::function<void()>& work) { return testing::thrown_error(work).what(); }

std::vector<std::string> names_in(const Path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_back(const InputFile& file, uint64_t offset, size_t count) {
  std::string text(count, '?');
  file.read_at(offset, std::as_writable_bytes(std::span(text)));
  return text;
}

class BothReadModes : public ::testing::TestWithParam<ReadMode> {};

TEST_P(BothReadModes, ReadsAtOffsets) {
  const TempDir dir;
  write_atomically(dir / "f", "0123456789");
  const InputFile file = InputFile::open(dir / "f", GetParam());
  EXPECT_EQ(file.size(), 10u);
  EXPECT_EQ(file.path(), dir / "f");
  EXPECT_GT(file.mtime_ns(), 0);
  EXPECT_EQ(read_back(file, 0, 10), "0123456789");
  EXPECT_EQ(read_back(file, 7, 3), "789");
  EXPECT_EQ(read_back(file, 10, 0), "");
  EXPECT_EQ(file.mapping().size(), GetParam() == ReadMode::kMmap ? 10u : 0u);
}

TEST_P(BothReadModes, RefusesToReadPastTheEnd) {
  const TempDir dir;
  write_atomically(dir / "f", "0123456789");
  const InputFile file = InputFile::open(dir / "f", GetParam());
  for (const auto& [offset, count] : {std::pair<uint64_t, size_t>{8, 3}, {11, 0}, {UINT64_MAX, 1}, {1, 10}}) {
    EXPECT_THAT(error_of([&, o = offset, c = count] { read_back(file, o, c); }),
                AllOf(HasSubstr((dir / "f").string()), HasSubstr("offset " + std::to_string(offset)),
                      HasSubstr("bytes " + std::to_string(count)), HasSubstr("file_bytes 10"), HasSubstr("try: ")));
  }
}

TEST_P(BothReadModes, EmptyFile) {
  const TempDir dir;
  write_atomically(dir / "f", "");
  const InputFile file = InputFile::open(dir / "f", GetParam());
  EXPECT_EQ(file.size(), 0u);
  EXPECT_EQ(read_back(file, 0, 0), "");
  EXPECT_TRUE(file.mapping().empty());
}

TEST_P(BothReadModes, MovesKeepTheFileOpen) {
  const TempDir dir;
  write_atomically(dir / "a", "aaaa");
  write_atomically(dir / "b", "bbbbbb");
  InputFile first = InputFile::open(dir / "a", GetParam());
  InputFile second = std::move(first);
  EXPECT_EQ(read_back(second, 0, 4), "aaaa");
  second = InputFile::open(dir / "b", GetParam());
  EXPECT_EQ(second.size(), 6u);
  EXPECT_EQ(read_back(second, 0, 6), "bbbbbb");
}

INSTANTIATE_TEST_SUITE_P(File, BothReadModes, ::testing::Values(ReadMode::kPread, ReadMode::kMmap),
                         [](const auto& test) { return test.param == ReadMode::kPread ? "Pread" : "Mmap"; });

TEST(InputFile, RefusesWhatIsNotARegularFile) {
  const TempDir dir;
  EXPECT_THAT(error_of([&] { InputFile::open(dir / "none"); }),
              AllOf(HasSubstr("No such file"), HasSubstr((dir / "none").string()), HasSubstr("try: check the path")));
  EXPECT_THAT(error_of([&] { InputFile::open(dir.path()); }), HasSubstr("not a regular file"));
  ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { InputFile::open(dir / "fifo"); }), HasSubstr("not a regular file"));  // and does not hang
}

TEST(InputFile, FileThatShrinksWhileItIsRead) {
  const TempDir dir;
  write_atomically(dir / "f", "0123456789");
  const InputFile file = InputFile::open(dir / "f");
  ASSERT_EQ(::truncate((dir / "f").c_str(), 4), 0);
  EXPECT_THAT(error_of([&] { read_back(file, 0, 10); }),
              AllOf(HasSubstr("ends early"), HasSubstr("offset 4"), HasSubstr("missing_bytes 6")));
}

TEST(InputFile, DeviceErrorNamesTheOffset) {
  const TempDir dir;
  write_atomically(dir / "f", "0123456789");
  const InputFile file = InputFile::open(dir / "f");
  const FaultySyscalls fault(0, EIO, true, Calls::kPread);
  EXPECT_THAT(error_of([&] { read_back(file, 3, 2); }),
              AllOf(HasSubstr("Input/output error"), HasSubstr((dir / "f").string()), HasSubstr("offset 3"),
                    HasSubstr("check the disk")));
}

TEST(InputFile, InterruptedAndShortReadsGoOn) {
  const TempDir dir;
  write_atomically(dir / "f", "0123456789");
  const InputFile file = InputFile::open(dir / "f");
  {
    const FaultySyscalls fault(0, EINTR, false, Calls::kPread);
    EXPECT_EQ(read_back(file, 0, 10), "0123456789");
    EXPECT_EQ(fault.calls(), 2u);
  }
  const ShortTransfers few(3);
  EXPECT_EQ(read_back(file, 0, 10), "0123456789");
}

TEST(OutputFile, NothingUnderTheFinalNameBeforeCommit) {
  const TempDir dir;
  {
    OutputFile file = OutputFile::create(dir / "f");
    file.write_at(0, bytes_of("hello"));
    EXPECT_THAT(names_in(dir.path()), ElementsAre("f.partial"));
    file.commit();
  }
  EXPECT_THAT(names_in(dir.path()), ElementsAre("f"));
  EXPECT_EQ(read_text(dir / "f", 100), "hello");
}

TEST(OutputFile, WithoutCommitNothingIsLeft) {
  const TempDir dir;
  write_atomically(dir / "f", "old");
  {
    OutputFile file = OutputFile::create(dir / "f");
    file.write_at(0, bytes_of("new and longer"));
  }
  EXPECT_THAT(names_in(dir.path()), ElementsAre("f"));
  EXPECT_EQ(read_text(dir / "f", 100), "old");
}

TEST(OutputFile, WritesInAnyOrderAndReadsBack) {
  const TempDir dir;
  OutputFile file = OutputFile::create(dir / "f", 10);
  file.write_at(5, bytes_of("56789"));
  file.write_at(0, bytes_of("01234"));
  std::string text(4, '?');
  file.read_at(3, std::as_writable_bytes(std::span(text)));
  EXPECT_EQ(text, "3456");
  file.commit();
  EXPECT_EQ(read_text(dir / "f", 100), "0123456789");
}

TEST(OutputFile, MoveTakesTheTemporaryFileAlong) {
  const TempDir dir;
  OutputFile kept = OutputFile::create(dir / "a");
  {
    OutputFile file = OutputFile::create(dir / "b");
    file.write_at(0, bytes_of("b"));
    kept = std::move(file);  // gives up a, and b does not end here
  }
  EXPECT_THAT(names_in(dir.path()), ElementsAre("b.partial"));
  kept.commit();
  EXPECT_EQ(read_text(dir / "b", 100), "b");
}

TEST(OutputFile, LeftoverOfAKilledRunIsOverwritten) {
  const TempDir dir;
  write_atomically(dir / "f.partial", "left over from another run");
  write_atomically(dir / "f", "new");
  EXPECT_THAT(names_in(dir.path()), ElementsAre("f"));
  EXPECT_EQ(read_text(dir / "f", 100), "new");
}

TEST(OutputFile, TwoWritersOfOneFileAreRefused) {
  const TempDir dir;
  OutputFile first = OutputFile::create(dir / "f");
  first.write_at(0, bytes_of("first"));
  EXPECT_THAT(error_of([&] { OutputFile::create(dir / "f"); }),
              AllOf(HasSubstr("another process is writing"), HasSubstr((dir / "f.partial").string())));
  first.commit();  // undisturbed
  EXPECT_EQ(read_text(dir / "f", 100), "first");
  write_atomically(dir / "f", "second");
  EXPECT_EQ(read_text(dir / "f", 100), "second");
}

TEST(OutputFile, FailsWhereTheFolderIsMissing) {
  const TempDir dir;
  EXPECT_THAT(error_of([&] { write_atomically(dir / "no/f", "x"); }),
              AllOf(HasSubstr("cannot create"), HasSubstr((dir / "no/f.partial").string())));
}

// Every call of every kind fails once: whichever it is, the old content stands, nothing half-written is left, and the
// message names the file.
TEST(OutputFile, AnyFailureLeavesTheOldContent) {
  struct Case {
    Calls call;
    int code;
    const char* words;
  };
  for (const auto& [call, code, words] : {Case{Calls::kPwrite, ENOSPC, "free some space"},
                                          {Calls::kPwrite, EIO, "check the disk"},
                                          {Calls::kFsync, EIO, "check the disk"},
                                          {Calls::kFsync, ENOSPC, "free some space"},
                                          {Calls::kRename, EACCES, "check the permissions"},
                                          {Calls::kFallocate, ENOSPC, "free some space"}}) {
    const TempDir dir;
    write_atomically(dir / "f", "old");
    const auto save = [&] {
      OutputFile file = OutputFile::create(dir / "f", 6);
      for (uint64_t i = 0; i < 3; ++i) file.write_at(2 * i, bytes_of("xy"));
      file.commit();
    };
    const uint64_t tries = call == Calls::kPwrite ? 3 : 1;  // the folder's fsync comes after the new name: see below
    for (uint64_t n = 0; n < tries; ++n) {
      const FaultySyscalls fault(n, code, true, call);
      EXPECT_THAT(error_of(save), AllOf(HasSubstr((dir / "f.partial").string()), HasSubstr(words)));
      EXPECT_EQ(read_text(dir / "f", 100), "old");
      EXPECT_THAT(names_in(dir.path()), ElementsAre("f"));
    }
    save();
    EXPECT_EQ(read_text(dir / "f", 100), "xyxyxy");
  }
}

TEST(OutputFile, FolderThatCannotBeSyncedIsReported) {
  const TempDir dir;
  {
    const FaultySyscalls fault(1, EIO, true, Calls::kFsync);
    EXPECT_THAT(error_of([&] { write_atomically(dir / "f", "x"); }), HasSubstr("cannot sync the folder"));
  }
  const FaultySyscalls fault(1, EINVAL, true, Calls::kFsync);  // a network file system that knows no such thing
  EXPECT_NO_THROW(write_atomically(dir / "f", "x"));
}

TEST(OutputFile, InterruptedAndShortWritesGoOn) {
  const TempDir dir;
  for (const Calls call : {Calls::kPwrite, Calls::kFsync, Calls::kFallocate}) {
    const FaultySyscalls fault(0, EINTR, false, call);
    OutputFile file = OutputFile::create(dir / "f", 10);
    file.write_at(0, bytes_of("0123456789"));
    file.commit();
    EXPECT_GE(fault.calls(), 2u);
    EXPECT_EQ(read_text(dir / "f", 100), "0123456789");
  }
  const ShortTransfers few(3);
  write_atomically(dir / "f", "abcdefghij");
  EXPECT_EQ(read_text(dir / "f", 100), "abcdefghij");
}

TEST(OutputFile, FileSystemThatCannotReserve) {
  const TempDir dir;
  const FaultySyscalls fault(0, EOPNOTSUPP, true, Calls::kFallocate);
  OutputFile file = OutputFile::create(dir / "f", 1000);
  file.write_at(0, bytes_of("x"));
  file.commit();
  EXPECT_EQ(read_text(dir / "f", 100), "x");
}

TEST(ReadText, RefusesAboveTheLimit) {
  const TempDir dir;
  write_atomically(dir / "f", "0123456789");
  EXPECT_EQ(read_text(dir / "f", 10), "0123456789");
  EXPECT_THAT(error_of([&] { read_text(dir / "f", 9); }),
              AllOf(HasSubstr("too large"), HasSubstr("bytes 10"), HasSubstr("limit 9")));
}

TEST(CopyAtomically, CopiesAllSizes) {
  const TempDir dir;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4} << 20, (size_t{4} << 20) + 1, size_t{9} << 20}) {
    std::string text(size, '\0');
    for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 >> 3);
    write_atomically(dir / "from", text);
    copy_atomically(dir / "from", dir / "to");
    EXPECT_EQ(read_text(dir / "to", size), text);
  }
}

TEST(CopyAtomically, FullDiskLeavesNothing) {
  const TempDir dir;
  write_atomically(dir / "from", std::string(size_t{9} << 20, 'x'));
  const FaultySyscalls fault(2, ENOSPC, true, Calls::kPwrite);
  EXPECT_THAT(error_of([&] { copy_atomically(dir / "from", dir / "to"); }), HasSubstr("No space left"));
  EXPECT_THAT(names_in(dir.path()), ElementsAre("from"));
}

TEST(ListFiles, RegularFilesSortedWithoutFolders) {
  const TempDir dir;
  for (const char* name : {"b", "a", "c"}) write_atomically(dir / name, "x");
  std::filesystem::create_directory(dir / "folder");
  std::filesystem::create_symlink("a", dir / "link");
  std::filesystem::create_symlink("nowhere", dir / "dangling");
  ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(list_files(dir.path()), ElementsAre(dir / "a", dir / "b", dir / "c", dir / "link"));
  EXPECT_THAT(list_files(dir / "folder"), IsEmpty());
  EXPECT_THAT(error_of([&] { list_files(dir / "none"); }), AllOf(HasSubstr("cannot list"), HasSubstr("none")));
}

TEST(FreeBytes, OfTheNearestFolderThereIs) {
  const TempDir dir;
  EXPECT_GT(free_bytes(dir.path()), 0u);
  EXPECT_GT(free_bytes(dir / "not/yet/there"), 0u);
  EXPECT_GT(free_bytes(""), 0u);
  EXPECT_GT(free_bytes("not/yet/there"), 0u);
  EXPECT_GT(free_bytes("."), 0u);
}

TEST(NewFolders, GoAgainUnlessTheyAreKept) {
  const testing::TempDir dir;
  {
    const NewFolders made(dir / "a" / "b" / "c");
    EXPECT_TRUE(std::filesystem::is_directory(dir / "a" / "b" / "c"));
    write_atomically(dir / "a" / "file", std::string_view("x"));
  }
  EXPECT_FALSE(std::filesystem::exists(dir / "a" / "b"));
  EXPECT_TRUE(std::filesystem::exists(dir / "a" / "file"));  // not ours to remove
  {
    NewFolders made(dir / "a" / "d" / "");
    made.keep();
  }
  EXPECT_TRUE(std::filesystem::is_directory(dir / "a" / "d"));
  {
    const NewFolders there(dir / "a" / "d");
  }
  EXPECT_TRUE(std::filesystem::is_directory(dir / "a" / "d"));
}

TEST(NewFolders, APathThatCannotBeIsNamedWithTheReason) {
  const testing::TempDir dir;
  write_atomically(dir / "file", std::string_view("x"));
  for (const auto& [path, reason] :
       {std::pair{dir / "file" / "t", "Not a directory"},
        std::pair{dir / "new" / std::string(300, 'x'), "File name too long"}, std::pair{Path("/proc/nibble/t"), ""}}) {
    const Error error = testing::thrown_error([&where = path] { const NewFolders made(where); });
    EXPECT_EQ(error.file(), path.string());
    EXPECT_NE(error.message().find(reason), std::string::npos) << error.what();
    EXPECT_FALSE(error.ways_out().empty());
  }
  EXPECT_FALSE(std::filesystem::exists(dir / "new"));
}

}  // namespace
}  // namespace nibble
