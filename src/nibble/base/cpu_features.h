// Which instruction sets this processor has and the operating system lets us use. The environment variable NIBBLE_ISA
// (`scalar`, `avx2`, `avx512`) lowers the answer, and NIBBLE_WITHOUT (a list of `vnni`, `bf16`, `amx`) takes single
// extensions away, so that every path can be tested and compared on one machine. Error for other words in either.
#pragma once

#include <string_view>

namespace nibble {

enum class Isa { kScalar, kAvx2, kAvx512 };

// The best of the above, NIBBLE_ISA applied. avx2 implies FMA, F16C and BMI2; avx512 implies F, BW, VL, DQ and VBMI.
Isa best_isa();
std::string_view isa_name(Isa isa);

// Dot products of bytes: in AVX2's encoding, and in AVX-512's. False below that instruction set by NIBBLE_ISA.
bool has_avx_vnni();
bool has_avx512_vnni();
// Dot products of BF16 pairs, in AVX-512's encoding.
bool has_avx512_bf16();
// Tiles of bytes, which the system must also let this process use: asked for once.
bool has_amx_int8();

}  // namespace nibble
