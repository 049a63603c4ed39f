#include "nibble/numerics/published_formats.h"

namespace nibble {

std::span<const std::string_view> published_formats() {
  static constexpr std::string_view kNames[] = {"bf16", "fp8-block", "int4-g32", "mxfp4", "nvfp4"};
  return kNames;
}

PublishedScheme published_training_scheme() { return {"int4-g32", "int4.amax7"}; }

}  // namespace nibble
