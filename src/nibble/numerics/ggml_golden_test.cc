// Blocks and values of ggml's types (tests/golden/numerics/gguf_*), unpacked here into the canonical arrays.
#include <gtest/gtest.h>

#include "nibble/numerics/quantize_for_test.h"
#include "nibble/testing/golden.h"

namespace nibble {
namespace {

using testing::GoldenFile;
using testing::GoldenTensor;

// How a block of one type lies in memory (FORMATS.md §9.2).
struct BlockLayout {
  uint64_t bytes, scale_at, codes_at;
  uint64_t group;  // elements that share a run of nibbles: j low, j + group / 2 high
};

GoldenFile golden_file(const char* type) { return GoldenFile(std::string("numerics/gguf_") + type + ".safetensors"); }

Format format_with_scale(const char* name, ScaleType scale) {
  Format format = parse_format(name);
  format.scale = scale;
  return format;
}

void set_nibble(EncodedMatrix* matrix, uint64_t index, unsigned code) {
  matrix->codes[index / 2] |= std::byte{static_cast<uint8_t>(index % 2 == 0 ? code : code << 4)};
}

// Blocks of 32 elements with one scale.
EncodedMatrix unpack_32(const GoldenTensor& blocks, const Format& format, const BlockLayout& layout) {
  const uint64_t rows = blocks.shape[0], count = blocks.shape[1] / layout.bytes;
  EncodedMatrix matrix = EncodedMatrix::make(format, rows, 32 * count);
  for (uint64_t i = 0; i < rows * count; ++i) {
    const std::byte* block = blocks.bytes.data() + i * layout.bytes;
    const uint64_t size = format.scale_bytes();
    std::memcpy(matrix.scales.data() + i * size, block + layout.scale_at, size);
    if (format.zero == ZeroPoint::kMin) matrix.mins[i] = scale_value(ScaleType::kF16, block + 2);
    for (uint64_t j = 0; j < 32; ++j) {
      if (format.code_bits() == 8) {
        matrix.codes[32 * i + j] = block[layout.codes_at + j];
      } else {
        const auto pair = static_cast<unsigned>(block[layout.codes_at + j % 16]);
        set_nibble(&matrix, 32 * i + j, j < 16 ? pair & 15 : pair >> 4);
      }
    }
  }
  return matrix;
}

std::vector<float> floats_of(const GoldenTensor& tensor) {
  std::vector<float> values(tensor.elements());
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

void expect_values(const EncodedMatrix& matrix, const GoldenTensor& expected) {
  std::vector<float> values(matrix.rows * matrix.cols);
  decode(matrix, values);
  EXPECT_EQ(values, floats_of(expected));
}

TEST(GgmlGolden, ValuesOfSimpleBlocks) {
  const GoldenFile q4_0 = golden_file("q4_0"), q4_1 = golden_file("q4_1"), q8_0 = golden_file("q8_0");
  const GoldenFile mxfp4 = golden_file("mxfp4");
  expect_values(unpack_32(q4_0.at("blocks"), format_with_scale("int4-g32", ScaleType::kF16), {18, 0, 2, 32}),
                q4_0.at("values"));
  expect_values(unpack_32(q4_1.at("blocks"), parse_format("q4_1"), {20, 0, 4, 32}), q4_1.at("values"));
  expect_values(unpack_32(q8_0.at("blocks"), parse_format("int8-g32"), {34, 0, 2, 32}), q8_0.at("values"));
  expect_values(unpack_32(mxfp4.at("blocks"), parse_format("mxfp4"), {17, 0, 1, 32}), mxfp4.at("values"));
}

// 6-bit scales and minima of the 8 sub-blocks under two binary16 numbers.
void q4_k_scale(const std::byte* packed, uint64_t j, unsigned* scale, unsigned* min) {
  const auto at = [&](uint64_t i) { return static_cast<unsigned>(packed[i]); };
  if (j < 4) {
    *scale = at(j) & 63;
    *min = at(j + 4) & 63;
  } else {
    *scale = (at(j + 4) & 15) | (at(j - 4) >> 6 << 4);
    *min = (at(j + 4) >> 4) | (at(j) >> 6 << 4);
  }
}

TEST(GgmlGolden, ValuesOfQ4K) {
  const GoldenFile file = golden_file("q4_k");
  const GoldenTensor& blocks = file.at("blocks");
  EncodedMatrix matrix = EncodedMatrix::make(parse_format("q4_k"), blocks.shape[0], 256);
  for (uint64_t i = 0; i < blocks.shape[0]; ++i) {
    const std::byte* block = blocks.bytes.data() + 144 * i;
    const float d = scale_value(ScaleType::kF16, block), dmin = scale_value(ScaleType::kF16, block + 2);
    for (uint64_t j = 0; j < 8; ++j) {
      unsigned scale = 0, min = 0;
      q4_k_scale(block + 4, j, &scale, &min);
      const float product = d * static_cast<float>(scale);
      std::memcpy(matrix.scales.data() + 4 * (8 * i + j), &product, 4);
      matrix.mins[8 * i + j] = -(dmin * static_cast<float>(min));
      for (uint64_t l = 0; l < 32; ++l) {
        const auto pair = static_cast<unsigned>(block[16 + 32 * (j / 2) + l]);
        set_nibble(&matrix, 256 * i + 32 * j + l, j % 2 == 0 ? pair & 15 : pair >> 4);
      }
    }
  }
  expect_values(matrix, file.at("values"));
}

// Scale bytes 0x00 and 0x7F decode to 0 there; here 0x7F is NaN, so the reader has to replace it.
TEST(GgmlGolden, ValuesOfNvfp4) {
  const GoldenFile file = golden_file("nvfp4");
  const GoldenTensor& blocks = file.at("blocks");
  EncodedMatrix matrix = EncodedMatrix::make(parse_format("nvfp4"), blocks.shape[0], 64);
  for (uint64_t i = 0; i < blocks.shape[0]; ++i) {
    const std::byte* block = blocks.bytes.data() + 36 * i;
    for (uint64_t s = 0; s < 4; ++s) {
      matrix.scales[4 * i + s] = block[s] == std::byte{0x7f} ? std::byte{0} : block[s];
      for (uint64_t j = 0; j < 16; ++j) {
        const auto pair = static_cast<unsigned>(block[4 + 8 * s + j % 8]);
        set_nibble(&matrix, 64 * i + 16 * s + j, j < 8 ? pair & 15 : pair >> 4);
      }
    }
  }
  expect_values(matrix, file.at("values"));
}

TEST(GgmlGolden, BytesOfQ4_0AndMxfp4AreReproduced) {
  const GoldenFile q4_0 = golden_file("q4_0"), mxfp4 = golden_file("mxfp4");
  const Format int4 = format_with_scale("int4-g32", ScaleType::kF16);
  for (const auto& [file, format, layout, rule] :
       {std::tuple{&q4_0, int4, BlockLayout{18, 0, 2, 32}, "int4.extreme8"},
        std::tuple{&mxfp4, parse_format("mxfp4"), BlockLayout{17, 0, 1, 32}, "mx.floor"}}) {
    const EncodedMatrix expected = unpack_32(file->at("blocks"), format, layout);
    const DenseMatrix x{Element::kF32, expected.rows, expected.cols, file->at("x").bytes};
    const Quantized result = quantize(x, format, rule, BitExact::kGgml);
    for (uint64_t row = 0; row < expected.rows; ++row) {
      SCOPED_TRACE(std::string(rule) + " row " + std::to_string(row));
      EXPECT_EQ(codes_of_row(result.matrix, row), codes_of_row(expected, row));
    }
    EXPECT_EQ(result.matrix.scales, expected.scales);
  }
}

}  // namespace
}  // namespace nibble
