// System calls that fail on purpose: a full disk at the n-th write, an I/O error at the n-th read. Replaces entries of
// base/syscalls.h while the object lives; one at a time, and created and destroyed while no other thread does I/O.
//
//   const testing::Fault full(testing::Call::kPwrite, 3, ENOSPC);   // the third write and all after it
#pragma once

#include <cstdint>

namespace nibble::testing {

enum class Call { kPread, kPwrite, kFsync, kFallocate, kRename };
enum class Lasts { kFromThenOn, kOnce };

class Fault {
 public:
  // Call number `nth` (1 is the first) fails with error number `code`.
  Fault(Call call, uint64_t nth, int code, Lasts lasts = Lasts::kFromThenOn);
  ~Fault();
  Fault(const Fault&) = delete;
  Fault& operator=(const Fault&) = delete;
  // How often the call was made so far: run once with a fault that never comes to learn where to put it.
  static uint64_t calls();
};

// All reads and writes move at most `bytes` at once.
class ShortTransfers {
 public:
  explicit ShortTransfers(uint64_t bytes);
  ~ShortTransfers();
  ShortTransfers(const ShortTransfers&) = delete;
  ShortTransfers& operator=(const ShortTransfers&) = delete;
};

}  // namespace nibble::testing
