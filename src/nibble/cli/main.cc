#include <malloc.h>

#include "nibble/base/file.h"
#include "nibble/cli/app.h"

int main(int argc, char** argv) {
  // Work comes in pieces of a few MiB. glibc would map and unmap each afresh and fault its pages in again, which costs
  // about a tenth of quantize's time; freed pieces are kept for the next ones instead.
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  nibble::install_mapping_error_handler();
  return nibble::run_app(argc, argv);
}
