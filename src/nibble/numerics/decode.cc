#include "nibble/numerics/decode.h"

#include <algorithm>
#include <cstring>

#include "nibble/base/check.h"
#include "nibble/numerics/effective_scale.h"
#include "nibble/numerics/element_codec.h"
#include "nibble/numerics/scale_codec.h"
#include "nibble/numerics/simd/kernels.h"

namespace nibble {
namespace {

template <ScaleType kType, typename Stored>
void decode_scales(const std::byte* stored, uint64_t count, float* out) {
  for (uint64_t i = 0; i < count; ++i) {
    Stored bits = 0;
    std::memcpy(&bits, stored + i * sizeof(Stored), sizeof(Stored));
    out[i] = scale_decode<kType>(bits);
  }
}

// The scales, zero points and minima of one row of blocks.
struct BlockRow {
  std::vector<float> multiplier, zero;
  const float* min = nullptr;

  void load(const EncodedView& in, uint64_t scale_row) {
    const Format& format = *in.format;
    const uint64_t blocks = format.scale_cols(in.cols), size = format.scale_bytes(), first = scale_row * blocks;
    multiplier.resize(blocks);
    scale_values(format.scale, in.scales + first * size, blocks, multiplier.data());
    effective_scales(multiplier.data(), blocks, in.tensor_scale, multiplier.data());
    if (format.zero == ZeroPoint::kCode) {
      zero.resize(blocks);
      // A nibble's zero point is offset binary as the codes are, a byte's is signed as they are.
      const bool byte = format.element == Element::kInt8;
      for (uint64_t b = 0; b < blocks; ++b) {
        const uint8_t stored = in.zeros[first + b];
        zero[b] = static_cast<float>(byte ? static_cast<int8_t>(stored) : int4_decode(stored));
      }
    }
    if (format.zero == ZeroPoint::kMin) min = in.mins + first;
  }
};

// Columns that take their scale from an arbitrary group: blocks of one column whose scales are looked up.
void spread_over_columns(const EncodedView& in, const BlockRow& groups, BlockRow* columns) {
  columns->multiplier.resize(in.cols);
  if (!groups.zero.empty()) columns->zero.resize(in.cols);
  for (uint64_t k = 0; k < in.cols; ++k) {
    const uint32_t group = in.column_group[k];
    NIBBLE_CHECK(group < groups.multiplier.size());
    columns->multiplier[k] = groups.multiplier[group];
    if (!groups.zero.empty()) columns->zero[k] = groups.zero[group];
  }
}

void decode_blocked(const EncodedView& in, float* out, uint64_t row_stride) {
  const Format& format = *in.format;
  NIBBLE_CHECK(in.column_group == nullptr || format.zero != ZeroPoint::kMin);
  const uint64_t row_bytes = format.code_row_bytes(in.cols);
  simd::DecodeJob job;
  job.element = format.element;
  job.cols = in.cols;
  job.block_cols = format.block_cols == 0 ? in.cols : format.block_cols;
  if (in.column_group != nullptr) job.block_cols = 1;
  const simd::Kernels& kernels = simd::kernels();
  BlockRow groups, columns;
  uint64_t loaded = ~uint64_t{0};
  for (uint64_t row = 0; row < in.rows; ++row) {
    const uint64_t scale_row = format.block_rows == 0 ? 0 : (in.row_phase + row) / format.block_rows;
    if (scale_row != loaded) {
      groups.load(in, scale_row);
      if (in.column_group != nullptr) spread_over_columns(in, groups, &columns);
      loaded = scale_row;
    }
    const BlockRow& scales = in.column_group != nullptr ? columns : groups;
    job.multiplier = scales.multiplier.data();
    job.zero = scales.zero.empty() ? nullptr : scales.zero.data();
    job.min = scales.min;
    job.codes = in.codes + row * row_bytes;
    job.out = out + row * row_stride;
    kernels.decode(job);
  }
}

// float64 reaches the shorter types through round-to-odd, so that it is rounded once.
void convert_double_row(const std::byte* in, uint64_t count, Element element, std::byte* out) {
  const uint64_t size = element_bits(element) / 8;
  const simd::Kernels& kernels = simd::kernels();
  for (uint64_t i = 0; i < count; ++i) {
    double x = 0;
    std::memcpy(&x, in + 8 * i, 8);
    const float through = element == Element::kF32 ? static_cast<float>(x) : double_to_float_odd(x);
    kernels.store(element, &through, 1, out + i * size);
  }
}

}  // namespace

float scale_value(ScaleType type, const std::byte* stored) {
  uint32_t bits = 0;
  std::memcpy(&bits, stored, scale_type_bytes(type));
  return scale_decode(type, bits);
}

void scale_values(ScaleType type, const std::byte* stored, uint64_t count, float* out) {
  switch (type) {
    case ScaleType::kF32: return decode_scales<ScaleType::kF32, uint32_t>(stored, count, out);
    case ScaleType::kBF16: return decode_scales<ScaleType::kBF16, uint16_t>(stored, count, out);
    case ScaleType::kF16: return decode_scales<ScaleType::kF16, uint16_t>(stored, count, out);
    case ScaleType::kE8M0: return decode_scales<ScaleType::kE8M0, uint8_t>(stored, count, out);
    case ScaleType::kE4M3: return decode_scales<ScaleType::kE4M3, uint8_t>(stored, count, out);
    case ScaleType::kNone: std::fill_n(out, count, 1.0f); return;
  }
}

void decode(const EncodedView& in, float* out, uint64_t row_stride) {
  NIBBLE_CHECK(in.format != nullptr);
  if (in.rows == 0 || in.cols == 0) return;
  if (!in.format->is_dense()) return decode_blocked(in, out, row_stride);
  const uint64_t row_bytes = in.format->code_row_bytes(in.cols);
  const simd::Kernels& kernels = simd::kernels();
  for (uint64_t row = 0; row < in.rows; ++row) {
    kernels.load(in.format->element, in.codes + row * row_bytes, in.cols, out + row * row_stride);
  }
}

void decode(const EncodedMatrix& in, std::span<float> out) {
  NIBBLE_CHECK(out.size() == in.rows * in.cols);
  decode(in.view(), out.data(), in.cols);
}

void convert(const DenseView& in, Element element, std::byte* out) {
  constexpr uint64_t kPiece = 1024;
  const uint64_t in_size = element_bits(in.element) / 8, out_size = element_bits(element) / 8;
  const simd::Kernels& kernels = simd::kernels();
  float x[kPiece];
  for (uint64_t row = 0; row < in.rows; ++row) {
    const std::byte* from = in.data + row * in.row_stride;
    std::byte* to = out + row * in.cols * out_size;
    if (in.element == element) {
      std::memcpy(to, from, in.cols * in_size);
      continue;
    }
    if (in.element == Element::kF64) {
      convert_double_row(from, in.cols, element, to);
      continue;
    }
    for (uint64_t col = 0; col < in.cols; col += kPiece) {
      const uint64_t count = std::min(kPiece, in.cols - col);
      kernels.load(in.element, from + col * in_size, count, x);
      kernels.store(element, x, count, to + col * out_size);
    }
  }
}

}  // namespace nibble
