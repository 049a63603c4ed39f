#include "nibble/certify/same_architecture.h"

#include "nibble/base/error.h"

namespace nibble {

void check_same_architecture(const ModelSpec& reference, const ModelSpec& candidate,
                             const std::string& candidate_path) {
  const auto refuse = [&](const char* what) {
    return Error("the candidate is not the reference's model")
        .file(candidate_path)
        .value("differs_in", what)
        .way_out("certify a candidate that was made from the reference");
  };
  if (reference.family != candidate.family) {
    throw refuse("family").value("reference", reference.family).value("candidate", candidate.family);
  }
  const struct {
    const char* name;
    uint64_t of_reference, of_candidate;
  } sizes[] = {
      {"vocabulary", reference.vocabulary, candidate.vocabulary},
      {"layers", reference.layers.size(), candidate.layers.size()},
      {"hidden", reference.hidden, candidate.hidden},
      {"heads", reference.heads, candidate.heads},
      {"kv_heads", reference.kv_heads, candidate.kv_heads},
      {"experts", reference.experts, candidate.experts},
      {"experts_per_token", reference.experts_per_token, candidate.experts_per_token},
  };
  for (const auto& one : sizes) {
    if (one.of_reference == one.of_candidate) continue;
    throw refuse(one.name).value("reference", one.of_reference).value("candidate", one.of_candidate);
  }
}

}  // namespace nibble
