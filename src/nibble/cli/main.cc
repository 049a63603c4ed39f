#include "nibble/base/file.h"
#include "nibble/cli/app.h"

int main(int argc, char** argv) {
  nibble::install_mapping_error_handler();
  return nibble::run_app(argc, argv);
}
