// A folder on the disk that the tests run on, where testing::TempDir prefers one in memory.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "nibble/base/file.h"

namespace nibble::testing {

class DiskFolder {
 public:
  DiskFolder() : path_(std::filesystem::current_path() / ("calibrate_test_" + std::to_string(::getpid()))) {
    std::filesystem::create_directory(path_);
  }
  DiskFolder(const DiskFolder&) = delete;
  DiskFolder& operator=(const DiskFolder&) = delete;
  ~DiskFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const Path& path() const { return path_; }
  bool empty() const { return std::filesystem::is_empty(path_); }

 private:
  Path path_;
};

}  // namespace nibble::testing
