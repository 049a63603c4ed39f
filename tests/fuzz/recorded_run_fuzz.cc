// Any bytes as the manifest that `verify --rederive` starts from. What is accepted has a recipe whose request is
// complete: a format with its rule and layout, or a dense one with neither.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/verify/recorded_run.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const nibble::RecordedRun run = nibble::parse_recorded_run(text, "input");
    const nibble::QuantizeRequest& request = run.recipe.request;
    NIBBLE_CHECK(nibble::is_writable(request.format));
    NIBBLE_CHECK(request.format.is_dense() == (request.rule.rule == nullptr));
    NIBBLE_CHECK(request.format.is_dense() == request.layout.empty());
    NIBBLE_CHECK(!run.recipe_text.empty());
  } catch (const nibble::Error& error) {
    NIBBLE_CHECK(!error.file().empty());
  }
  return 0;
}
