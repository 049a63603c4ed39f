#include "nibble/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace nibble::internal {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "nibble: internal error: %s does not hold at %s:%d. Please report this.\n", condition, file,
               line);
  std::abort();
}

}  // namespace nibble::internal
