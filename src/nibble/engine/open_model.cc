#include "nibble/engine/open_model.h"

#include <utility>

#include "nibble/engine/supports.h"

namespace nibble {

OpenedModel open_model(const std::string& path, int threads) {
  Checkpoint checkpoint = Checkpoint::open(path, {ReadMode::kPread, false, threads});
  Findings findings;
  Model model = load_model(checkpoint, &findings);
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::kError) throw error_of(finding);
  }
  refuse_unsupported(model, path);
  return {std::move(checkpoint), std::move(model)};
}

}  // namespace nibble
