#include "nibble/quantize/folder_lock.h"

#include <unistd.h>

#include <cerrno>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/base/file_lock.h"
#include "nibble/base/system_error.h"

namespace nibble {
namespace {

constexpr const char* kLockFile = "lock";
constexpr const char* kPresenceFile = "present";

void make_folder(const Path& folder) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) throw system_error("cannot make the folder", folder, code.value());
}

}  // namespace

// Whoever finishes removes the folder, and with it the file that others wait for.
FolderLock::FolderLock(const Path& target) {
  const Path folder = target / kJournalFolder;
  try {
    const auto file =
        open_locked(folder / kLockFile, LockKind::kExclusive, LockWait::kYes, [&folder] { make_folder(folder); });
    NIBBLE_CHECK(file.has_value());
    fd_ = file->fd;
  } catch (const Error&) {
    ::rmdir(folder.c_str());  // if nothing is in it
    throw;
  }
}

FolderLock::~FolderLock() { ::close(fd_); }

Presence::Presence(const Path& target) : path_(target / kJournalFolder / kPresenceFile) {
  const auto file =
      open_locked(path_, LockKind::kShared, LockWait::kYes, [&target] { make_folder(target / kJournalFolder); });
  NIBBLE_CHECK(file.has_value());
  fd_ = file->fd;
}

// A failed conversion loses the lock that was there, so that it is taken anew in any case. Nobody else holds one that
// would exclude it for longer than this function runs.
Company Presence::company() {
  const LockState state = lock_file(fd_, path_, LockKind::kExclusive, LockWait::kNo);
  lock_file(fd_, path_, LockKind::kShared, LockWait::kYes);
  switch (state) {
    case LockState::kHeld: return Company::kAlone;
    case LockState::kBusy: return Company::kOthers;
    case LockState::kNoLocks: break;
  }
  return Company::kUnknown;
}

Presence::~Presence() { ::close(fd_); }

void clear_journal_folder(const Path& target) {
  std::error_code code;
  for (std::filesystem::directory_iterator it(target / kJournalFolder, code), end; !code && it != end;
       it.increment(code)) {
    const Path name = it->path().filename();
    std::error_code ignored;
    if (name != kLockFile && name != kPresenceFile) std::filesystem::remove_all(it->path(), ignored);
  }
}

std::error_code remove_journal_folder(const Path& target) {
  const Path folder = target / kJournalFolder;
  clear_journal_folder(target);
  for (const char* name : {kPresenceFile, kLockFile}) ::unlink((folder / name).c_str());
  // Where it has gone another process removed it, and where it is not empty another one is in it.
  if (::rmdir(folder.c_str()) == 0 || errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST) return {};
  return {errno, std::generic_category()};
}

}  // namespace nibble
