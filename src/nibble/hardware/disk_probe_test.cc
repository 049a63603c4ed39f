#include "nibble/hardware/disk_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "nibble/base/syscalls.h"
#include "nibble/hardware/disk_folder_test.h"
#include "nibble/testing/temp_dir.h"
#include "nibble/testing/thrown_error.h"

namespace nibble {
namespace {

using testing::DiskFolder;
using ::testing::HasSubstr;
using testing::TempDir;
using testing::thrown_error;

TEST(DiskReadRate, FolderInMemoryIsNoDisk) {
  const TempDir folder;
  const DiskRate rate = disk_read_rate(folder.path(), uint64_t{1} << 20, 0.01, 1);
  if (folder.path().string().starts_with("/dev/shm")) {
    EXPECT_FALSE(rate.read);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(DiskReadRate, ErrorsLeaveNothingBehind) {
  EXPECT_THAT(thrown_error([] { disk_read_rate("there/is/no/such/folder", 1 << 20, 0.01, 1); }).what(),
              HasSubstr("there/is/no/such/folder"));
  const DiskFolder folder;
  syscalls().pread = [](int, void*, size_t, off_t) -> ssize_t {
    errno = EIO;
    return -1;
  };
  const Error error = thrown_error([&] {
    const DiskRate rate = disk_read_rate(folder.path(), 1 << 20, 0.01, 1);
    if (!rate.read) throw Error("in memory");  // nothing is read there
  });
  syscalls() = real_syscalls();
  EXPECT_NE(error.message(), "(nothing was thrown)");
  EXPECT_TRUE(folder.empty());
}

}  // namespace
}  // namespace nibble
