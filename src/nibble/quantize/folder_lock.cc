#include "nibble/quantize/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "nibble/base/error.h"

namespace nibble {
namespace {

constexpr const char* kLockFile = "lock";
constexpr const char* kPresenceFile = "present";

}  // namespace

FolderLock::FolderLock(const Path& target) {
  const Path path = target / kJournalFolder / kLockFile;
  // Whoever finishes removes the folder, and with it the file that others wait for: a lock on that is none.
  for (int attempt = 0; attempt < 1000; ++attempt) {
    std::filesystem::create_directories(path.parent_path());
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd_ < 0 && errno == ENOENT) continue;
    if (fd_ < 0 || ::flock(fd_, LOCK_EX) != 0) break;
    if (is_named(fd_, path)) return;
    ::close(std::exchange(fd_, -1));
  }
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  throw Error("cannot lock the target folder").file(path.string()).way_out("check the permissions of the folder");
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

Presence::Presence(const Path& target) {
  const Path path = target / kJournalFolder / kPresenceFile;
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ >= 0 && ::flock(fd_, LOCK_SH) == 0) return;
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  throw Error("cannot lock the target folder").file(path.string()).way_out("check the permissions of the folder");
}

// A failed conversion loses the lock that was there, so that it is taken anew in any case. Nobody else holds one that
// would exclude it for longer than this function runs.
bool Presence::is_alone() const {
  const bool alone = ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
  ::flock(fd_, LOCK_SH);
  return alone;
}

Presence::~Presence() { ::close(fd_); }

void clear_journal_folder(const Path& target) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(target / kJournalFolder, ignored)) {
    const Path name = entry.path().filename();
    if (name != kLockFile && name != kPresenceFile) std::filesystem::remove_all(entry.path(), ignored);
  }
}

}  // namespace nibble
