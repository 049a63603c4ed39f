// compressed-tensors' pack-quantized integers (FORMATS.md §4.3): codes in 32-bit words along the columns, offset
// binary, least significant first, which for 4 and 8 bits is the canonical byte order; zero points in words along the
// rows (or, before April 2025, one I8 each). The true column count stands in weight_shape.
#pragma once

#include <string_view>

#include "nibble/base/checked_math.h"
#include "nibble/checkpoint/conventions/claim.h"

namespace nibble {

namespace packed_ints {
inline constexpr std::string_view kPacked = "weight_packed";
inline constexpr std::string_view kScale = "weight_scale";
inline constexpr std::string_view kZero = "weight_zero_point";
inline constexpr std::string_view kIndex = "weight_g_idx";
inline constexpr std::string_view kShape = "weight_shape";
inline constexpr uint32_t kUnpackedZeros = 1;  // Weight::variant

// 32-bit words that hold `count` codes.
constexpr uint64_t words(uint64_t count, uint64_t bits) { return ceil_div(count, 32 / bits); }
}  // namespace packed_ints

// False if it was refused; weight_packed must be there and I32.
bool claim_packed_ints(Claim* claim, const DeclaredSizes* declared);
EncodedMatrix read_packed_ints(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                               uint64_t rows);

std::vector<PartDecl> declare_packed_ints(const WriteRequest& request);
std::vector<PartRun> emit_packed_ints(const WriteRequest& request, uint64_t slice, uint64_t row_begin,
                                      const EncodedView& rows);

}  // namespace nibble
