#include "nibble/testing/faulty_syscalls.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>

#include "nibble/base/check.h"
#include "nibble/base/syscalls.h"

namespace nibble::testing {
namespace {

// The table holds plain functions, so what they need is here.
struct State {
  std::atomic<uint64_t> calls{0};
  uint64_t at = UINT64_MAX;
  int error_number = 0;
  bool persistent = false;
  bool kill = false;
  uint64_t most_bytes = 0;
  uint64_t disk_bytes = 0;
  std::atomic<uint64_t> written{0};
  uint64_t bad_offset = 0;
};
State state;

// True if this call must fail.
bool strike() {
  const uint64_t call = state.calls++;
  const bool hit = call == state.at || (state.persistent && call > state.at);
  if (hit && state.kill) ::kill(::getpid(), SIGKILL);
  return hit;
}

int fail() {
  errno = state.error_number;
  return -1;
}

ssize_t faulty_pread(int fd, void* buffer, size_t count, off_t offset) {
  return strike() ? fail() : real_syscalls().pread(fd, buffer, count, offset);
}

ssize_t faulty_pwrite(int fd, const void* buffer, size_t count, off_t offset) {
  return strike() ? fail() : real_syscalls().pwrite(fd, buffer, count, offset);
}

int faulty_fsync(int fd) { return strike() ? fail() : real_syscalls().fsync(fd); }

int faulty_fallocate(int fd, off_t offset, off_t length) {
  return strike() ? state.error_number : real_syscalls().fallocate(fd, offset, length);
}

int faulty_rename(const char* from, const char* to) { return strike() ? fail() : real_syscalls().rename(from, to); }

int faulty_sync_range(int fd, off64_t offset, off64_t length, unsigned flags) {
  return strike() ? fail() : real_syscalls().sync_file_range(fd, offset, length, flags);
}

void install(Calls counted) {
  Syscalls table = real_syscalls();
  const bool changes = counted == Calls::kChanges;
  if (counted == Calls::kPread) table.pread = faulty_pread;
  if (changes || counted == Calls::kPwrite) table.pwrite = faulty_pwrite;
  if (changes || counted == Calls::kFsync) table.fsync = faulty_fsync;
  if (changes || counted == Calls::kSyncRange) table.sync_file_range = faulty_sync_range;
  if (changes || counted == Calls::kFallocate) table.fallocate = faulty_fallocate;
  if (changes || counted == Calls::kRename) table.rename = faulty_rename;
  syscalls() = table;
}

ssize_t short_pread(int fd, void* buffer, size_t count, off_t offset) {
  return real_syscalls().pread(fd, buffer, std::min(count, state.most_bytes), offset);
}

ssize_t short_pwrite(int fd, const void* buffer, size_t count, off_t offset) {
  return real_syscalls().pwrite(fd, buffer, std::min(count, state.most_bytes), offset);
}

int small_statvfs(const char* path, struct ::statvfs* info) {
  const int code = real_syscalls().statvfs(path, info);
  info->f_frsize = 1;
  info->f_bavail = state.disk_bytes - std::min<uint64_t>(state.disk_bytes, state.written);
  return code;
}

ssize_t small_pwrite(int fd, const void* buffer, size_t count, off_t offset) {
  if (state.written + count > state.disk_bytes) {
    errno = ENOSPC;
    return -1;
  }
  const ssize_t done = real_syscalls().pwrite(fd, buffer, count, offset);
  if (done > 0) state.written += static_cast<uint64_t>(done);
  return done;
}

int bad_flock(int /*fd*/, int /*operation*/) { return fail(); }

ssize_t bad_byte_pread(int fd, void* buffer, size_t count, off_t offset) {
  const auto begin = static_cast<uint64_t>(offset);
  if (begin > state.bad_offset || begin + count <= state.bad_offset)
    return real_syscalls().pread(fd, buffer, count, offset);
  if (begin < state.bad_offset) return real_syscalls().pread(fd, buffer, state.bad_offset - begin, offset);
  errno = EIO;
  return -1;
}

}  // namespace

FaultySyscalls::FaultySyscalls() : FaultySyscalls(UINT64_MAX, 0, false) {}

FaultySyscalls::FaultySyscalls(uint64_t n, int error_number, bool persistent, Calls counted) {
  state.calls = 0;
  state.at = n;
  state.error_number = error_number;
  state.persistent = persistent;
  state.kill = false;
  install(counted);
}

FaultySyscalls::FaultySyscalls(uint64_t n, Kill) : FaultySyscalls(n, 0, false) { state.kill = true; }

FaultySyscalls::~FaultySyscalls() { syscalls() = real_syscalls(); }

uint64_t FaultySyscalls::calls() const { return state.calls; }

ShortTransfers::ShortTransfers(uint64_t bytes) {
  NIBBLE_CHECK(bytes > 0);
  state.most_bytes = bytes;
  syscalls().pread = short_pread;
  syscalls().pwrite = short_pwrite;
}

ShortTransfers::~ShortTransfers() { syscalls() = real_syscalls(); }

SmallDisk::SmallDisk(uint64_t bytes) {
  state.disk_bytes = bytes;
  state.written = 0;
  syscalls().statvfs = small_statvfs;
  syscalls().pwrite = small_pwrite;
}

SmallDisk::~SmallDisk() { syscalls() = real_syscalls(); }

uint64_t SmallDisk::written() const { return state.written; }

BadLocks::BadLocks(int error_number) {
  state.error_number = error_number;
  syscalls().flock = bad_flock;
}

BadLocks::~BadLocks() { syscalls() = real_syscalls(); }

BadByte::BadByte(uint64_t offset) {
  state.bad_offset = offset;
  syscalls().pread = bad_byte_pread;
}

BadByte::~BadByte() { syscalls() = real_syscalls(); }

}  // namespace nibble::testing
