// Any bytes as nibble.json: a manifest comes out, or findings of its one rule. What comes out is usable as it is: bare
// file names and whole hashes.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "nibble/base/check.h"
#include "nibble/verify/stored_manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  nibble::Findings findings;
  const auto manifest = nibble::parse_manifest(text, "nibble.json", &findings);
  for (const auto& finding : findings) NIBBLE_CHECK(finding.rule == "manifest-hash" && !finding.file.empty());
  if (!manifest) return 0;
  for (const auto& output : manifest->outputs) {
    NIBBLE_CHECK(!output.file.empty() && output.file.find('/') == output.file.npos && output.file != "..");
    NIBBLE_CHECK(output.sha256.size() == 64);
    NIBBLE_CHECK(manifest->find(output.file) != nullptr);
  }
  for (const auto& tensor : manifest->tensors) NIBBLE_CHECK(!tensor.name.empty());
  return 0;
}
