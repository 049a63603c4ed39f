#include "nibble/train/experiments/table_walk_rows.h"

namespace nibble {

void add_and_cut(const float* one, const float* other, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) {
    const float sum = one[i] + other[i];
    out[i] = sum > 0 ? sum : 0.0f;
  }
}

void add_uncut(const float* hidden, const float* gradient, int64_t count, float* sum, float* other_sum) {
  for (int64_t i = 0; i < count; ++i) {
    const float all = gradient[i];  // read before the choice: a load under a condition keeps compilers from vectors
    const float kept = hidden[i] > 0 ? all : 0.0f;
    sum[i] += kept;
    other_sum[i] += kept;
  }
}

}  // namespace nibble
