// System calls that fail on purpose: a full disk, an I/O error, the process killed on the spot. Installed for the
// lifetime of the object, one object at a time, while no other thread does I/O; base/syscalls.h's table is restored at
// the end.
#pragma once

#include <cstdint>

namespace nibble::testing {

// Which calls count: all that change the disk (pwrite, fsync, sync_file_range, fallocate, rename), or one kind.
enum class Calls { kChanges, kPread, kPwrite, kFsync, kSyncRange, kFallocate, kRename };

class FaultySyscalls {
 public:
  // Counts only.
  FaultySyscalls();
  // The n-th call (0-based) fails with `error_number`, and every later one too if `persistent` (a disk that is full
  // stays full).
  FaultySyscalls(uint64_t n, int error_number, bool persistent, Calls counted = Calls::kChanges);
  // SIGKILL to this process right before the n-th change takes effect.
  enum class Kill { kNow };
  FaultySyscalls(uint64_t n, Kill kill);
  ~FaultySyscalls();
  FaultySyscalls(const FaultySyscalls&) = delete;
  FaultySyscalls& operator=(const FaultySyscalls&) = delete;

  // Calls seen so far.
  uint64_t calls() const;
};

// Every read and write moves at most `bytes` at once, as the system may do at any time.
class ShortTransfers {
 public:
  explicit ShortTransfers(uint64_t bytes);
  ~ShortTransfers();
  ShortTransfers(const ShortTransfers&) = delete;
  ShortTransfers& operator=(const ShortTransfers&) = delete;
};

// A disk with this much room, whatever the real one has: asked for free space it says what is left of `bytes`, and a
// pwrite beyond them fails with ENOSPC. Files count by the bytes written to them since; a removed file frees nothing.
class SmallDisk {
 public:
  explicit SmallDisk(uint64_t bytes);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  uint64_t written() const;
};

// A file system that answers every flock with this error number: ENOLCK where there are no locks.
class BadLocks {
 public:
  explicit BadLocks(int error_number);
  ~BadLocks();
  BadLocks(const BadLocks&) = delete;
  BadLocks& operator=(const BadLocks&) = delete;
};

// Reads that touch byte `offset` of a file fail with EIO; those before it end short of it, as a disk's would.
class BadByte {
 public:
  explicit BadByte(uint64_t offset);
  ~BadByte();
  BadByte(const BadByte&) = delete;
  BadByte& operator=(const BadByte&) = delete;
};

}  // namespace nibble::testing
