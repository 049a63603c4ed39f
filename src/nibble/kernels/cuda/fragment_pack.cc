#include "nibble/kernels/cuda/fragment_pack.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/kernels/cuda/fragment_words.h"
#include "nibble/numerics/codec/bits.h"
#include "nibble/numerics/codec/int4.h"
#include "nibble/numerics/scale_codec.h"

namespace nibble {
namespace {

// By how much E8M0 exponents are raised so that the largest of the matrix is kLargestE8M0.
int exponent_shift(const FragmentLayout& layout, const EncodedView& view) {
  if (layout.scale != ScaleType::kE8M0) return 0;
  const auto* exponents = reinterpret_cast<const uint8_t*>(view.scales);
  const auto [low, high] = std::minmax_element(exponents, exponents + layout.n * (layout.k / layout.group));
  if (*high == 255) {
    throw Error("a scale is not a number").value("e8m0", 255).way_out("run `nibble verify` on the checkpoint");
  }
  if (*high - *low > kLargestE8M0Span) {
    throw Error("the scales of one matrix span too many binades for the GPU's float32 sums")
        .value("smallest_exponent", *low - 127)
        .value("largest_exponent", *high - 127)
        .value("binades_at_most", kLargestE8M0Span)
        .way_out("run `nibble verify` on the checkpoint: such scales are rarely meant")
        .way_out("run the model on the CPU");
  }
  return kLargestE8M0 - *high;
}

void check_scale(ScaleType type, uint32_t bits) {
  const float value = scale_decode(type, bits);
  if (!std::isfinite(value) || std::signbit(value)) {
    throw Error("a scale is negative or not a finite number")
        .value("scale", value)
        .way_out("run `nibble verify` on the checkpoint");
  }
}

uint32_t to_word(CodeKind codes, const uint8_t code[8]) {
  return codes == CodeKind::kE2M1 ? e2m1_codes_to_word(code) : int4_codes_to_word(code);
}

}  // namespace

uint64_t source_row(FragmentRowOrder order, uint64_t rows, uint64_t row) {
  if (order == FragmentRowOrder::kPlain) return row;
  const uint64_t index = row / 16 * 8 + row % 8;
  const bool up = row % 16 >= 8;
  if (order == FragmentRowOrder::kGateThenUp) return up ? rows / 2 + index : index;
  return 2 * index + (up ? 1 : 0);
}

float pack_fragments(const FragmentLayout& layout, const EncodedView& view, FragmentRowOrder order,
                     std::span<std::byte> matrix) {
  NIBBLE_CHECK(view.rows == layout.n && view.cols == layout.k && matrix.size() == layout.bytes());
  NIBBLE_CHECK(view.column_group == nullptr);
  const int shift = exponent_shift(layout, view);
  const uint64_t size = scale_type_bytes(layout.scale), groups = layout.k / layout.group;
  for (uint64_t row = 0; row < layout.n; ++row) {
    const uint64_t source = source_row(order, layout.n, row);
    const std::byte* codes = view.codes + source * (layout.k / 2);
    for (uint64_t col = 0; col < layout.k; col += 8) {
      uint8_t code[8];
      for (uint64_t i = 0; i < 8; ++i) code[i] = unpack_nibble(static_cast<uint8_t>(codes[(col + i) / 2]), i % 2 != 0);
      const uint32_t word = to_word(layout.codes, code);
      std::memcpy(matrix.data() + fragment_place(layout, row, col).word, &word, sizeof word);
    }
    for (uint64_t group = 0; group < groups; ++group) {
      uint32_t bits = 0;
      std::memcpy(&bits, view.scales + (source * groups + group) * size, size);
      check_scale(layout.scale, bits);
      bits += static_cast<uint32_t>(shift);
      std::memcpy(matrix.data() + fragment_place(layout, row, group * layout.group).scale, &bits, size);
    }
  }
  return layout.scale == ScaleType::kE8M0 ? exp2_int(-shift + kLargestE8M0 - 127) : 1.0F;
}

void unpack_fragments(const FragmentLayout& layout, std::span<const std::byte> matrix, FragmentRowOrder order,
                      float factor, EncodedMatrix* out) {
  NIBBLE_CHECK(out->rows == layout.n && out->cols == layout.k && matrix.size() == layout.bytes());
  const int shift = layout.scale == ScaleType::kE8M0 ? kLargestE8M0 - 127 - std::ilogb(factor) : 0;
  const uint64_t size = scale_type_bytes(layout.scale), groups = layout.k / layout.group;
  for (uint64_t row = 0; row < layout.n; ++row) {
    const uint64_t source = source_row(order, layout.n, row);
    for (uint64_t col = 0; col < layout.k; col += 8) {
      uint32_t word = 0;
      std::memcpy(&word, matrix.data() + fragment_place(layout, row, col).word, sizeof word);
      uint8_t code[8];
      if (layout.codes == CodeKind::kE2M1)
        e2m1_word_to_codes(word, code);
      else
        int4_word_to_codes(word, code);
      for (uint64_t i = 0; i < 8; i += 2) {
        out->codes[source * (layout.k / 2) + (col + i) / 2] =
            static_cast<std::byte>(pack_nibbles(code[i], code[i + 1]));
      }
    }
    for (uint64_t group = 0; group < groups; ++group) {
      uint32_t bits = 0;
      std::memcpy(&bits, matrix.data() + fragment_place(layout, row, group * layout.group).scale, size);
      bits -= static_cast<uint32_t>(shift);
      std::memcpy(out->scales.data() + (source * groups + group) * size, &bits, size);
    }
  }
}

std::vector<float> reorder_rows(FragmentRowOrder order, std::span<const float> values) {
  std::vector<float> out(values.size());
  for (uint64_t row = 0; row < out.size(); ++row) out[row] = values[source_row(order, out.size(), row)];
  return out;
}

}  // namespace nibble
