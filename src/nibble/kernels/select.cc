#include "nibble/kernels/select.h"

#include <fmt/format.h>

#include "nibble/base/error.h"

namespace nibble {
namespace {

std::string why_not(const Kernel& kernel, const WeightLayout& layout, ActivationKind activations) {
  if (kernel.activations != activations) {
    return fmt::format("takes {} activations, not {}", activation_kind_name(kernel.activations),
                       activation_kind_name(activations));
  }
  if (const std::string lacking = kernel.processor_lacks(); !lacking.empty()) {
    return "this processor lacks " + lacking;
  }
  return kernel.panel(layout) == nullptr ? kernel.obstacle(layout) : "";
}

}  // namespace

ActivationKind activations_of(const WeightLayout& layout, ActivationKind of_integers, ActivationRounding rounding) {
  if (rounding == ActivationRounding::kBF16 && layout.codes == CodeKind::kBF16) return ActivationKind::kBF16;
  if (of_integers == ActivationKind::kE2M1) {
    return e2m1_activation_format(layout).empty() ? ActivationKind::kF32 : ActivationKind::kE2M1;
  }
  return layout.has_integers() ? of_integers : ActivationKind::kF32;
}

std::vector<Candidate> candidates(const WeightLayout& layout, ActivationKind activations, std::string_view forced) {
  std::vector<Candidate> all;
  Candidate* chosen = nullptr;
  all.reserve(kernels().size());
  for (const Kernel* kernel : kernels()) {
    std::string reason = why_not(*kernel, layout, activations);
    const bool ok = reason.empty();
    all.push_back({kernel, ok ? Verdict::kOk : Verdict::kNo, std::move(reason)});
    if (!ok || (!forced.empty() && kernel->name != forced)) continue;
    if (chosen == nullptr || kernel->macs_per_cycle > chosen->kernel->macs_per_cycle) chosen = &all.back();
  }
  if (chosen != nullptr) {
    chosen->verdict = Verdict::kChosen;
    chosen->reason = forced.empty() ? "most multiply-adds a cycle" : "asked for";
  }
  return all;
}

const Kernel& choose_kernel(const WeightLayout& layout, ActivationKind activations, std::string_view forced) {
  std::string reasons;
  for (const Candidate& candidate : candidates(layout, activations, forced)) {
    if (candidate.verdict == Verdict::kChosen) return *candidate.kernel;
    const bool could = candidate.verdict == Verdict::kOk;
    reasons += fmt::format("{}{} ({}): {}", reasons.empty() ? "" : "; ", candidate.kernel->name,
                           activation_kind_name(candidate.kernel->activations),
                           could ? "not the one asked for" : candidate.reason);
  }
  throw Error("no kernel multiplies these weights")
      .value("kernel", forced.empty() ? "any" : std::string(forced))
      .value("candidates", reasons)
      .way_out("see `nibble kernels`");
}

}  // namespace nibble
