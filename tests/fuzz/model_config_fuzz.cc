// Any JSON as a model's config.json: either an Error that names the file or a model of bounded size, whose whole
// inventory can be listed with unique names.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_set>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/base/json.h"
#include "nibble/models/family.h"

namespace {

// Larger models are parsed, but not listed: that takes seconds.
constexpr uint64_t kListed = 4096;

void list(const nibble::Family& family, const nibble::ModelSpec& spec) {
  if ((spec.layers.size() + spec.mtp_layers) * (spec.experts + 1) > kListed) return;
  std::unordered_set<std::string> names;
  family.inventory(spec, [&](nibble::ParamSpec&& param) {
    NIBBLE_CHECK(names.insert(param.name).second);
    for (const uint64_t dim : param.shape) NIBBLE_CHECK(dim != 0);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const nibble::Json config = nibble::parse_json({reinterpret_cast<const char*>(data), size}, "config.json");
    const nibble::Family* family = nibble::find_family(config);
    if (family != nullptr) list(*family, family->parse(config, "config.json"));
  } catch (const nibble::Error& error) {
    NIBBLE_CHECK(error.file() == "config.json");
  }
  return 0;
}
