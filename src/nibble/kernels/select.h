// Which kernel multiplies a matrix: the one that was asked for by name, else the first of those that this processor
// runs and that take the layout, most multiply-adds a cycle first. All of them give the same bits (panel.h), so the
// choice is one of speed alone. The kind of activations is no choice: it is part of the scheme, and the caller's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nibble/kernels/kernel.h"

namespace nibble {

// The activations that weights of a layout meet: what the scheme says for integers, float32 for floats.
// E2M1 activations are for blocks of four-bit floats alone; everything else meets float32 then. With `rounding` to BF16
// weights in BF16 meet BF16.
ActivationKind activations_of(const WeightLayout& layout, ActivationKind of_integers,
                              ActivationRounding rounding = ActivationRounding::kNone);

enum class Verdict : uint8_t { kChosen, kOk, kNo };

struct Candidate {
  const Kernel* kernel = nullptr;
  Verdict verdict = Verdict::kNo;
  std::string reason;  // why not, or why it was chosen
};

// All kernels, in the list's order. None is chosen if `forced` names none of those that could run.
std::vector<Candidate> candidates(const WeightLayout& layout, ActivationKind activations, std::string_view forced = "");

// The chosen one. Error with every kernel's reason if there is none.
const Kernel& choose_kernel(const WeightLayout& layout, ActivationKind activations, std::string_view forced = "");

}  // namespace nibble
