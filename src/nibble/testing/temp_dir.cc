#include "nibble/testing/temp_dir.h"

#include <unistd.h>

#include <cstdlib>

#include "nibble/base/check.h"
#include "nibble/base/file.h"

namespace nibble::testing {
namespace {

// A file system in memory where there is one with room: the tests sync thousands of times. TMPDIR overrules.
Path parent_folder() {
  Path memory = "/dev/shm";
  constexpr uint64_t kRoom = uint64_t{2} << 30;
  if (std::getenv("TMPDIR") == nullptr && ::access(memory.c_str(), W_OK) == 0 && free_bytes(memory) >= kRoom)
    return memory;
  return std::filesystem::temp_directory_path();
}

}  // namespace

TempDir::TempDir() {
  std::string pattern = (parent_folder() / "nibble_test_XXXXXX").string();
  NIBBLE_CHECK(::mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Path golden_dir() { return Path(NIBBLE_SOURCE_DIR) / "tests" / "golden"; }

}  // namespace nibble::testing
