// Any JSON as config.json and, after a zero byte, as a side file: hints come out, or findings that name a file; sizes
// that come out are usable.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/checkpoint/quant_hints.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t zero = text.find('\0');
  nibble::Json config;
  nibble::Json side;
  try {
    config = nibble::parse_json(text.substr(0, zero), "config.json");
    if (zero != text.npos) side = nibble::parse_json(text.substr(zero + 1), "side.json");
  } catch (const nibble::Error&) {
    return 0;
  }
  nibble::Findings findings;
  const nibble::QuantHints hints = nibble::read_quant_hints(config, "config.json", side, "side.json", &findings);
  for (const auto& finding : findings) NIBBLE_CHECK(!finding.file.empty() && finding.rule == "bad-config");
  NIBBLE_CHECK(hints.bits <= 64);
  NIBBLE_CHECK(!hints.group_size || *hints.group_size == -1 || *hints.group_size > 0);
  NIBBLE_CHECK((hints.block_rows == 0) == (hints.block_cols == 0));
  return 0;
}
