#include "nibble/verify/scale_relation.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "nibble/base/error.h"
#include "nibble/numerics/decode.h"
#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr uint64_t kMostBlocks = 4096;

struct Logs {
  double scale = 0, codes = 0;
};

// Rows [0, count) of the first slice under scales of 1, so that only codes and zero points are left.
std::vector<float> codes_of(const EncodedMatrix& matrix) {
  EncodedMatrix plain = matrix;
  plain.format.scale = ScaleType::kF32;
  plain.tensor_scale = {};
  const uint64_t scales = plain.format.scale_rows(plain.rows) * plain.format.scale_cols(plain.cols);
  plain.scales.resize(scales * sizeof(float));
  const float one = 1;
  for (uint64_t s = 0; s < scales; ++s)
    std::copy_n(reinterpret_cast<const std::byte*>(&one), sizeof(one), plain.scales.data() + s * sizeof(one));
  std::vector<float> values(plain.rows * plain.cols);
  decode(plain, values);
  return values;
}

std::optional<Logs> logs_of(float scale, const float* codes, uint64_t count) {
  double squares = 0;
  uint64_t zeros = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const auto code = static_cast<double>(codes[i]);
    squares += code * code;
    zeros += code == 0 ? 1 : 0;
  }
  if (!(scale > 0) || !std::isfinite(scale) || !std::isfinite(squares) || 2 * zeros > count) return std::nullopt;
  return Logs{std::log(static_cast<double>(scale)), std::log(squares / static_cast<double>(count)) / 2};
}

}  // namespace

double scale_relation(const VerifyContext& context, size_t w) {
  const Weight& weight = context.model->table.weights()[w];
  const Format& format = weight.format;
  const uint64_t blocks = format.scale_cols(weight.cols());
  if (format.block_rows != 1 || format.zero == ZeroPoint::kMin || blocks < 2 || weight.rows() == 0) return 0;
  std::vector<double> scales, codes;
  try {
    const uint64_t rows = std::min(weight.rows(), std::max<uint64_t>(1, kMostBlocks / blocks));
    const EncodedMatrix matrix = read_rows(*context.checkpoint, weight, 0, 0, rows);
    if (!matrix.column_group.empty()) return 0;
    const std::vector<float> values = codes_of(matrix);
    std::vector<float> stored(matrix.rows * blocks);
    scale_values(format.scale, matrix.scales.data(), stored.size(), stored.data());
    for (uint64_t r = 0; r < matrix.rows; ++r) {
      for (uint64_t b = 0; b + 1 < blocks; b += 2) {
        const float* at = values.data() + r * matrix.cols + b * format.block_cols;
        const uint64_t rest = matrix.cols - (b + 1) * format.block_cols;
        const auto one = logs_of(stored[r * blocks + b], at, format.block_cols);
        const auto next =
            logs_of(stored[r * blocks + b + 1], at + format.block_cols, std::min(format.block_cols, rest));
        if (!one || !next) continue;
        scales.push_back(one->scale - next->scale);
        codes.push_back(one->codes - next->codes);
      }
    }
  } catch (const Error&) {
    return 0;  // a finding already
  }
  return correlation_z(scales, codes);
}

}  // namespace nibble
