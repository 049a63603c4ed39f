// Generated from the list of kernels: each, in every layout that it takes, gives the reference's bits; the reference is
// near what float64 gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "nibble/base/aligned_bytes.h"
#include "nibble/kernels/kernel.h"
#include "nibble/kernels/matrix_for_test.h"

namespace nibble {
namespace {

constexpr float kPoison = -12345.5F;

const Kernel& reference(ActivationKind kind) {
  for (const Kernel* kernel : kernels()) {
    if (kernel->name == "reference" && kernel->activations == kind) return *kernel;
  }
  ADD_FAILURE() << "no reference";
  return *kernels()[0];
}

uint64_t small_k(const std::string& format, uint64_t tiles) {
  if (format == "fp8-block") return 128 * tiles - 9;
  const WeightLayout layout = choose_layout(parse_format(format), 16, 1152).layout.value();
  return layout.apart_cols == 0 && layout.scale != ScaleType::kNone ? layout.tile_cols * tiles : 32 * tiles - 3;
}

// Activations of all tokens, and what a kernel makes of them.
struct Problem {
  PackedForTest packed;
  uint64_t n, k, tokens;
  std::vector<float> x;
  ActivationsForTest activations;

  Problem(const std::string& format, uint64_t rows, uint64_t cols, uint64_t count, RngForTest* rng)
      : packed(format, rows, cols, rng), n(rows), k(cols), tokens(count), x(count * cols) {
    for (float& value : x) value = rng->normal();
  }

  PanelTask task(ActivationKind kind) {
    PanelTask task;
    task.weights = &packed.matrix;
    task.group_end = packed.layout.row_groups();
    task.tokens = tokens;
    task.out_stride = n + 5;
    activations.prepare(kind, packed.layout, x.data(), tokens, k, &task);
    return task;
  }

