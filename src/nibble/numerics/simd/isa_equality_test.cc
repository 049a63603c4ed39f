// Every instruction set gives the bytes, values and error sums of the scalar reference.
#include <gtest/gtest.h>

#include <cmath>

#include "nibble/base/error.h"
#include "nibble/numerics/activations.h"
#include "nibble/numerics/quantize_for_test.h"
#include "nibble/numerics/simd/isa_for_test.h"

namespace nibble {
namespace {

// All formats that can be encoded, with all their rules and searches.
std::vector<QuantizeOptions> all_options(bool with_searches) {
  std::vector<QuantizeOptions> all;
  for (const char* name : {"int4-g16",      "int4-g32",      "int4-g128",     "int4-g1024",   "int4-g24",
                           "int4-g8",       "int4-g32-asym", "int4-g64-asym", "int4-channel", "int4-channel-asym",
                           "mxfp4",         "nvfp4",         "mxfp8",         "fp8-block",    "fp8-block32x48",
                           "fp8-block1x16", "fp8-channel",   "fp8-tensor",    "int8-g32",     "int8-channel"}) {
    const Format format = parse_format(name);
    for (const ScaleRule* rule : scale_rules()) {
      if (!rule->applies(format)) continue;
      all.push_back({.format = format, .rule = {rule, false}});
      if (with_searches && format.block_rows != 0) all.push_back({.format = format, .rule = {rule, true}});
    }
    for (const BitExact who : {BitExact::kCompressedTensors, BitExact::kModelOpt, BitExact::kGgml}) {
      const std::string_view rule = bit_exact_rule(who, format);
      if (!rule.empty()) all.push_back({.format = format, .rule = parse_rule(rule, format), .bit_exact = who});
    }
  }
  return all;
}

std::string named(const QuantizeOptions& options) {
  return options.format.name + " " + options.rule.name() + " " + std::to_string(static_cast<int>(options.bit_exact));
}

Quantized quantize_with(Isa isa, const DenseView& x, const QuantizeOptions& options) {
  const ScopedIsa scope(isa);
  return quantize(x, options);
}

std::vector<float> decode_with(Isa isa, const EncodedMatrix& matrix) {
  const ScopedIsa scope(isa);
  std::vector<float> values(matrix.rows * matrix.cols);
  decode(matrix, values);
  return values;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
}

bool same_sums(const std::vector<ErrorSums>& a, const std::vector<ErrorSums>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (double_bits(a[i].signal) != double_bits(b[i].signal)) return false;
    if (double_bits(a[i].noise) != double_bits(b[i].noise)) return false;
    if (a[i].count != b[i].count) return false;
  }
  return a.size() == b.size();
}

void expect_same_everywhere(const DenseView& x, const QuantizeOptions& options) {
  const Quantized scalar = quantize_with(Isa::kScalar, x, options);
  const std::vector<float> values = decode_with(Isa::kScalar, scalar.matrix);
  for (const Isa isa : vector_isas()) {
    SCOPED_TRACE(named(options) + " " + std::string(isa_name(isa)) + " cols " + std::to_string(x.cols));
    const Quantized vector = quantize_with(isa, x, options);
    ASSERT_EQ(vector.matrix.tensor_scale, scalar.matrix.tensor_scale);
    ASSERT_TRUE(vector.matrix.scales == scalar.matrix.scales);
    ASSERT_TRUE(vector.matrix.zeros == scalar.matrix.zeros);
    ASSERT_TRUE(vector.matrix.codes == scalar.matrix.codes);
    ASSERT_TRUE(same_sums(vector.errors, scalar.errors));
    ASSERT_TRUE(same_bits(decode_with(isa, scalar.matrix), values));
  }
}

TEST(IsaEquality, SaysWhatItCompares) {
  for (const Isa isa : vector_isas())
    std::printf("compared with the scalar reference: %s\n", std::string(isa_name(isa)).c_str());
}

// Blocks of 32 with magnitudes over 40 binades; elements uniform, some of them zero.
std::vector<float> random_blocks(uint64_t seed, uint64_t count) {
  std::vector<float> values(32 * count);
  for (uint64_t b = 0; b < count; ++b) {
    const auto scale = std::exp2(static_cast<float>(random_uniform(seed, b) * 40 - 20));
    for (uint64_t i = 0; i < 32; ++i) {
      const uint64_t bits = random_bits(seed + 1, 32 * b + i);
      const float u = static_cast<float>(static_cast<int32_t>(bits >> 32)) * 0x1p-31f;
      values[32 * b + i] = (bits & 63) == 0 ? 0.0f : scale * u;
    }
  }
  return values;
}

// Blocks whose maximum is 6 * 2^k * (1 + e), e = 0 or ±2^-20, at a random place and sign, for k = -10 … 10.
std::vector<float> hazard_blocks() {
  std::vector<float> values = random_blocks(77, 21 * 3 * 16);
  uint64_t block = 0;
  for (int k = -10; k <= 10; ++k) {
    for (const float factor : {1.0f, 1.0f + 0x1p-20f, 1.0f - 0x1p-20f}) {
      for (int copy = 0; copy < 16; ++copy, ++block) {
        float* x = values.data() + 32 * block;
        float most = 0;
        for (int i = 0; i < 32; ++i) most = std::max(most, std::abs(x[i]));
        const float amax = std::ldexp(6 * factor, k);
        for (int i = 0; i < 32; ++i) x[i] *= amax / (2 * most);
        const uint64_t bits = random_bits(78, block);
        x[bits % 32] = (bits & 32) != 0 ? amax : -amax;
      }
    }
  }
  return values;
}

// Each rule once, in the format with the smallest blocks that it applies to.
std::vector<QuantizeOptions> every_rule_once() {
  std::vector<QuantizeOptions> all;
  for (const ScaleRule* rule : scale_rules()) {
    for (const char* name : {"int4-g16", "int4-g16-asym", "mxfp4", "mxfp8", "nvfp4", "fp8-block1x16", "int8-g16"}) {
      const Format format = parse_format(name);
      if (rule->applies(format)) all.push_back({.format = format, .rule = {rule, false}});
    }
  }
  return all;
}

TEST(IsaEquality, C35_a_million_random_blocks_under_every_rule) {
  for (const QuantizeOptions& options : every_rule_once()) {
    // 1,000,448 blocks of 16 or 32, in rows of 1024.
    const uint64_t rows = 1000448 / (1024 / options.format.block_cols);
    static const std::vector<float> values = random_blocks(35, 1000448);
    const std::vector<float> part(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rows * 1024));
    expect_same_everywhere(dense_matrix(part, rows, 1024, Element::kF32).view(), options);
  }
}

