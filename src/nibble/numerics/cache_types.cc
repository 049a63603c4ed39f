#include "nibble/numerics/cache_types.h"

namespace nibble {

std::span<const CacheType> cache_types() {
  static constexpr CacheType kTypes[] = {{"bf16", 2, "", ""}, {"fp8", 1, "fp8", "fp8_e4m3"}};
  return kTypes;
}

std::vector<std::string> cache_type_names() {
  std::vector<std::string> names;
  for (const CacheType& type : cache_types()) names.emplace_back(type.name);
  return names;
}

}  // namespace nibble
