// FP4 -> E4M3: the values under one scale of the target (a tile, a row, the matrix, a block of MXFP8) become codes
// under S = unit * 2^k, where the unit is what a block scale of 1 means in the source (1, or the second level of
// NVFP4).
//
// A product of an FP4 code and a block scale has up to six significant bits, E4M3 has four: whether S exists depends on
// the pairs of block scale and code that occur, so those are collected first, in a bit each.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "nibble/base/check.h"
#include "nibble/numerics/codec/e2m1.h"
#include "nibble/numerics/codec/e4m3.h"
#include "nibble/numerics/effective_scale.h"
#include "nibble/numerics/recast.h"
#include "nibble/numerics/rules/applies.h"
#include "nibble/numerics/scale_codec.h"

namespace nibble {
namespace {

// For each pair of nibbles: a bit for each of the two magnitudes.
constexpr std::array<uint8_t, 256> kMagnitudes = [] {
  std::array<uint8_t, 256> bits{};
  for (unsigned pair = 0; pair < 256; ++pair)
    bits[pair] = static_cast<uint8_t>(1u << (pair & 7u) | 1u << (pair >> 4 & 7u));
  return bits;
}();

// The largest exponent of a block lands on this power of the scale: 6 * 2^6 = 384 fits under 448, which is the vendor's
// recipe (FORMATS.md §6.3); and MXFP8's codes are those of MXFP4.
constexpr int kTopExponent = 6;

// Rows and columns that share one scale of the target.
struct Tile {
  uint64_t row, rows, col, cols;
};

class ToE4m3 {
 public:
  ToE4m3(const EncodedView& in, const MutableEncodedView& out)
      : in_(in),
        out_(out),
        to_(*out.format),
        block_(in.format->block_cols),
        row_bytes_(in.format->code_row_bytes(in.cols)) {
    NIBBLE_CHECK(in.format->element == Element::kE2M1 && in.format->scale_bytes() == 1);
    const TensorScale& second = in.tensor_scale;
    for (uint32_t byte = 0; byte < 256; ++byte)
      effective_[byte] = effective_scale(scale_decode(in.format->scale, byte), second.level, second.value);
    // E8M0 holds no multiples of anything else.
    unit_ = to_.scale == ScaleType::kE8M0 ? 1.0f : effective_scale(1.0f, second.level, second.value);
  }

  std::optional<Inexact> run() {
    const uint64_t tile_rows = to_.block_rows == 0 ? in_.rows : to_.block_rows;
    const uint64_t tile_cols = to_.block_cols == 0 ? in_.cols : to_.block_cols;
    NIBBLE_CHECK(tile_cols % block_ == 0 || tile_cols == in_.cols);
    std::byte* stored = out_.scales;
    for (uint64_t row = 0; row < in_.rows; row += tile_rows) {
      for (uint64_t col = 0; col < in_.cols; col += tile_cols) {
        const Tile tile{row, std::min(tile_rows, in_.rows - row), col, std::min(tile_cols, in_.cols - col)};
        collect(tile);
        const std::optional<uint32_t> scale = choose_scale();
        if (!scale) return inexact(tile);
        std::memcpy(stored, &*scale, to_.scale_bytes());
        stored += to_.scale_bytes();
        write(tile);
      }
    }
    return std::nullopt;
  }

 private:
  // Calls visit(row, column, codes of the block, its scale byte).
  template <typename Visit>
  void for_each_block(const Tile& tile, const Visit& visit) const {
    const uint64_t blocks = in_.format->scale_cols(in_.cols);
    for (uint64_t row = tile.row; row < tile.row + tile.rows; ++row) {
      for (uint64_t col = tile.col; col < tile.col + tile.cols; col += block_)
        visit(row, col, in_.codes + row * row_bytes_ + col / 2,
              static_cast<uint8_t>(in_.scales[row * blocks + col / block_]));
    }
  }

  void collect(const Tile& tile) {
    used_.fill(0);
    for_each_block(tile, [this](uint64_t, uint64_t, const std::byte* codes, uint8_t scale) {
      uint8_t bits = 0;
      for (uint64_t i = 0; i < block_ / 2; ++i) bits |= kMagnitudes[static_cast<uint8_t>(codes[i])];
      used_[scale] |= bits;
    });
    scales_.clear();
    largest_scale_ = largest_value_ = 0;
    for (size_t byte = 0; byte < 256; ++byte) {
      if (used_[byte] == 0) continue;
      scales_.push_back(static_cast<uint8_t>(byte));
      const uint32_t top = std::bit_width(static_cast<uint32_t>(used_[byte])) - 1;
      const double value = std::fabs(double{effective_[byte]}) * double{e2m1_decode(static_cast<uint8_t>(top))};
      if (value > 0) largest_scale_ = std::max(largest_scale_, std::fabs(double{effective_[byte]}));
      largest_value_ = std::max(largest_value_, value);
    }
  }

  // Bits of the stored scale. The customary one, else the smallest such multiple that reaches the largest value, else
  // one under which the largest value is an E4M3 number: what those do not hold, none does that float32 has in full.
  std::optional<uint32_t> choose_scale() {
    if (largest_value_ == 0) return fit(is_mx(to_) ? exp2_int(-127) : 1.0f);
    if (!(unit_ > 0) || !is_finite(unit_)) return std::nullopt;
    std::optional<uint32_t> scale = fit(multiple(customary_exponent()));
    if (!scale) scale = fit(multiple(least_exponent()));
    return scale || to_.scale == ScaleType::kE8M0 ? scale : fit_by_largest_value();
  }