TEST(IsaEquality, C35_maxima_beside_powers_of_two_under_every_rule_and_search) {
  const std::vector<float> values = hazard_blocks();
  for (const uint64_t cols : {uint64_t{32}, uint64_t{1008}}) {
    const DenseMatrix x = dense_matrix(values, values.size() / cols, cols, Element::kF32);
    for (const QuantizeOptions& options : all_options(true)) {
      if (check_shape(options.format, x.rows, cols)) continue;
      expect_same_everywhere(x.view(), options);
    }
  }
}

TEST(IsaEquality, SearchesOverRandomBlocks) {
  const DenseMatrix x = dense_matrix(random_blocks(36, 4000), 4000 / 32, 1024, Element::kF32);
  for (const QuantizeOptions& options : all_options(true)) {
    if (options.rule.mse) expect_same_everywhere(x.view(), options);
  }
}

// Magnitudes whose squares float32 cannot hold are summed another way, and extremes of the exponent range scale to
// subnormals.
TEST(IsaEquality, TinyAndHugeMagnitudes) {
  for (const QuantizeOptions& options : all_options(true)) {
    for (const int exponent : {-149, -135, -127, -100, -60, -41, -39, 59, 61, 100, 126}) {
      std::vector<float> values(3 * 256);
      for (uint64_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(std::ldexp(2 * random_uniform(44, i) - 1, exponent));
      }
      if (check_shape(options.format, 3, 256)) continue;
      expect_same_everywhere(dense_matrix(values, 3, 256, Element::kF32).view(), options);
    }
  }
}

