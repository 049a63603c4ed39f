// Weights of two E2M1 elements a byte (even column in the low nibble) with linear row-major scales: E8M0 for 32
// columns, or E4M3 for 16 with a float32 second-level scale. The container's type of the bytes says nothing: U8, I8 and
// F4 all occur, and a sign is never extended.
#pragma once

#include <string>
#include <string_view>

#include "nibble/checkpoint/conventions/claim.h"

namespace nibble {

struct Fp4Names {
  std::string_view codes, scale;
  std::string_view second;       // second-level scale of E4M3 scales; "" if the convention has none
  std::string_view input_scale;  // "" likewise
};

// Could these bytes be FP4 with these scales? Two elements a byte (F4: one an element), a scale for 32 or 16 columns.
bool looks_like_fp4(const StoredTensor& codes, const StoredTensor& scale);
// False if it was refused; codes and scale must both be there.
bool claim_fp4_weight(Claim* claim, const Fp4Names& names, std::string weight_name);
// `level` says how the second-level scale enters; a format with one level ignores it.
EncodedMatrix read_fp4_weight(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                              uint64_t rows, SecondLevel level);

}  // namespace nibble