  // E4M3 has eight significands: the largest value must become one of them, in the highest binade that has it.
  std::optional<uint32_t> fit_by_largest_value() {
    constexpr double kLeastNormal = 0x1p-126;
    const double largest = double{static_cast<float>(largest_value_)};
    for (uint8_t code = kE4m3MaxCode; code > kE4m3MaxCode - 8; --code) {
      const auto scale = static_cast<float>(largest / double{e4m3_decode(code)});
      if (double{scale} < kLeastNormal) continue;
      if (const auto stored = fit(scale)) return stored;
    }
    // The product is rounded, so the quotient's neighbours may give the same number. And a scale that float32 has fewer
    // bits of does not stand for the same significand in lower binades.
    for (uint8_t code = kE4m3MaxCode; code > 0; --code) {
      const double value = double{e4m3_decode(code)};
      if (code <= kE4m3MaxCode - 8 && largest / (2 * value) >= kLeastNormal) continue;
      const uint32_t quotient = float_bits(static_cast<float>(largest / value));
      for (const uint32_t bits : {quotient, quotient - 1, quotient + 1}) {
        const float scale = bits_float(bits);
        if (!(scale > 0) || static_cast<float>(double{scale} * value) != static_cast<float>(largest)) continue;
        if (const auto stored = fit(scale)) return stored;
      }
    }
    return std::nullopt;
  }

  int customary_exponent() const {
    const double ratio = largest_scale_ / double{unit_};
    const int exponent = std::ilogb(ratio);
    if (is_mx(to_)) return exponent;
    const bool fits = std::ldexp(ratio, kTopExponent - exponent) * double{kE2m1Max} <= double{kE4m3Max};
    return exponent - (fits ? kTopExponent : kTopExponent - 1);
  }

  int least_exponent() const {
    int exponent = std::ilogb(largest_value_ / (double{kE4m3Max} * double{unit_})) - 1;
    while (double{kE4m3Max} * std::ldexp(double{unit_}, exponent) < largest_value_) ++exponent;
    return exponent;
  }

  // unit * 2^exponent, or the smallest such number that float32 holds with all its bits.
  float multiple(int exponent) const {
    const bool power = (float_bits(unit_) & 0x7fffffu) == 0;
    return static_cast<float>(std::ldexp(double{unit_}, std::max(exponent, (power ? -127 : -126) - std::ilogb(unit_))));
  }

  // Fills in the codes under `scale`; nullopt if some value has none, or the scale type lacks the scale.
  std::optional<uint32_t> fit(float scale) {
    const uint32_t stored = scale_encode(to_.scale, scale);
    if (!is_finite(scale) || scale_decode(to_.scale, stored) != scale) return std::nullopt;
    for (const uint8_t byte : scales_) {
      for (uint8_t code = 0; code < 16; ++code) {
        if ((used_[byte] >> (code & 7u) & 1u) == 0) continue;
        const double value = double{effective_[byte]} * double{e2m1_decode(code)};
        // Of the number that is decoded: where float32 has few bits the exact product may lie nearer to another code.
        const auto decoded = static_cast<float>(value);
        const double numerator = is_finite(decoded) ? double{decoded} : value;
        const uint8_t e4m3 = e4m3_encode(static_cast<float>(numerator / double{scale}));
        if (!same(double{e4m3_decode(e4m3)} * double{scale}, value)) {
          lost_ = value;
          return std::nullopt;
        }
        codes_[byte][code] = std::byte{e4m3};
      }
    }
    return stored;
  }

  // Both are exact products of two float32 numbers: are they one as float32, and not merely both too large for it?
  static bool same(double a, double b) {
    const auto narrow = static_cast<float>(a);
    return a == b || (narrow == static_cast<float>(b) && is_finite(narrow));
  }

  void write(const Tile& tile) const {
    for_each_block(tile, [this](uint64_t row, uint64_t col, const std::byte* codes, uint8_t scale) {
      const auto& table = codes_[scale];
      std::byte* to = out_.codes + row * in_.cols + col;
      for (uint64_t i = 0; i < block_ / 2; ++i) {
        const auto pair = static_cast<uint8_t>(codes[i]);
        to[2 * i] = table[pair & 15u];
        to[2 * i + 1] = table[pair >> 4];
      }
    });
  }

  Inexact inexact(const Tile& tile) const {
    int low = 1 << 20;
    for (const uint8_t byte : scales_) {
      if (effective_[byte] != 0 && used_[byte] > 1) low = std::min(low, std::ilogb(effective_[byte]));
    }
    Inexact found{tile.row,
                  tile.col,
                  "the values that share one scale are not all E4M3 numbers under any that the target can hold",
                  {}};
    if (largest_value_ == 0) return found;
    found.values = {{"lowest_exponent", low},
                    {"highest_exponent", std::ilogb(largest_scale_)},
                    {"largest_value", largest_value_},
                    {"value", lost_}};
    return found;
  }

  const EncodedView& in_;
  const MutableEncodedView& out_;
  const Format& to_;
  uint64_t block_, row_bytes_;
  std::array<float, 256> effective_{};  // of the source's scale bytes
  float unit_ = 1;
  // Of the tile at hand: which magnitudes occur under which scale byte, those bytes, and the codes that come of them.
  std::array<uint8_t, 256> used_{};
  std::vector<uint8_t> scales_;
  double largest_scale_ = 0, largest_value_ = 0, lost_ = 0;
  std::array<std::array<std::byte, 16>, 256> codes_{};
};

}  // namespace

std::optional<Inexact> recast_fp4_to_e4m3(const EncodedView& in, const TensorScale&, const MutableEncodedView& out) {
  return ToE4m3(in, out).run();
}

}  // namespace nibble
