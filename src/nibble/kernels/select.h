// Which kernel multiplies a matrix: the one that was asked for by name, else what this machine's tuning table says was
// the quickest (tuning.h), else the first of those that this processor runs and that take the layout, most
// multiply-adds a cycle first. All of them give the same bits (panel.h), so the choice is one of speed alone and may
// change with the number of tokens. The kind of activations is no choice: it is part of the scheme, and the caller's.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/kernels/kernel.h"
#include "nibble/kernels/tuning.h"

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
std::vector<Candidate> candidates(const WeightLayout& layout, ActivationKind activations, std::string_view forced = "",
                                  uint64_t tokens = 1, const TuningTable& table = machine_tuning());

// The chosen one. Error with every kernel's reason if there is none.
const Kernel& choose_kernel(const WeightLayout& layout, ActivationKind activations, std::string_view forced = "",
                            uint64_t tokens = 1, const TuningTable& table = machine_tuning());

// The kernels of a matrix for any number of tokens.
struct KernelChoice {
  std::array<const Kernel*, kTokenClasses> kernels{};
  std::array<Panel, kTokenClasses> panels{};
  std::string name;  // "avx512-vnni"; "avx512-vnni, amx from 32 tokens"

  Panel panel(uint64_t tokens) const { return panels[token_class(tokens)]; }
  const Kernel& kernel(uint64_t tokens) const { return *kernels[token_class(tokens)]; }
};

// Lives as long as the program; equal choices are one. Error as choose_kernel's. May be called by several threads.
const KernelChoice& choose_kernels(const WeightLayout& layout, ActivationKind activations, std::string_view forced = "",
                                   const TuningTable& table = machine_tuning());

}  // namespace nibble
