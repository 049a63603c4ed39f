// Any bytes into the strict JSON reader: either an Error or a value that survives being written and read again.
#include "nibble/base/json.h"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "nibble/base/check.h"
#include "nibble/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  nibble::Json value;
  try {
    value = nibble::parse_json(text, "input");
  } catch (const nibble::Error&) {
    return 0;
  }
  // Compared as text, since NaN equals nothing.
  const std::string written = nibble::json_text(value);
  NIBBLE_CHECK(nibble::json_text(nibble::parse_json(written, "output")) == written);
  nibble::parse_json(nibble::strict_json_text(value), "output");
  return 0;
}
