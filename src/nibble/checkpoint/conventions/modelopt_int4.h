// ModelOpt's INT4 (FORMATS.md §7.2): U8 (N/2, K), byte (i, k) holds rows 2i (low nibble) and 2i + 1 (high) of column k
// as two's complement nibbles; scales (N, K/g).
#pragma once

#include "nibble/checkpoint/conventions/claim.h"
#include "nibble/checkpoint/conventions/fp4_weights.h"

namespace nibble {

bool claim_modelopt_int4(Claim* claim, const Fp4Names& names, std::string weight_name, const DeclaredSizes* declared);
EncodedMatrix read_modelopt_int4(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                                 uint64_t rows);

}  // namespace nibble
