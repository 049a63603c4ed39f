#include "nibble/base/system_error.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace nibble {

Error system_error(const std::string& doing, const Path& path, int code) {
  Error error(fmt::format("{}: {}", doing, std::strerror(code)));
  error.file(path.string());
  if (code == ENOENT) error.way_out("check the path");
  if (code == EACCES || code == EPERM) error.way_out("check the permissions");
  if (code == ENOSPC || code == EDQUOT) error.way_out("free some space and run the same command again");
  if (code == EIO) error.way_out("check the disk or the network mount, then run the same command again");
  if (code == EROFS) error.way_out("name a folder that can be written to");
  if (error.ways_out().empty()) error.way_out("check the path and the disk behind it, then run the same command again");
  return error;
}

}  // namespace nibble
