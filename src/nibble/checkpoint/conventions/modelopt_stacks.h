// Expert stacks of modules that compute with (E, K, N) weights (gpt-oss, Llama 4), as ModelOpt exports them: quantized
// along K, then laid back as they were. "NAME" U8 (E, K/2, N) with two columns of one row in a byte,
// "NAME_weight_scale" E4M3 (E, K/16, N), "NAME_weight_scale_2" F32, one for the whole stack.
#pragma once

#include <string>
#include <vector>

#include "nibble/checkpoint/conventions/claim.h"
#include "nibble/checkpoint/conventions/fp4_weights.h"

namespace nibble {

// Are both laid out so? Only where the other way round, (E, N, K/2) and (E, N, K/16), is impossible.
bool is_transposed_stack(const StoredTensor& codes, const StoredTensor& scale);
// False if it was refused. `variant` marks the weight as transposed.
bool claim_transposed_stack(Claim* claim, const Fp4Names& names, std::string weight_name, uint32_t variant);
// Reads the whole slice, whatever the rows.
EncodedMatrix read_transposed_stack(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice,
                                    uint64_t row_begin, uint64_t rows);

std::vector<PartDecl> declare_transposed_stack(const WriteRequest& request, const Fp4Names& names);
// `rows`: a whole slice.
std::vector<PartRun> emit_transposed_stack(const WriteRequest& request, uint64_t slice, const EncodedView& rows);

}  // namespace nibble