// Elements that decide roundings: all halves and quarters of the grids, ±1 ulp, subnormals, zeros of both signs.
std::vector<float> special_values(uint64_t count) {
  std::vector<float> values(count);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t bits = random_bits(91, i);
    const float grid = static_cast<float>(static_cast<int>(bits % 129) - 64) / 8;
    const int ulp = static_cast<int>((bits >> 8) % 3) - 1;
    float x = bits_float(float_bits(grid) + static_cast<uint32_t>(ulp));
    if (!std::isfinite(x)) x = 0;
    const uint64_t kind = (bits >> 16) % 16;
    if (kind == 0) x = -0.0f;
    if (kind == 1) x = bits_float(static_cast<uint32_t>(bits >> 40) & 0x807fffffu);
    if (kind == 2) x = std::ldexp(x, static_cast<int>((bits >> 24) % 20) - 12);
    values[i] = x;
  }
  return values;
}

TEST(IsaEquality, OddShapesUnalignedPointersAndEveryDenseType) {
  for (const QuantizeOptions& options : all_options(true)) {
    for (const uint64_t cols : {1u, 7u, 16u, 33u, 48u, 96u, 160u, 240u, 1032u, 2880u}) {
      if (check_shape(options.format, 5, cols)) continue;
      constexpr uint64_t kRows = 9;
      const std::vector<float> values = special_values(kRows * cols);
      for (const Element element : {Element::kBF16, Element::kF16, Element::kF32, Element::kF64}) {
        const DenseMatrix x = dense_matrix(values, kRows, cols, element);
        // One byte off any alignment, rows three bytes apart.
        const uint64_t row_bytes = cols * element_bits(element) / 8, stride = row_bytes + 3;
        std::vector<std::byte> moved(1 + kRows * stride);
        for (uint64_t row = 0; row < kRows; ++row) {
          std::memcpy(moved.data() + 1 + row * stride, x.bytes.data() + row * row_bytes, row_bytes);
        }
        expect_same_everywhere({moved.data() + 1, element, kRows, cols, stride}, options);
      }
    }
  }
}

TEST(IsaEquality, EveryCodeDecodesTheSame) {
  for (const char* name : {"int4-g32", "int4-g32-asym", "int4-channel", "int4-g40", "mxfp4", "nvfp4", "mxfp8",
                           "fp8-block", "fp8-channel", "fp8-tensor", "int8-g32", "int8-channel", "q4_1", "q4_k"}) {
    const Format format = parse_format(name);
    for (const uint64_t cols : {32u, 96u, 160u, 1024u}) {
      EncodedMatrix matrix = EncodedMatrix::make(format, 131, cols);
      for (size_t i = 0; i < matrix.codes.size(); ++i) matrix.codes[i] = static_cast<std::byte>(i & 255);
      for (size_t i = 0; i < matrix.scales.size(); ++i) {
        matrix.scales[i] = static_cast<std::byte>(random_bits(5, i) & 255);
      }
      for (size_t i = 0; i < matrix.zeros.size(); ++i) matrix.zeros[i] = static_cast<uint8_t>(random_bits(6, i) & 15);
      for (size_t i = 0; i < matrix.mins.size(); ++i) matrix.mins[i] = static_cast<float>(random_uniform(7, i) - 0.5);
      if (format.two_level) matrix.tensor_scale = {SecondLevel::kDivide, 20224.0f};
      const std::vector<float> scalar = decode_with(Isa::kScalar, matrix);
      for (const Isa isa : vector_isas()) {
        const std::vector<float> vector = decode_with(isa, matrix);
        for (size_t i = 0; i < scalar.size(); ++i) {
          // Any NaN is as good as another: scale and code may both be one.
          if (std::isnan(scalar[i]) && std::isnan(vector[i])) continue;
          ASSERT_EQ(float_bits(vector[i]), float_bits(scalar[i])) << name << " " << isa_name(isa) << " " << i;
        }
      }
    }
  }
}

