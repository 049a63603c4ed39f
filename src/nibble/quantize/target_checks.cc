#include "nibble/quantize/target_checks.h"

#include <algorithm>

#include "nibble/base/error.h"
#include "nibble/quantize/folder_lock.h"
#include "nibble/quantize/manifest.h"
#include "nibble/quantize/shard_names.h"

namespace nibble {

void check_target(const Path& target, const Path& source_folder) {
  std::error_code ignored;
  if (!std::filesystem::exists(target, ignored)) return;
  if (!std::filesystem::is_directory(target, ignored))
    throw Error("the target is not a folder").file(target.string()).way_out("name a folder");
  if (std::filesystem::equivalent(target, source_folder, ignored))
    throw Error("the target is the source").file(target.string()).way_out("name another folder");
  // In this order: between the two another worker may put its journal here, or the manifest in its place.
  const bool empty = std::filesystem::is_empty(target, ignored);
  const bool ours = std::filesystem::exists(target / kJournalFolder, ignored) ||
                    std::filesystem::exists(target / kManifestName, ignored);
  if (!ours && !empty) {
    throw Error("the target folder holds other files").file(target.string()).way_out("name an empty or a new folder");
  }
}

void check_space(const Path& target, const OutputPlan& plan, uint64_t other_bytes) {
  uint64_t needed = plan.bytes_out + other_bytes;
  std::error_code ignored;
  for (const OutShard& shard : plan.shards) {
    const Path path = target / shard.file_name;
    Path partial = path;
    partial += kPartialSuffix;
    for (const Path& there : {path, partial}) {
      if (std::filesystem::exists(there, ignored))
        needed -= std::min<uint64_t>(needed, std::filesystem::file_size(there, ignored));
    }
  }
  const uint64_t free = free_bytes(target);
  if (free >= needed) return;
  throw Error("not enough free space for the output")
      .file(target.string())
      .value("needed", needed)
      .value("free", free)
      .value("missing", needed - free)
      .way_out("free some space")
      .way_out("name a target on another disk");
}

}  // namespace nibble
