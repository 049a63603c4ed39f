#include "nibble/testing/faults.h"

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "nibble/base/check.h"
#include "nibble/base/syscalls.h"

namespace nibble::testing {
namespace {

// The table holds plain functions, so what they need is here. Set before the table changes, constant while it is
// changed, but for the counter.
struct Plan {
  uint64_t nth = 0;
  int code = 0;
  Lasts lasts = Lasts::kFromThenOn;
  uint64_t most_bytes = 0;
};
Plan plan;
std::atomic<uint64_t> calls_made{0};

// Counts the call and says whether it is to fail.
bool due() {
  const uint64_t number = ++calls_made;
  return plan.lasts == Lasts::kOnce ? number == plan.nth : number >= plan.nth;
}

int fail() {
  errno = plan.code;
  return -1;
}

ssize_t faulty_pread(int fd, void* buffer, size_t count, off_t offset) {
  return due() ? fail() : real_syscalls().pread(fd, buffer, count, offset);
}
ssize_t faulty_pwrite(int fd, const void* buffer, size_t count, off_t offset) {
  return due() ? fail() : real_syscalls().pwrite(fd, buffer, count, offset);
}
int faulty_fsync(int fd) { return due() ? fail() : real_syscalls().fsync(fd); }
int faulty_fallocate(int fd, off_t offset, off_t length) {
  return due() ? plan.code : real_syscalls().fallocate(fd, offset, length);
}
int faulty_rename(const char* from, const char* to) { return due() ? fail() : real_syscalls().rename(from, to); }

ssize_t short_pread(int fd, void* buffer, size_t count, off_t offset) {
  return real_syscalls().pread(fd, buffer, std::min(count, plan.most_bytes), offset);
}
ssize_t short_pwrite(int fd, const void* buffer, size_t count, off_t offset) {
  return real_syscalls().pwrite(fd, buffer, std::min(count, plan.most_bytes), offset);
}

}  // namespace

Fault::Fault(Call call, uint64_t nth, int code, Lasts lasts) {
  plan = {nth, code, lasts, 0};
  calls_made = 0;
  switch (call) {
    case Call::kPread: syscalls().pread = faulty_pread; break;
    case Call::kPwrite: syscalls().pwrite = faulty_pwrite; break;
    case Call::kFsync: syscalls().fsync = faulty_fsync; break;
    case Call::kFallocate: syscalls().fallocate = faulty_fallocate; break;
    case Call::kRename: syscalls().rename = faulty_rename; break;
  }
}

Fault::~Fault() { syscalls() = real_syscalls(); }

uint64_t Fault::calls() { return calls_made; }

ShortTransfers::ShortTransfers(uint64_t bytes) {
  NIBBLE_CHECK(bytes > 0);
  plan = {0, 0, Lasts::kFromThenOn, bytes};
  syscalls().pread = short_pread;
  syscalls().pwrite = short_pwrite;
}

ShortTransfers::~ShortTransfers() { syscalls() = real_syscalls(); }

}  // namespace nibble::testing
