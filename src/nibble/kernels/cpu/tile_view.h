// Where the parts of a tile lie, and the tile's scales and codes one by one: what the reference computes with and tests
// look into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "nibble/kernels/weight_layout.h"
#include "nibble/numerics/element_codec.h"
#include "nibble/numerics/scale_codec.h"

namespace nibble {

class TileView {
 public:
  TileView(const ResidentMatrix& matrix, uint64_t group, uint64_t tile)
      : matrix_(&matrix),
        at_(matrix.row_group(group) + tile * matrix.layout.tile_bytes()),
        apart_(matrix.apart(group)),
        tile_(tile) {}

  // Scale times multiplier; 1 without scales.
  float scale(uint64_t lane) const {
    const WeightLayout& layout = matrix_->layout;
    if (layout.apart_cols != 0) {
      const uint64_t col = tile_ * layout.tile_cols / layout.apart_cols;
      return apart_[col * layout.apart_lanes + (layout.apart_lanes == 1 ? 0 : lane)] * matrix_->multiplier;
    }
    if (layout.scale == ScaleType::kNone) return 1;
    const uint64_t size = scale_type_bytes(layout.scale);
    uint32_t bits = 0;
    std::memcpy(&bits, at_ + lane * size, size);
    return scale_decode(layout.scale, bits) * matrix_->multiplier;
  }

  // The code whose value is 0 (or the minimum).
  int zero(uint64_t lane) const {
    const WeightLayout& layout = matrix_->layout;
    if (layout.zero == ZeroPoint::kCode) return std::to_integer<int>(at_[layout.scale_bytes() + lane]);
    return layout.zero == ZeroPoint::kMin ? 0 : 8;
  }

  // What is added to code times scale.
  float min(uint64_t lane) const {
    if (matrix_->layout.zero != ZeroPoint::kMin) return 0;
    float value = 0;
    std::memcpy(&value, at_ + matrix_->layout.scale_bytes() + lane * sizeof(float), sizeof(float));
    return value;
  }

  // Bits of the code of a column of the tile.
  uint32_t code(uint64_t lane, uint64_t col) const {
    const WeightLayout& layout = matrix_->layout;
    const std::byte* codes = at_ + layout.scale_bytes() + layout.zero_bytes();
    const auto four_bytes = [&](uint64_t columns_per_lane, uint64_t bits) {
      uint32_t word = 0;
      std::memcpy(&word, codes + col / columns_per_lane * 64 + lane * 4, 4);
      return (word >> (col % columns_per_lane * bits)) & ((uint64_t{1} << bits) - 1);
    };
    switch (layout.codes) {
      case CodeKind::kE2M1:
      case CodeKind::kInt4: return static_cast<uint32_t>(four_bytes(8, 4));
      case CodeKind::kInt8: return static_cast<uint32_t>(four_bytes(4, 8));
      case CodeKind::kBF16: return static_cast<uint32_t>(four_bytes(2, 16));
      case CodeKind::kE4M3: return std::to_integer<uint32_t>(codes[col / 2 * 32 + lane * 2 + col % 2]);
      case CodeKind::kF32: return static_cast<uint32_t>(four_bytes(1, 32));
    }
    return 0;
  }

  float value(uint64_t lane, uint64_t col) const {
    const uint32_t bits = code(lane, col);
    switch (matrix_->layout.codes) {
      case CodeKind::kE2M1: return e2m1_decode(static_cast<uint8_t>(bits));
      case CodeKind::kInt4: return static_cast<float>(static_cast<int>(bits) - zero(lane));
      case CodeKind::kInt8: return static_cast<float>(static_cast<int8_t>(bits));
      case CodeKind::kE4M3: return e4m3_decode(static_cast<uint8_t>(bits));
      case CodeKind::kBF16: return bf16_decode(static_cast<uint16_t>(bits));
      case CodeKind::kF32: return bits_float(bits);
    }
    return 0;
  }

 private:
  const ResidentMatrix* matrix_;
  const std::byte* at_;
  const float* apart_;
  uint64_t tile_;
};

}  // namespace nibble