TEST(IsaEquality, DenseConversionsOfEveryPattern) {
  std::vector<uint16_t> halves(65536);
  for (uint32_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  std::vector<uint32_t> floats(300000);
  for (uint64_t i = 0; i < floats.size(); ++i) floats[i] = static_cast<uint32_t>(random_bits(8, i));
  std::vector<uint64_t> doubles(100000);
  for (uint64_t i = 0; i < doubles.size(); ++i) doubles[i] = random_bits(9, i);
  const auto view = [](const auto& data, Element element) {
    return DenseView{reinterpret_cast<const std::byte*>(data.data()), element, 1, data.size(), 0};
  };
  for (const DenseView& in : {view(halves, Element::kBF16), view(halves, Element::kF16), view(floats, Element::kF32),
                              view(doubles, Element::kF64)}) {
    for (const Element out : {Element::kBF16, Element::kF16, Element::kF32, Element::kF64, Element::kE5M2}) {
      const auto converted = [&](Isa isa) {
        const ScopedIsa scope(isa);
        std::vector<std::byte> bytes(in.cols * element_bits(out) / 8);
        convert(in, out, bytes.data());
        return bytes;
      };
      const std::vector<std::byte> scalar = converted(Isa::kScalar);
      for (const Isa isa : vector_isas()) {
        ASSERT_TRUE(converted(isa) == scalar) << element_name(in.element) << " to " << element_name(out);
      }
    }
  }
}

float largest_magnitude(const std::vector<float>& values, Element element) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(round_to(element, value)));
  return largest;
}

// `bad`: what stands in the middle of row 5, or 0.
void expect_found(const AbsMax& found, const std::vector<float>& values, const DenseMatrix& x, float bad) {
  if (bad == 0) {
    EXPECT_EQ(found.amax, largest_magnitude(values, x.element));
    EXPECT_FALSE(found.bad);
    return;
  }
  ASSERT_TRUE(found.bad);
  EXPECT_EQ(found.bad->row, 5u);
  EXPECT_EQ(found.bad->col, x.cols / 2);
  EXPECT_TRUE(std::isnan(bad) ? std::isnan(found.bad->value) : found.bad->value == bad);
}

TEST(IsaEquality, MaximaAndBadValuesAreFoundAlike) {
  for (const Element element : {Element::kBF16, Element::kF16, Element::kF32, Element::kF64}) {
    for (const uint64_t cols : {1u, 15u, 64u, 100u}) {
      std::vector<float> values = special_values(9 * cols);
      for (const float bad : {0.0f, NAN, -INFINITY}) {
        if (bad != 0) values[5 * cols + cols / 2] = bad;
        const DenseMatrix x = dense_matrix(values, 9, cols, element);
        for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
          const ScopedIsa scope(isa);
          expect_found(abs_max(x.view()), values, x, bad);
        }
      }
    }
  }
}

TEST(IsaEquality, Activations) {
  for (const Element element : {Element::kE4M3, Element::kInt8}) {
    for (const uint64_t group : {0u, 8u, 32u, 128u}) {
      DenseMatrix x = dense_matrix(special_values(4 * 1024), 4, 1024, Element::kF32);
      std::memset(x.bytes.data() + uint64_t{4} * 1500, 0xff, 4);  // a NaN in row 1
      const ActivationQuantization how{.element = element, .group = group, .floor = 0};
      const auto quantized = [&](Isa isa) {
        const ScopedIsa scope(isa);
        std::vector<std::byte> codes(4 * 1024);
        std::vector<float> scales(4 * 1024);
        quantize_activations_1xn(x.view(), how, codes.data(), scales.data());
        return std::pair(codes, scales);
      };
      const auto scalar = quantized(Isa::kScalar);
      EXPECT_TRUE(std::isnan(scalar.second[group == 0 ? 1 : 1500 / group]));
      EXPECT_EQ(scalar.first[1500], std::byte{0x7f});
      for (const Isa isa : vector_isas()) {
        const auto vector = quantized(isa);
        EXPECT_TRUE(vector.first == scalar.first);
        EXPECT_TRUE(same_bits(vector.second, scalar.second));
      }
    }
  }
}

}  // namespace
}  // namespace nibble
