// What processes that work on one target know of each other: locks on files in its journal's folder. They are released
// when a process ends, however it ends. Where the file system has no locks, nothing is known of others.
#pragma once

#include <system_error>

#include "nibble/base/file.h"

namespace nibble {

inline constexpr const char* kJournalFolder = ".nibble";

// Held for moments: while a journal is opened, and while a target is finished. Makes the journal's folder.
class FolderLock {
 public:
  explicit FolderLock(const Path& target);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_ = -1;
};

enum class Company : uint8_t { kAlone, kOthers, kUnknown };

// Held as long as a process works on the target: whoever would remove what others count on asks first.
class Presence {
 public:
  // Both under a FolderLock, so that nobody comes meanwhile.
  explicit Presence(const Path& target);
  Company company();

  ~Presence();
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

 private:
  Path path_;
  int fd_ = -1;
};

// Removes what is in the journal's folder but the files that locks are held on.
void clear_journal_folder(const Path& target);

// Removes the journal's folder, under a FolderLock; that it has gone already is no error. The lock's file goes last:
// who waits for it may then make folder and file again, and they stay.
std::error_code remove_journal_folder(const Path& target);

}  // namespace nibble
