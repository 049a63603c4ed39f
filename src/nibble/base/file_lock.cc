#include "nibble/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "nibble/base/syscalls.h"
#include "nibble/base/system_error.h"

namespace nibble {

LockState lock_file(int fd, const Path& path, LockKind kind, LockWait wait) {
  const int operation = (kind == LockKind::kShared ? LOCK_SH : LOCK_EX) | (wait == LockWait::kNo ? LOCK_NB : 0);
  while (syscalls().flock(fd, operation) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return LockState::kBusy;
    if (errno == ENOSYS || errno == EOPNOTSUPP || errno == ENOLCK) return LockState::kNoLocks;
    throw system_error("cannot lock", path, errno);
  }
  return LockState::kHeld;
}

std::optional<LockedFile> open_locked(const Path& path, LockKind kind, LockWait wait,
                                      const std::function<void()>& make_folder) {
  constexpr int kAttempts = 1000;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (make_folder) make_folder();
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 && errno == ENOENT && make_folder) continue;
    if (fd < 0) throw system_error("cannot create", path, errno);
    LockState state = LockState::kBusy;
    try {
      state = lock_file(fd, path, kind, wait);
    } catch (...) {
      ::close(fd);
      throw;
    }
    if (state != LockState::kBusy && is_named(fd, path)) return LockedFile{fd, state == LockState::kHeld};
    ::close(fd);
    if (state == LockState::kBusy) return std::nullopt;
  }
  throw Error("other processes keep replacing this file").file(path.string()).way_out("wait for them, or stop them");
}

}  // namespace nibble
