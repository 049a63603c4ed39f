// Bytes and values of the field's own libraries (tests/golden/numerics): nibble's byte-exact modes must reproduce them.
#include <gtest/gtest.h>

#include "nibble/numerics/quantize_for_test.h"
#include "nibble/testing/golden.h"

namespace nibble {
namespace {

using testing::GoldenFile;
using testing::GoldenTensor;

struct LibraryCase {
  const char* file;
  const char* format;
  BitExact who;
  ScaleType scale;  // as that library stores it
};

const LibraryCase kCases[] = {
    {"compressed_tensors_int4_g32", "int4-g32", BitExact::kCompressedTensors, ScaleType::kBF16},
    {"compressed_tensors_int4_g128", "int4-g128", BitExact::kCompressedTensors, ScaleType::kBF16},
    {"compressed_tensors_int4_channel", "int4-channel", BitExact::kCompressedTensors, ScaleType::kBF16},
    {"compressed_tensors_int4_g32_asym", "int4-g32-asym", BitExact::kCompressedTensors, ScaleType::kBF16},
    {"compressed_tensors_int4_g128_asym", "int4-g128-asym", BitExact::kCompressedTensors, ScaleType::kBF16},
    {"compressed_tensors_mxfp4", "mxfp4", BitExact::kCompressedTensors, ScaleType::kE8M0},
    {"compressed_tensors_mxfp8", "mxfp8", BitExact::kCompressedTensors, ScaleType::kE8M0},
    {"compressed_tensors_nvfp4", "nvfp4", BitExact::kCompressedTensors, ScaleType::kE4M3},
    {"compressed_tensors_fp8_tensor", "fp8-tensor", BitExact::kCompressedTensors, ScaleType::kBF16},
    {"compressed_tensors_fp8_channel", "fp8-channel", BitExact::kCompressedTensors, ScaleType::kBF16},
    {"compressed_tensors_fp8_block", "fp8-block", BitExact::kCompressedTensors, ScaleType::kBF16},
    {"modelopt_nvfp4", "nvfp4", BitExact::kModelOpt, ScaleType::kE4M3},
    {"modelopt_mxfp4", "mxfp4", BitExact::kModelOpt, ScaleType::kE8M0},
    {"modelopt_mxfp8", "mxfp8", BitExact::kModelOpt, ScaleType::kE8M0},
    {"modelopt_fp8_tensor", "fp8-tensor", BitExact::kModelOpt, ScaleType::kF32},
    {"modelopt_fp8_channel", "fp8-channel", BitExact::kModelOpt, ScaleType::kF32},
    {"modelopt_fp8_block", "fp8-block", BitExact::kModelOpt, ScaleType::kF32},
    {"modelopt_int4_awq", "int4-g128", BitExact::kModelOpt, ScaleType::kF32},
};

std::string printed(const LibraryCase& test_case) { return test_case.file; }

// "plain", "awkward", … : the prefixes of ".x".
std::vector<std::string> parts_of(const GoldenFile& file) {
  std::vector<std::string> parts;
  for (const std::string& name : file.names()) {
    if (name.ends_with(".x")) parts.push_back(name.substr(0, name.size() - 2));
  }
  return parts;
}

// compressed-tensors packs zero points eight rows to a word.
std::vector<uint8_t> unpacked_zeros(const GoldenTensor& packed, uint64_t rows, uint64_t groups) {
  std::vector<uint8_t> zeros(rows * groups);
  for (uint64_t row = 0; row < rows; ++row) {
    for (uint64_t group = 0; group < groups; ++group) {
      uint32_t word = 0;
      std::memcpy(&word, packed.bytes.data() + 4 * (row / 8 * groups + group), 4);
      zeros[row * groups + group] = static_cast<uint8_t>((word >> (4 * (row % 8))) & 15);
    }
  }
  return zeros;
}

// ModelOpt's INT4 pairs rows: byte (i, k) holds rows 2i and 2i + 1 of column k in two's complement.
std::vector<std::byte> canonical_awq(const GoldenTensor& weight, uint64_t rows, uint64_t cols) {
  std::vector<std::byte> codes(rows * cols / 2);
  for (uint64_t row = 0; row < rows; ++row) {
    for (uint64_t col = 0; col < cols; ++col) {
      const auto pair = static_cast<uint8_t>(weight.bytes[row / 2 * cols + col]);
      const uint8_t code = int4_twos_complement(unpack_nibble(pair, row % 2 != 0));
      codes[(row * cols + col) / 2] |= std::byte{static_cast<uint8_t>(col % 2 == 0 ? code : code << 4)};
    }
  }
  return codes;
}

std::vector<std::byte> golden_codes(const GoldenFile& file, const std::string& part, const LibraryCase& test_case,
                                    uint64_t rows, uint64_t cols) {
  if (std::string_view(test_case.file) == "modelopt_int4_awq") {
    return canonical_awq(file.at(part + ".weight"), rows, cols);
  }
  return file.has(part + ".weight_packed") ? file.at(part + ".weight_packed").bytes : file.at(part + ".weight").bytes;
}

EncodedMatrix golden_matrix(const GoldenFile& file, const std::string& part, const LibraryCase& test_case,
                            const Format& format, uint64_t rows, uint64_t cols) {
  EncodedMatrix matrix = EncodedMatrix::make(format, rows, cols);
  const std::vector<std::byte> codes = golden_codes(file, part, test_case, rows, cols);
  matrix.codes.assign(codes.begin(), codes.end());
  matrix.scales = file.at(part + ".weight_scale").bytes;
  if (format.zero == ZeroPoint::kCode) {
    matrix.zeros = unpacked_zeros(file.at(part + ".weight_zero_point"), rows, format.scale_cols(cols));
  }
  for (const auto& [name, level] : {std::pair{".weight_global_scale", SecondLevel::kDivide},
                                    std::pair{".weight_scale_2", SecondLevel::kMultiply}}) {
    if (!file.has(part + name)) continue;
    matrix.tensor_scale.level = level;
    std::memcpy(&matrix.tensor_scale.value, file.at(part + name).bytes.data(), 4);
  }
  return matrix;
}

DenseMatrix golden_input(const GoldenTensor& x) {
  EXPECT_EQ(x.dtype, "BF16");
  return {Element::kBF16, x.shape[0], x.shape[1], x.bytes};
}

class LibraryGolden : public ::testing::TestWithParam<LibraryCase> {};

TEST_P(LibraryGolden, BytesAreReproduced) {
  const GoldenFile file(std::string("numerics/") + GetParam().file + ".safetensors");
  ASSERT_GE(parts_of(file).size(), 2u);
  for (const std::string& part : parts_of(file)) {
    SCOPED_TRACE(part);
    Format format = parse_format(GetParam().format);
    format.scale = GetParam().scale;
    const DenseMatrix x = golden_input(file.at(part + ".x"));
    const EncodedMatrix expected = golden_matrix(file, part, GetParam(), format, x.rows, x.cols);
    const Quantized result = quantize(x, format, bit_exact_rule(GetParam().who, format), GetParam().who);
    if (format.two_level) {
      EXPECT_EQ(result.matrix.tensor_scale, expected.tensor_scale);
    }
    EXPECT_EQ(result.matrix.scales, expected.scales);
    EXPECT_EQ(result.matrix.zeros, expected.zeros);
    ASSERT_EQ(result.matrix.codes.size(), expected.codes.size());
    uint64_t different = 0;
    for (size_t i = 0; i < expected.codes.size(); ++i) different += result.matrix.codes[i] != expected.codes[i];
    EXPECT_EQ(different, 0u);
  }
}

// What the library's decompressor gives, in its output type. Formats whose library rounds inside the product are off by
// that rounding: the scale in bfloat16 (ModelOpt FP8), nothing else.
TEST_P(LibraryGolden, StoredBytesDecodeToTheLibrarysValues) {
  const GoldenFile file(std::string("numerics/") + GetParam().file + ".safetensors");
  for (const std::string& part : parts_of(file)) {
    SCOPED_TRACE(part);
    Format format = parse_format(GetParam().format);
    format.scale = GetParam().scale;
    const GoldenTensor& dequant = file.at(part + ".dequant");
    const uint64_t rows = dequant.shape[0], cols = dequant.shape[1];
    EncodedMatrix matrix = golden_matrix(file, part, GetParam(), format, rows, cols);
    const bool rounds_scale = std::string_view(GetParam().file).starts_with("modelopt_fp8");
    if (rounds_scale) {
      for (size_t i = 0; i < matrix.scales.size(); i += 4) {
        const float rounded = bf16_round(scale_value(ScaleType::kF32, matrix.scales.data() + i));
        std::memcpy(matrix.scales.data() + i, &rounded, 4);
      }
    }
    std::vector<float> values(rows * cols);
    decode(matrix, values);
    for (uint64_t i = 0; i < values.size(); ++i) {
      if (dequant.dtype == "F32") {
        float expected = 0;
        std::memcpy(&expected, dequant.bytes.data() + 4 * i, 4);
        ASSERT_EQ(values[i], expected) << i;
      } else {
        uint16_t expected = 0;
        std::memcpy(&expected, dequant.bytes.data() + 2 * i, 2);
        ASSERT_EQ(bf16_round(values[i]), bf16_decode(expected)) << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, LibraryGolden, ::testing::ValuesIn(kCases),
                         [](const auto& parameter) { return printed(parameter.param); });

}  // namespace
}  // namespace nibble
