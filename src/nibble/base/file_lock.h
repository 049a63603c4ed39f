// Locks on files (flock), which processes use to keep out of each other's way. They end with the descriptor, and so
// with the process, however it ends.
//
// Some network file systems have no locks. That is no reason to refuse to write: everything here then goes on without,
// and says so to whoever would draw conclusions from a lock.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "nibble/base/file.h"

namespace nibble {

enum class LockKind : uint8_t { kShared, kExclusive };
enum class LockWait : uint8_t { kNo, kYes };
enum class LockState : uint8_t { kHeld, kBusy, kNoLocks };  // kBusy: another process holds one that excludes it

// Takes a lock on an open file, or another kind than it has. `path` is for the Error.
LockState lock_file(int fd, const Path& path, LockKind kind, LockWait wait);

struct LockedFile {
  int fd = -1;  // the caller's to close
  bool held = false;
};

// Opens `path`, which is made if it is not there, and locks it. Between the two another process may have renamed or
// removed the file: then the descriptor is not the file of that name any more, and it is tried again. nullopt: busy.
// `make_folder`, if given, is called before every attempt: others may remove the file's folder at any time.
std::optional<LockedFile> open_locked(const Path& path, LockKind kind, LockWait wait,
                                      const std::function<void()>& make_folder = nullptr);

}  // namespace nibble
