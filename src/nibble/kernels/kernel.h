// A kernel: code for one instruction set that computes panels (panel.h) of the layouts it takes. One file each under
// cpu/, a row in kernel_list.cc; the reference takes everything.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "nibble/kernels/panel.h"

namespace nibble {

enum class ActivationKind : uint8_t { kF32, kInt8, kE2M1, kBF16 };

std::string_view activation_kind_name(ActivationKind kind);  // "f32", "int8", "e2m1", "bf16"

struct Kernel {
  std::string_view name;  // "avx512-vnni"
  ActivationKind activations = ActivationKind::kF32;
  // Multiply-adds that a core starts in a cycle at most: what choices go by where nothing was measured.
  double macs_per_cycle = 1;
  // "" where this processor runs it, else what it lacks. Asked before anything else of it.
  std::string (*processor_lacks)();
  // Null where it does not take the layout; then `obstacle` says why.
  Panel (*panel)(const WeightLayout& layout);
  std::string (*obstacle)(const WeightLayout& layout);
};

// The list: kernel_list.cc holds its rows and nothing else.
std::span<const Kernel* const> kernels();

}  // namespace nibble
