// Faults at the n-th system call that changes the disk: a full disk, an I/O error, or the process killed on the spot.
// Installed for the lifetime of the object; base/syscalls.h's table is restored at the end.
#pragma once

#include <cstdint>

namespace nibble::testing {

class FaultySyscalls {
 public:
  // Counts only.
  FaultySyscalls();
  // The n-th call (0-based) of pwrite, fsync, fallocate or rename fails with `error_number`, and every later one too if
  // `persistent` (a disk that is full stays full).
  FaultySyscalls(uint64_t n, int error_number, bool persistent);
  // SIGKILL to this process right before the n-th call takes effect.
  enum class Kill { kNow };
  FaultySyscalls(uint64_t n, Kill kill);
  ~FaultySyscalls();
  FaultySyscalls(const FaultySyscalls&) = delete;
  FaultySyscalls& operator=(const FaultySyscalls&) = delete;

  // Calls seen so far.
  uint64_t calls() const;
};

}  // namespace nibble::testing
