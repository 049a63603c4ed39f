#include "nibble/base/file_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "nibble/base/error.h"
#include "nibble/testing/faulty_syscalls.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/thrown_error.h"

namespace nibble {
namespace {

using ::testing::AllOf;
using testing::BadLocks;
using ::testing::HasSubstr;
using testing::TempDir;
using testing::thrown_error;

TEST(FileLock, ExclusiveOnesExcludeSharedOnesDoNot) {
  const TempDir dir;
  const auto first = open_locked(dir / "f", LockKind::kShared, LockWait::kNo);
  ASSERT_TRUE(first && first->held);
  const auto second = open_locked(dir / "f", LockKind::kShared, LockWait::kNo);
  ASSERT_TRUE(second && second->held);
  EXPECT_FALSE(open_locked(dir / "f", LockKind::kExclusive, LockWait::kNo));
  EXPECT_EQ(lock_file(first->fd, dir / "f", LockKind::kExclusive, LockWait::kNo), LockState::kBusy);
  ::close(second->fd);
  EXPECT_EQ(lock_file(first->fd, dir / "f", LockKind::kExclusive, LockWait::kNo), LockState::kHeld);
  EXPECT_FALSE(open_locked(dir / "f", LockKind::kShared, LockWait::kNo));
  ::close(first->fd);
  const auto again = open_locked(dir / "f", LockKind::kExclusive, LockWait::kNo);
  ASSERT_TRUE(again && again->held);
  ::close(again->fd);
}

TEST(FileLock, FileSystemsWithoutLocksAreWrittenTo) {
  const TempDir dir;
  for (const int code : {ENOLCK, ENOSYS, EOPNOTSUPP}) {
    const BadLocks none(code);
    const auto file = open_locked(dir / "f", LockKind::kExclusive, LockWait::kYes);
    ASSERT_TRUE(file);
    EXPECT_FALSE(file->held);
    EXPECT_EQ(lock_file(file->fd, dir / "f", LockKind::kShared, LockWait::kNo), LockState::kNoLocks);
    ::close(file->fd);
  }
}

TEST(FileLock, ErrorsCarryTheReason) {
  const TempDir dir;
  {
    const BadLocks broken(EIO);
    const Error error = thrown_error([&] { open_locked(dir / "f", LockKind::kShared, LockWait::kYes); });
    EXPECT_THAT(error.what(), AllOf(HasSubstr("cannot lock: Input/output error"), HasSubstr((dir / "f").string())));
    EXPECT_FALSE(error.ways_out().empty());
  }
  std::filesystem::create_directory(dir / "folder");
  EXPECT_THAT(thrown_error([&] { open_locked(dir / "folder", LockKind::kShared, LockWait::kYes); }).what(),
              HasSubstr("Is a directory"));
  EXPECT_THAT(thrown_error([&] { open_locked(dir / "none/f", LockKind::kShared, LockWait::kYes); }).what(),
              HasSubstr("No such file or directory"));
}

// Others may remove the folder between the two calls.
TEST(FileLock, TheFolderIsMadeBeforeEveryAttempt) {
  const TempDir dir;
  int calls = 0;
  const auto file = open_locked(dir / "folder/f", LockKind::kExclusive, LockWait::kYes, [&] {
    if (++calls == 3) std::filesystem::create_directory(dir / "folder");
  });
  ASSERT_TRUE(file && file->held);
  EXPECT_EQ(calls, 3);
  ::close(file->fd);
}

}  // namespace
}  // namespace nibble
