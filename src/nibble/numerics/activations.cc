#include "nibble/numerics/activations.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "nibble/base/check.h"
#include "nibble/base/checked_math.h"
#include "nibble/numerics/simd/kernels.h"

namespace nibble {

void quantize_activations_1xn(const DenseView& x, const ActivationQuantization& how, std::byte* codes, float* scales) {
  NIBBLE_CHECK(how.element == Element::kE4M3 || how.element == Element::kInt8);
  if (x.rows == 0 || x.cols == 0) return;
  const simd::Kernels& kernels = simd::kernels();
  const float levels = how.element == Element::kE4M3 ? kE4m3Max : kInt8Range;
  const uint64_t group = how.group == 0 ? x.cols : how.group, groups = ceil_div(x.cols, group);
  std::vector<float> row(x.cols);
  simd::EncodeJob job;
  job.element = how.element;
  job.arithmetic.zero_sign = ZeroSign::kKeepSign;
  job.x = row.data();
  job.cols = x.cols;
  job.block_cols = group;
  job.low = -kInt8Range;
  job.high = kInt8Range;
  for (uint64_t t = 0; t < x.rows; ++t) {
    float* of_token = scales + t * groups;
    kernels.load(x.element, x.data + t * x.row_stride, x.cols, row.data());
    std::fill_n(of_token, groups, 0.0f);
    kernels.block_abs_max(row.data(), x.cols, group, of_token);
    for (uint64_t g = 0; g < groups; ++g) of_token[g] = activation_scale(of_token[g], how.floor, levels, how.ue8m0);
    job.divisor = job.multiplier = of_token;
    job.codes = codes + t * x.cols;
    kernels.encode(job, nullptr);
    for (uint64_t g = 0; g < groups; ++g) {
      if (is_finite(of_token[g])) continue;
      const uint64_t first = g * group;
      std::memset(job.codes + first, kE4m3Nan, std::min(group, x.cols - first));
    }
  }
}

}  // namespace nibble
