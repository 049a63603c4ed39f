#include <cstdio>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/cli/command.h"

namespace nibble {

void print_out(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw Error("cannot write to standard output").way_out("check the disk or the program that reads it");
  }
}

void print_json(const Json& value) { print_out(strict_json_text(value)); }

}  // namespace nibble
