#include "nibble/numerics/recast.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "nibble/base/check.h"
#include "nibble/numerics/codec/e2m1.h"
#include "nibble/numerics/codec/e4m3.h"
#include "nibble/numerics/codec/e8m0.h"
#include "nibble/numerics/codec/int4.h"
#include "nibble/numerics/rules/applies.h"
#include "nibble/numerics/scale_codec.h"

namespace nibble {
namespace {

constexpr uint64_t kMxBlock = 32;

// The largest exponent of a block lands on this multiple of the shared scale: 2^8 is E4M3's largest power of two, and
// 6 * 2^6 = 384 fits under 448.
constexpr int kNvTopExponent = 8;
constexpr int kFp8TopExponent = 6;
// Below it E4M3 ends: 2^-9 is its smallest number, and an element needs its 0.5 to reach down to there.
constexpr int kNvMaxSpan = 17;
constexpr int kFp8MaxSpan = 14;

int exponent_of(std::byte e8m0) { return static_cast<int>(e8m0) - 127; }

bool has_nonzero_code(const std::byte* codes) {
  return std::any_of(codes, codes + kMxBlock / 2,
                     [](std::byte pair) { return (pair & std::byte{0x77}) != std::byte{0}; });
}

// Calls visit(row, block, codes of the block, its E8M0 byte).
template <typename Visit>
void for_each_block(const EncodedView& in, Visit visit) {
  const uint64_t blocks = in.cols / kMxBlock, row_bytes = in.format->code_row_bytes(in.cols);
  for (uint64_t row = 0; row < in.rows; ++row) {
    for (uint64_t b = 0; b < blocks; ++b) {
      visit(row, b, in.codes + row * row_bytes + b * (kMxBlock / 2), in.scales[row * blocks + b]);
    }
  }
}

ExponentSpan scan(const EncodedView& in) {
  ExponentSpan span;
  for_each_block(in, [&](uint64_t, uint64_t, const std::byte* codes, std::byte scale) {
    if (has_nonzero_code(codes)) span.add({exponent_of(scale), exponent_of(scale)});
  });
  return span;
}

TensorScale no_tensor_scale(const Format&, const ExponentSpan&, SecondLevel) { return {}; }

// ---- MXFP4 -> NVFP4: the codes stay, 2^k becomes 2^(k - m) under a second level of 2^m.

// 2^m has to exist as float32, and where files hold the divisor so does 2^-m.
TensorScale nv_tensor_scale(const Format&, const ExponentSpan& span, SecondLevel level) {
  if (span.empty()) return {level == SecondLevel::kDivide ? level : SecondLevel::kMultiply, 1.0f};
  const int m = std::max(span.high - kNvTopExponent, level == SecondLevel::kDivide ? -127 : -149);
  if (level == SecondLevel::kDivide) return {level, exp2_int(-m)};
  return {SecondLevel::kMultiply, exp2_int(m)};
}

// m of the power of two in `scale`.
int second_level_exponent(const TensorScale& scale) {
  const uint32_t bits = magnitude_bits(scale.value);
  const int exponent = bits >= 0x800000u ? static_cast<int>(bits >> 23) - 127 : 31 - __builtin_clz(bits) - 149;
  return scale.level == SecondLevel::kDivide ? -exponent : exponent;
}

bool convert_to_nvfp4(const EncodedView& in, const TensorScale& scale, const MutableEncodedView& out) {
  const int m = second_level_exponent(scale);
  bool exact = true;
  std::memcpy(out.codes, in.codes, in.rows * in.format->code_row_bytes(in.cols));
  const uint64_t nv_blocks = in.cols / 16;
  for_each_block(in, [&](uint64_t row, uint64_t b, const std::byte* codes, std::byte e8m0) {
    const int k = exponent_of(e8m0) - m;
    // A block of zeros may have any scale: the nearest that there is.
    if ((k < -9 || k > kNvTopExponent) && has_nonzero_code(codes)) exact = false;
    const auto byte = static_cast<std::byte>(e4m3_magnitude(exp2_int(std::clamp(k, -9, kNvTopExponent))));
    std::byte* pair = out.scales + row * nv_blocks + 2 * b;
    pair[0] = pair[1] = byte;
  });
  return exact;
}

// ---- MXFP4 -> MXFP8: the scales stay, every E2M1 value is an E4M3 value.

bool convert_to_mxfp8(const EncodedView& in, const TensorScale&, const MutableEncodedView& out) {
  std::memcpy(out.scales, in.scales, in.rows * (in.cols / kMxBlock));
  for (uint64_t row = 0; row < in.rows; ++row) {
    const std::byte* codes = in.codes + row * in.format->code_row_bytes(in.cols);
    for (uint64_t k = 0; k < in.cols; ++k) {
      const uint8_t code = unpack_nibble(static_cast<uint8_t>(codes[k / 2]), k % 2 != 0);
      out.codes[row * in.cols + k] = std::byte{e4m3_encode(e2m1_decode(code))};
    }
  }
  return true;
}

// ---- MXFP4 -> FP8 with one scale 2^m for a tile, a row or the matrix: codes become e2m1 * 2^(k - m).

int fp8_exponent(const ExponentSpan& span) {
  return span.empty() ? 0 : std::clamp(span.high - kFp8TopExponent, -127, 127);
}

TensorScale fp8_tensor_scale(const Format& to, const ExponentSpan& span, SecondLevel) {
  if (!has_tensor_scale_only(to)) return {};
  return {SecondLevel::kNone, exp2_int(fp8_exponent(span))};
}

// Rows and columns of `in` that share one scale of the target.
struct Tile {
  uint64_t row, rows, col, cols;
};

ExponentSpan span_of(const EncodedView& in, const Tile& tile) {
  EncodedView rows = in;
  rows.rows = tile.rows;
  rows.codes = in.codes + tile.row * in.format->code_row_bytes(in.cols);
  rows.scales = in.scales + tile.row * (in.cols / kMxBlock);
  ExponentSpan span;
  for_each_block(rows, [&](uint64_t, uint64_t b, const std::byte* codes, std::byte scale) {
    const bool inside = b * kMxBlock >= tile.col && b * kMxBlock < tile.col + tile.cols;
    if (inside && has_nonzero_code(codes)) span.add({exponent_of(scale), exponent_of(scale)});
  });
  return span;
}

// False if some value does not survive in E4M3 under the scale 2^m.
bool convert_tile_to_fp8(const EncodedView& in, const Tile& tile, int m, const MutableEncodedView& out) {
  bool exact = true;
  for (uint64_t row = tile.row; row < tile.row + tile.rows; ++row) {
    const std::byte* codes = in.codes + row * in.format->code_row_bytes(in.cols);
    const std::byte* scales = in.scales + row * (in.cols / kMxBlock);
    for (uint64_t k = tile.col; k < tile.col + tile.cols; ++k) {
      const float element = e2m1_decode(unpack_nibble(static_cast<uint8_t>(codes[k / 2]), k % 2 != 0));
      const int shift = std::clamp(exponent_of(scales[k / kMxBlock]) - m, -32, 32);
      const float value = element * exp2_int(shift);
      const uint8_t code = e4m3_encode(value);
      exact = exact && e4m3_decode(code) == value;
      out.codes[row * in.cols + k] = std::byte{code};
    }
  }
  return exact;
}

bool convert_to_fp8(const EncodedView& in, const TensorScale& scale, const MutableEncodedView& out) {
  const Format& to = *out.format;
  const uint64_t tile_rows = to.block_rows == 0 ? in.rows : to.block_rows;
  const uint64_t tile_cols = to.block_cols == 0 ? in.cols : to.block_cols;
  NIBBLE_CHECK(tile_cols % kMxBlock == 0 || tile_cols == in.cols);
  std::byte* stored = out.scales;
  bool exact = true;
  for (uint64_t row = 0; row < in.rows; row += tile_rows) {
    for (uint64_t col = 0; col < in.cols; col += tile_cols) {
      const Tile tile{row, std::min(tile_rows, in.rows - row), col, std::min(tile_cols, in.cols - col)};
      const float power = has_tensor_scale_only(to) ? scale.value : exp2_int(fp8_exponent(span_of(in, tile)));
      const uint32_t bits = scale_encode(to.scale, power);
      exact = exact && scale_decode(to.scale, bits) == power;
      std::memcpy(stored, &bits, to.scale_bytes());
      stored += to.scale_bytes();
      exact = convert_tile_to_fp8(in, tile, second_level_exponent({SecondLevel::kNone, power}), out) && exact;
    }
  }
  return exact;
}

constexpr int kAnySpan = 254;  // all that E8M0 can hold

constexpr ExactRecast kRecasts[] = {
    {"mxfp4", "nvfp4", kNvMaxSpan, scan, nv_tensor_scale, convert_to_nvfp4},
    {"mxfp4", "mxfp8", kAnySpan, scan, no_tensor_scale, convert_to_mxfp8},
    {"mxfp4", "fp8-block", kFp8MaxSpan, scan, fp8_tensor_scale, convert_to_fp8},
    {"mxfp4", "fp8-channel", kFp8MaxSpan, scan, fp8_tensor_scale, convert_to_fp8},
    {"mxfp4", "fp8-tensor", kFp8MaxSpan, scan, fp8_tensor_scale, convert_to_fp8},
};

}  // namespace

void ExponentSpan::add(const ExponentSpan& other) {
  low = std::min(low, other.low);
  high = std::max(high, other.high);
}

const ExactRecast* exact_recast(const Format& from, const Format& to) {
  for (const ExactRecast& recast : kRecasts) {
    if (family_of(from).pattern == recast.from && family_of(to).pattern == recast.to) return &recast;
  }
  return nullptr;
}

}  // namespace nibble
