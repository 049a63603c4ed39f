#include "nibble/testing/temp_dir.h"

#include <stdlib.h>

#include "nibble/base/check.h"

namespace nibble::testing {

TempDir::TempDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "nibble_test_XXXXXX").string();
  NIBBLE_CHECK(::mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Path golden_dir() { return Path(NIBBLE_SOURCE_DIR) / "tests" / "golden"; }

}  // namespace nibble::testing
