// Types in which keys and values are cached, as the command line and other engines spell them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nibble {

struct CacheType {
  std::string_view name;
  uint64_t element_bytes = 2;
  // Values of `kv-cache-dtype`; empty: the engine's own default.
  std::string_view vllm, sglang;
};

// Widest first.
std::span<const CacheType> cache_types();
std::vector<std::string> cache_type_names();

}  // namespace nibble
