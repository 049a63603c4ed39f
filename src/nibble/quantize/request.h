// What the user asked `quantize` for, resolved: formats and rules are parsed, defaults filled in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nibble/base/file.h"
#include "nibble/numerics/quantizer.h"

namespace nibble {

inline constexpr int kContractVersion = 4;  // of the bytes that a recipe gives; stored in every manifest
inline constexpr const char* kToolVersion = "0.1.0";

struct QuantizeRequest {
  Path source, target;
  Format format;
  NamedRule rule;           // empty for dense formats
  bool rule_given = false;  // by the user: then casts may round where they cannot be exact
  std::string layout;       // "" = the source's own where it has one for the format, else compressed-tensors
  std::vector<std::string> include, keep;  // roles, all_linears, name:GLOB
  std::vector<std::string> generic;        // regular expressions over names, for unknown families
  BitExact bit_exact = BitExact::kNone;
  bool unify_scales = false;
  uint64_t shard_bytes = 5'000'000'000;
  uint32_t worker = 1, workers = 1;  // --worker I/N, 1-based
  bool sha256_inputs = false;        // of every source file, into the manifest: another read of the source
  bool dry_run = false, restart = false;
  bool allow_trailing = false;
  int threads = 1;
  bool quiet = false;
};

}  // namespace nibble
