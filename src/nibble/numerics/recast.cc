#include "nibble/numerics/recast.h"

#include <algorithm>
#include <cstring>

#include "nibble/numerics/codec/e2m1.h"
#include "nibble/numerics/codec/e4m3.h"
#include "nibble/numerics/codec/e8m0.h"
#include "nibble/numerics/codec/int4.h"

namespace nibble {
namespace {

constexpr uint64_t kMxBlock = 32;

// The largest exponent of a block lands on 2^8 under the second level: E4M3's largest power of two.
constexpr int kNvTopExponent = 8;
// Below it E4M3 ends: 2^-9 is its smallest number.
constexpr int kNvMaxSpan = 17;

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

// ---- MXFP4 -> NVFP4: the codes stay, 2^k becomes 2^(k - m) under a second level of 2^m.

// 2^m has to exist as float32, and where files hold the divisor so does 2^-m.
TensorScale nv_tensor_scale(const ExponentSpan& span, SecondLevel level) {
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

std::optional<Inexact> convert_to_nvfp4(const EncodedView& in, const TensorScale& scale,
                                        const MutableEncodedView& out) {
  const int m = second_level_exponent(scale);
  std::optional<Inexact> inexact;
  std::memcpy(out.codes, in.codes, in.rows * in.format->code_row_bytes(in.cols));
  const uint64_t nv_blocks = in.cols / 16;
  for_each_block(in, [&](uint64_t row, uint64_t b, const std::byte* codes, std::byte e8m0) {
    const int k = exponent_of(e8m0) - m;
    // A block of zeros may have any scale: the nearest that there is.
    if (!inexact && (k < -9 || k > kNvTopExponent) && has_nonzero_code(codes)) {
      inexact = Inexact{row,
                        b * kMxBlock,
                        "the block exponents span too much for one shared scale",
                        {{"exponent", exponent_of(e8m0)}, {"shared_exponent", m}}};
    }
    const auto byte = static_cast<std::byte>(e4m3_magnitude(exp2_int(std::clamp(k, -9, kNvTopExponent))));
    std::byte* pair = out.scales + row * nv_blocks + 2 * b;
    pair[0] = pair[1] = byte;
  });
  return inexact;
}

constexpr SharedScale kNvSecondLevel = {kNvMaxSpan, scan, nv_tensor_scale};

// ---- MXFP4 -> MXFP8: the scales stay, every E2M1 value is an E4M3 value.

std::optional<Inexact> convert_to_mxfp8(const EncodedView& in, const TensorScale&, const MutableEncodedView& out) {
  std::memcpy(out.scales, in.scales, in.rows * (in.cols / kMxBlock));
  for (uint64_t row = 0; row < in.rows; ++row) {
    const std::byte* codes = in.codes + row * in.format->code_row_bytes(in.cols);
    for (uint64_t k = 0; k < in.cols; ++k) {
      const uint8_t code = unpack_nibble(static_cast<uint8_t>(codes[k / 2]), k % 2 != 0);
      out.codes[row * in.cols + k] = std::byte{e4m3_encode(e2m1_decode(code))};
    }
  }
  return std::nullopt;
}

constexpr ExactRecast kRecasts[] = {
    {"mxfp4", "nvfp4", &kNvSecondLevel, convert_to_nvfp4},  // one scale for several matrices
    {"mxfp4", "mxfp8", nullptr, convert_to_mxfp8},         {"mxfp4", "fp8-block", nullptr, recast_fp4_to_e4m3},
    {"mxfp4", "fp8-channel", nullptr, recast_fp4_to_e4m3}, {"mxfp4", "fp8-tensor", nullptr, recast_fp4_to_e4m3},
    {"nvfp4", "fp8-block", nullptr, recast_fp4_to_e4m3},   {"nvfp4", "fp8-channel", nullptr, recast_fp4_to_e4m3},
    {"nvfp4", "fp8-tensor", nullptr, recast_fp4_to_e4m3},  {"nvfp4", "mxfp8", nullptr, recast_fp4_to_e4m3},
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
