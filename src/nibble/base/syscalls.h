// The few system calls through which every byte enters or leaves nibble, as a table that tests can replace: a full
// disk, an I/O error at byte X or a kill at the n-th write is injected here, below the file classes (base/file.h).
#pragma once

#include <sys/statvfs.h>
#include <sys/types.h>

#include <cstddef>

namespace nibble {

struct Syscalls {
  ssize_t (*pread)(int fd, void* buffer, size_t count, off_t offset);
  ssize_t (*pwrite)(int fd, const void* buffer, size_t count, off_t offset);
  int (*fsync)(int fd);
  int (*fallocate)(int fd, off_t offset, off_t length);  // posix_fallocate: returns the error number
  int (*rename)(const char* from, const char* to);
  int (*sync_file_range)(int fd, off64_t offset, off64_t length, unsigned flags);
  int (*statvfs)(const char* path, struct ::statvfs* info);
  int (*flock)(int fd, int operation);
};

// The table in force. Tests may replace entries while no other thread does I/O, and must put them back.
Syscalls& syscalls();
// The real ones.
const Syscalls& real_syscalls();

}  // namespace nibble
