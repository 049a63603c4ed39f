// Rows of encoded matrices into the layout of fragment_layout.h, once when weights are loaded, on the host; and back.
// Packing moves bits: every code and every scale can be read back as it was, and nothing is rounded or clamped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nibble/kernels/cuda/fragment_layout.h"
#include "nibble/numerics/encoded.h"

namespace nibble {

// Which stored rows become which rows of the layout.
enum class FragmentRowOrder : uint8_t {
  kPlain,            // as they are
  kGateThenUp,       // rows 0 .. N/2 - 1 are gate, the rest up: interleaved by eights
  kGateUpAlternate,  // gate in even rows, up in odd ones, as gpt-oss stores them: interleaved by eights
};

// The stored row that row `row` of the layout holds.
uint64_t source_row(FragmentRowOrder order, uint64_t rows, uint64_t row);

// Writes layout.bytes() of `matrix`, of the whole (N, K) `view`. Returns the factor that the kernels multiply sums
// with, without the second-level scale: a power of two where exponents were shifted, else 1. Error on scales that are
// not finite or negative, and on exponents that span more than kLargestE8M0Span binades.
float pack_fragments(const FragmentLayout& layout, const EncodedView& view, FragmentRowOrder order,
                     std::span<std::byte> matrix);

// The inverse: codes and scales as canonical arrays in the stored order of rows.
void unpack_fragments(const FragmentLayout& layout, std::span<const std::byte> matrix, FragmentRowOrder order,
                      float factor, EncodedMatrix* out);

// (N) per row in the stored order, such as biases, to the layout's order.
std::vector<float> reorder_rows(FragmentRowOrder order, std::span<const float> values);

}  // namespace nibble
