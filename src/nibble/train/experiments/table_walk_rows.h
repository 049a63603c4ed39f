// The loops over hidden units of the table-walk network that no BLAS does, without libtorch: a file of its own, so that
// it can be compiled for its loops. They take a third of a step's time.
#pragma once

#include <cstdint>

namespace nibble {

// out[i] = relu(one[i] + other[i])
void add_and_cut(const float* one, const float* other, int64_t count, float* out);

// Where relu let hidden[i] through, gradient[i] is added to both sums.
void add_uncut(const float* hidden, const float* gradient, int64_t count, float* sum, float* other_sum);

}  // namespace nibble
