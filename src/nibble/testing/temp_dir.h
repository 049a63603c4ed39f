// A fresh folder for one test, removed with everything in it at the end.
#pragma once

#include "nibble/base/file.h"

namespace nibble::testing {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const Path& path() const { return path_; }
  Path operator/(const std::string& name) const { return path_ / name; }

 private:
  Path path_;
};

// tests/golden of the source tree.
Path golden_dir();

}  // namespace nibble::testing
