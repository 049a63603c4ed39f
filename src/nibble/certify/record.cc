#include "nibble/certify/record.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "nibble/base/error.h"
#include "nibble/quantize/manifest.h"

namespace nibble {

bool record_certificate(const std::string& candidate, const Json& summary) {
  const Path path = Path(candidate) / kManifestName;
  if (!std::filesystem::is_regular_file(path)) return false;
  Json manifest = read_json(path, kManifestLimit);
  if (!manifest.is_object()) {
    throw Error("a manifest is no JSON object")
        .file(path.string())
        .way_out("copy it again from where the checkpoint was made");
  }
  manifest["certificate"] = summary;
  write_atomically(path, json_text(manifest));
  return true;
}

}  // namespace nibble