  std::vector<float> run(const Kernel& kernel, PanelTask task) const {
    std::vector<float> out(tokens * (n + 5), kPoison);
    task.out = out.data();
    kernel.panel(packed.layout)(task);
    return out;
  }
};

bool takes(const Kernel& kernel, const WeightLayout& layout) {
  return kernel.processor_lacks().empty() && kernel.panel(layout) != nullptr;
}

uint32_t bits(float value) {
  uint32_t pattern = 0;
  std::memcpy(&pattern, &value, sizeof(pattern));
  return pattern;
}

TEST(Conformance, every_kernel_gives_the_references_bits) {
  RngForTest rng{11};
  for (const std::string& format : layout_formats_for_test()) {
    for (const uint64_t n : std::vector<uint64_t>{1, 16, 37, 64}) {
      for (const uint64_t tokens : std::vector<uint64_t>{1, 2, 3, 5, 8, 9, 12, 15, 17}) {
        Problem problem(format, n, small_k(format, 1 + uint64_t{rng.next_u32()} % 5), tokens, &rng);
        for (const Kernel* kernel : kernels()) {
          if (!takes(*kernel, problem.packed.layout)) continue;
          if (kernel->name == "tensor-core-model") continue;  // another arithmetic, see tensor_core_test.cc
          const Kernel& oracle = reference(kernel->activations);
          if (!takes(oracle, problem.packed.layout)) continue;
          SCOPED_TRACE(std::string(kernel->name) + ", " + format + ", N = " + std::to_string(n) +
                       ", K = " + std::to_string(problem.k) + ", T = " + std::to_string(tokens));
          const PanelTask task = problem.task(kernel->activations);
          const std::vector<float> wanted = problem.run(oracle, task), got = problem.run(*kernel, task);
          for (uint64_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(bits(got[i]), bits(wanted[i])) << i;
          for (uint64_t t = 0; t < tokens; ++t) ASSERT_EQ(got[t * (n + 5) + n], kPoison) << "written beyond N";
        }
      }
    }
  }
}

// More tokens than any kernel's block has, in several blocks and a rest.
TEST(Conformance, many_tokens) {
  RngForTest rng{15};
  for (const std::string& format : layout_formats_for_test()) {
    Problem problem(format, 37, small_k(format, 2), 75, &rng);
    for (const Kernel* kernel : kernels()) {
      const Kernel& oracle = reference(kernel->activations);
      if (!takes(*kernel, problem.packed.layout) || !takes(oracle, problem.packed.layout)) continue;
      if (kernel->name == "tensor-core-model") continue;
      SCOPED_TRACE(std::string(kernel->name) + ", " + format);
      const PanelTask task = problem.task(kernel->activations);
      const std::vector<float> wanted = problem.run(oracle, task), got = problem.run(*kernel, task);
      for (uint64_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(bits(got[i]), bits(wanted[i])) << i;
    }
  }
}

// Kernels multiply activations by powers of two: the largest numbers must not become infinite, the smallest not 0.
TEST(Conformance, numbers_at_both_ends) {
  RngForTest rng{16};
  for (const std::string& format : layout_formats_for_test()) {
    for (const float size : {0x1p+120F, 0x1p-140F}) {
      Problem problem(format, 16, small_k(format, 1), 3, &rng);
      for (uint64_t i = 0; i < problem.k; ++i) problem.x[problem.k + i] *= size;  // the second of three tokens
      for (const Kernel* kernel : kernels()) {
        const bool floats = kernel->activations == ActivationKind::kF32 || kernel->activations == ActivationKind::kBF16;
        if (!floats || !takes(*kernel, problem.packed.layout)) continue;
        SCOPED_TRACE(std::string(kernel->name) + ", " + format);
        const PanelTask task = problem.task(kernel->activations);
        const std::vector<float> wanted = problem.run(reference(kernel->activations), task);
        const std::vector<float> got = problem.run(*kernel, task);
        for (uint64_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(bits(got[i]), bits(wanted[i])) << i;
      }
    }
  }
}

// One token alone, its row anywhere among the activations, a panel of its own for each row group.
TEST(Conformance, neither_batch_nor_cuts_change_a_bit) {
  RngForTest rng{12};
  for (const std::string& format : layout_formats_for_test()) {
    Problem problem(format, 80, small_k(format, 3), 13, &rng);
    for (const Kernel* kernel : kernels()) {
      if (!takes(*kernel, problem.packed.layout)) continue;
      SCOPED_TRACE(std::string(kernel->name) + ", " + format);
      PanelTask task = problem.task(kernel->activations);
      const std::vector<float> whole = problem.run(*kernel, task);
      std::vector<float> out(85, kPoison);
      task.out = out.data();
      task.tokens = 1;
      for (uint32_t token = 0; token < 13; ++token) {
        task.rows = &token;
        for (uint64_t group = 0; group < 5; ++group) {
          task.group_begin = group;
          task.group_end = group + 1;
          kernel->panel(problem.packed.layout)(task);
        }
        for (uint64_t row = 0; row < 80; ++row)
          ASSERT_EQ(bits(out[row]), bits(whole[uint64_t{token} * 85 + row])) << token;
      }
    }
  }
}

// The dot product, and the sum of its terms' magnitudes.
std::pair<double, double> dot_in_float64(const float* weights, const float* x, uint64_t n) {
  double sum = 0, magnitudes = 0;
  for (uint64_t i = 0; i < n; ++i) {
    const double product = static_cast<double>(weights[i]) * static_cast<double>(x[i]);
    sum += product;
    magnitudes += std::abs(product);
  }
  return {sum, magnitudes};
}

// Against float64: with float32 activations the error is float32's, with INT8 it is that of rounding the activations.
TEST(Conformance, the_reference_is_near_float64) {
  RngForTest rng{13};
  for (const std::string& format : layout_formats_for_test()) {
    Problem problem(format, 32, small_k(format, 4), 3, &rng);
    std::vector<float> weights(problem.n * problem.k);
    decode(problem.packed.encoded, weights);
    for (const ActivationKind kind :
         {ActivationKind::kF32, ActivationKind::kInt8, ActivationKind::kBF16, ActivationKind::kE2M1}) {
      const Kernel& kernel = reference(kind);
      if (!takes(kernel, problem.packed.layout)) continue;
      SCOPED_TRACE(format + ", " + std::string(activation_kind_name(kind)));
      const std::vector<float> got = problem.run(kernel, problem.task(kind));
      for (uint64_t t = 0; t < problem.tokens; ++t) {
        for (uint64_t row = 0; row < problem.n; ++row) {
          const auto [exact, squares] =
              dot_in_float64(weights.data() + row * problem.k, problem.x.data() + t * problem.k, problem.k);
          // Half a step of the largest of 16 or 32 normal numbers is at most 4.5 / 254 of a typical one.
          // A four-bit float is off by up to a sixth of the largest.
          // BF16 keeps eight bits.
          const double bound = kind == ActivationKind::kF32    ? 1e-6 * squares
                               : kind == ActivationKind::kBF16 ? 0x1p-9 * squares
                               : kind == ActivationKind::kInt8 ? 0.02 * squares
                                                               : 0.3 * squares;
          ASSERT_NEAR(static_cast<double>(got[t * (problem.n + 5) + row]), exact, bound) << t << ", " << row;
        }
      }
    }
  }
}

TEST(Conformance, nan_stays_in_its_token) {
  RngForTest rng{14};
  for (const std::string& format : layout_formats_for_test()) {
    Problem problem(format, 16, small_k(format, 2), 9, &rng);
    const std::vector<float> clean = problem.x;
    for (const Kernel* kernel : kernels()) {
      if (!takes(*kernel, problem.packed.layout)) continue;
      SCOPED_TRACE(std::string(kernel->name) + ", " + format);
      problem.x = clean;
      const std::vector<float> wanted = problem.run(*kernel, problem.task(kernel->activations));
      problem.x[4 * problem.k + 3] = std::nanf("");
      problem.x[6 * problem.k + 1] = HUGE_VALF;
      const std::vector<float> got = problem.run(*kernel, problem.task(kernel->activations));
      for (uint64_t t = 0; t < 9; ++t) {
        for (uint64_t row = 0; row < 16; ++row) {
          const float value = got[t * 21 + row];
          const bool as_it_should_be = t == 4   ? std::isnan(value)
                                       : t == 6 ? !std::isfinite(value)
                                                : bits(value) == bits(wanted[t * 21 + row]);
          ASSERT_TRUE(as_it_should_be) << t << ", " << row << ": " << value;
        }
      }
    }
  }
}

// 8 real rows in a buffer of 64, the other 56 and what lies between the rows NaN: under every scheme of activations the
// real rows are those of a buffer without the rest.
TEST(Conformance, C67_nan_in_padding_reaches_no_real_row) {
  RngForTest rng{15};
  for (const std::string& format : layout_formats_for_test()) {
    Problem real(format, 37, small_k(format, 3), 8, &rng);
    const uint64_t stride = real.k + 11;
    std::vector<float> buffer(64 * stride, std::nanf(""));
    for (uint64_t t = 0; t < 8; ++t) std::copy_n(real.x.data() + t * real.k, real.k, buffer.data() + 7 * t * stride);
    for (const Kernel* kernel : kernels()) {
      if (!takes(*kernel, real.packed.layout)) continue;
      SCOPED_TRACE(std::string(kernel->name) + ", " + format);
      const std::vector<float> wanted = real.run(*kernel, real.task(kernel->activations));
      PanelTask task = real.task(kernel->activations);
      real.activations.prepare(kernel->activations, real.packed.layout, buffer.data(), 64, stride, &task);
      std::vector<float> got(64 * task.out_stride, kPoison);
      task.tokens = 64;
      task.out = got.data();
      kernel->panel(real.packed.layout)(task);
      for (uint64_t t = 0; t < 8; ++t) {
        for (uint64_t row = 0; row < 37; ++row) {
          ASSERT_EQ(bits(got[7 * t * task.out_stride + row]), bits(wanted[t * task.out_stride + row]))
              << t << ", " << row;
        }
      }
    }
  }
}

// A file with block scale byte 1 and second-level scale 1: code 7 is 6 * 2^-9 on every path, none is flushed.
TEST(Conformance, C11_the_smallest_block_scale_is_not_flushed) {
  const Format format = parse_format("nvfp4");
  EncodedMatrix matrix = EncodedMatrix::make(format, 16, 64);
  std::fill(matrix.codes.begin(), matrix.codes.end(), std::byte{0x77});
  std::fill(matrix.scales.begin(), matrix.scales.end(), std::byte{1});
  matrix.tensor_scale = {SecondLevel::kMultiply, 1.0F};
  RngForTest rng{16};
  Problem problem("nvfp4", 16, 64, 1, &rng);
  const AlignedBytes tiles(problem.packed.layout.bytes());
  pack_rows(problem.packed.layout, matrix.view(), 0, tiles.data());
  problem.packed.matrix = {problem.packed.layout, tiles.data(), multiplier_of(format, matrix.tensor_scale)};
  std::fill(problem.x.begin(), problem.x.end(), 0.0F);
  problem.x[17] = 1;
  for (const Kernel* kernel : kernels()) {
    if (!takes(*kernel, problem.packed.layout)) continue;
    SCOPED_TRACE(kernel->name);
    const std::vector<float> got = problem.run(*kernel, problem.task(kernel->activations));
    // 1 is 127 steps of 1/127 in INT8: the scale's rounding remains. In four-bit floats it is exact.
    const float near = kernel->activations == ActivationKind::kInt8 ? 0.01171875F * 0x1p-22F : 0;
    for (uint64_t row = 0; row < 16; ++row) ASSERT_NEAR(got[row], 0.01171875F, near);
  }
}

}  // namespace
}  // namespace nibble
