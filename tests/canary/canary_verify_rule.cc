// A rule of `verify` as somebody would add one: it counts the weights in the canary's format.
#include "nibble/verify/rule.h"

namespace nibble {
namespace {

void check(const VerifyContext& context, Findings* findings) {
  size_t count = 0;
  for (const Weight& weight : context.model->table.weights()) count += weight.format.name == "canary" ? 1 : 0;
  if (count == 0) return;
  Finding finding;
  finding.severity = Severity::kNote;
  finding.rule = "canary-sings";
  finding.message = "weights in the canary's format";
  finding.values = {{"weights", std::to_string(count)}};
  findings->push_back(std::move(finding));
}

}  // namespace

extern const Rule kCanaryVerifyRule;
const Rule kCanaryVerifyRule = {"canary-sings", "counts weights in the canary's format", check};

}  // namespace nibble
