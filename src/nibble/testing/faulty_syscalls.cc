#include "nibble/testing/faulty_syscalls.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "nibble/base/syscalls.h"

namespace nibble::testing {
namespace {

struct State {
  std::atomic<uint64_t> calls{0};
  uint64_t at = UINT64_MAX;
  int error_number = 0;
  bool persistent = false;
  bool kill = false;
};
State state;

// True if this call must fail.
bool strike() {
  const uint64_t call = state.calls++;
  const bool hit = call == state.at || (state.persistent && call > state.at);
  if (hit && state.kill) ::kill(::getpid(), SIGKILL);
  return hit;
}

ssize_t faulty_pwrite(int fd, const void* buffer, size_t count, off_t offset) {
  if (strike()) {
    errno = state.error_number;
    return -1;
  }
  return real_syscalls().pwrite(fd, buffer, count, offset);
}

int faulty_fsync(int fd) {
  if (strike()) {
    errno = state.error_number;
    return -1;
  }
  return real_syscalls().fsync(fd);
}

int faulty_fallocate(int fd, off_t offset, off_t length) {
  return strike() ? state.error_number : real_syscalls().fallocate(fd, offset, length);
}

int faulty_rename(const char* from, const char* to) {
  if (strike()) {
    errno = state.error_number;
    return -1;
  }
  return real_syscalls().rename(from, to);
}

void install() { syscalls() = {real_syscalls().pread, faulty_pwrite, faulty_fsync, faulty_fallocate, faulty_rename}; }

}  // namespace

FaultySyscalls::FaultySyscalls() {
  state.calls = 0;
  state.at = UINT64_MAX;
  state.persistent = state.kill = false;
  install();
}

FaultySyscalls::FaultySyscalls(uint64_t n, int error_number, bool persistent) : FaultySyscalls() {
  state.at = n;
  state.error_number = error_number;
  state.persistent = persistent;
}

FaultySyscalls::FaultySyscalls(uint64_t n, Kill) : FaultySyscalls() {
  state.at = n;
  state.kill = true;
}

FaultySyscalls::~FaultySyscalls() { syscalls() = real_syscalls(); }

uint64_t FaultySyscalls::calls() const { return state.calls; }

}  // namespace nibble::testing
