// What GPTQ and AWQ share (FORMATS.md §8): `qweight` and `qzeros` in 32-bit words, `scales` (groups, out), and `g_idx`.
// Both store matrices (in, out); which of both axes the words run along tells them apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "nibble/checkpoint/conventions/claim.h"

namespace nibble {

namespace word_packed {
inline constexpr std::string_view kWeight = "qweight";
inline constexpr std::string_view kZeros = "qzeros";
inline constexpr std::string_view kScales = "scales";
inline constexpr std::string_view kIndex = "g_idx";
}  // namespace word_packed

// Are qweight, qzeros and scales there, matrices, of the right types, with as many groups and outputs each? nullopt if
// not; then what is incomplete has been refused.
struct WordPacked {
  uint64_t weight_rows = 0, weight_cols = 0;  // in words
  uint64_t groups = 0, out = 0, zero_cols = 0;
};
std::optional<WordPacked> word_packed_parts(Claim* claim);

// Columns that share a scale, 0 for whole rows; nullopt if `groups` does not go with `cols` and the declared sizes.
std::optional<uint64_t> word_packed_group(uint64_t cols, uint64_t groups, const DeclaredSizes* declared);
bool refuse_groups(Claim* claim, uint64_t cols, uint64_t groups, const DeclaredSizes* declared);

std::vector<uint32_t> read_words(const Checkpoint& checkpoint, const StoredTensor& tensor);
// Scales (groups, out) of the rows' outputs, turned into (rows, groups).
void read_turned_scales(const Checkpoint& checkpoint, const Weight& weight, uint64_t row_begin, EncodedMatrix* out);

}  // namespace nibble
