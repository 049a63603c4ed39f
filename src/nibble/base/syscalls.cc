#include "nibble/base/syscalls.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdio>

namespace nibble {

const Syscalls& real_syscalls() {
  static const Syscalls table{::pread,  ::pwrite,          ::fsync,   ::posix_fallocate,
                              ::rename, ::sync_file_range, ::statvfs, ::flock};
  return table;
}

Syscalls& syscalls() {
  static Syscalls table = real_syscalls();
  return table;
}

}  // namespace nibble
