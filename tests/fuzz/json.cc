// Any bytes into the strict JSON reader: either an Error or a value that survives being written and read again.
#include "nibble/base/json.h"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
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
  NIBBLE_CHECK(nibble::parse_json(nibble::json_text(value), "output") == value);
  return 0;
}
