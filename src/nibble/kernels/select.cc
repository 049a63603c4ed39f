#include "nibble/kernels/select.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>

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

// Which could run, in the list's order; none is chosen yet.
std::vector<Candidate> judged(const WeightLayout& layout, ActivationKind activations) {
  std::vector<Candidate> all;
  all.reserve(kernels().size());
  for (const Kernel* kernel : kernels()) {
    std::string reason = why_not(*kernel, layout, activations);
    const Verdict verdict = reason.empty() ? Verdict::kOk : Verdict::kNo;
    all.push_back({kernel, verdict, std::move(reason)});
  }
  return all;
}

// Of those that can run: the one asked for, the one measured, or the one of most multiply-adds a cycle.
Candidate* chosen_of(std::vector<Candidate>* all, std::string_view forced, const TuningRow* measured) {
  Candidate* chosen = nullptr;
  for (Candidate& candidate : *all) {
    if (candidate.verdict == Verdict::kNo || (!forced.empty() && candidate.kernel->name != forced)) continue;
    if (forced.empty() && measured != nullptr && candidate.kernel->name == measured->kernel) return &candidate;
    if (chosen == nullptr || candidate.kernel->macs_per_cycle > chosen->kernel->macs_per_cycle) chosen = &candidate;
  }
  return chosen;
}

Error none_chosen(const std::vector<Candidate>& all, std::string_view forced) {
  std::string reasons;
  for (const Candidate& candidate : all) {
    const bool could = candidate.verdict == Verdict::kOk;
    reasons += fmt::format("{}{} ({}): {}", reasons.empty() ? "" : "; ", candidate.kernel->name,
                           activation_kind_name(candidate.kernel->activations),
                           could ? "not the one asked for" : candidate.reason);
  }
  return Error("no kernel multiplies these weights")
      .value("kernel", forced.empty() ? "any" : std::string(forced))
      .value("candidates", reasons)
      .way_out("see `nibble kernels`");
}

std::string name_of(const KernelChoice& choice) {
  std::string name(choice.kernels[0]->name);
  for (uint64_t i = 1; i < kTokenClasses; ++i) {
    if (choice.kernels[i] != choice.kernels[i - 1])
      name += fmt::format(", {} from {} tokens", choice.kernels[i]->name, first_of_token_class(i));
  }
  return name;
}

// A model has thousands of matrices and a handful of choices.
const KernelChoice& kept(KernelChoice choice) {
  static std::mutex mutex;
  static std::deque<KernelChoice> choices;
  const std::scoped_lock lock(mutex);
  const auto same = [&](const KernelChoice& other) {
    return other.kernels == choice.kernels && other.panels == choice.panels;
  };
  if (const auto at = std::ranges::find_if(choices, same); at != choices.end()) return *at;
  choice.name = name_of(choice);
  return choices.emplace_back(std::move(choice));
}

}  // namespace

ActivationKind activations_of(const WeightLayout& layout, ActivationKind of_integers, ActivationRounding rounding) {
  if (rounding == ActivationRounding::kBF16 && layout.codes == CodeKind::kBF16) return ActivationKind::kBF16;
  if (of_integers == ActivationKind::kE2M1) {
    return e2m1_activation_format(layout).empty() ? ActivationKind::kF32 : ActivationKind::kE2M1;
  }
  return layout.has_integers() ? of_integers : ActivationKind::kF32;
}

std::vector<Candidate> candidates(const WeightLayout& layout, ActivationKind activations, std::string_view forced,
                                  uint64_t tokens, const TuningTable& table) {
  std::vector<Candidate> all = judged(layout, activations);
  const TuningRow* measured = table.find(layout_kind(layout), activations, tokens);
  if (Candidate* chosen = chosen_of(&all, forced, measured); chosen != nullptr) {
    chosen->verdict = Verdict::kChosen;
    chosen->reason = !forced.empty() ? "asked for"
                     : measured != nullptr && chosen->kernel->name == measured->kernel
                         ? fmt::format("the quickest when measured at {} tokens", measured->tokens)
                         : "most multiply-adds a cycle";
  }
  return all;
}

const Kernel& choose_kernel(const WeightLayout& layout, ActivationKind activations, std::string_view forced,
                            uint64_t tokens, const TuningTable& table) {
  const std::vector<Candidate> all = candidates(layout, activations, forced, tokens, table);
  for (const Candidate& candidate : all) {
    if (candidate.verdict == Verdict::kChosen) return *candidate.kernel;
  }
  throw none_chosen(all, forced);
}

const KernelChoice& choose_kernels(const WeightLayout& layout, ActivationKind activations, std::string_view forced,
                                   const TuningTable& table) {
  std::vector<Candidate> all = judged(layout, activations);
  const std::string kind = layout_kind(layout);
  KernelChoice choice;
  for (uint64_t i = 0; i < kTokenClasses; ++i) {
    const TuningRow* measured = table.find(kind, activations, first_of_token_class(i));
    const Candidate* chosen = chosen_of(&all, forced, measured);
    if (chosen == nullptr) throw none_chosen(all, forced);
    choice.kernels[i] = chosen->kernel;
    choice.panels[i] = chosen->kernel->panel(layout);
  }
  return kept(std::move(choice));
}

}  // namespace nibble
