// Every host+device function of numerics in a kernel: nvcc must accept them all, and on a GPU they must give the bits
// that the host gives.
//
//   nvcc -std=c++20 --fmad=false -ftz=false -prec-div=true -I src tests/cuda/numerics_compile.cu
//
// Compiling is the test on machines without a GPU (`-c`). As a program it runs the kernel on random float32 patterns
// and compares with the host: exit 0 and a line per function if all bits agree, 1 if not, 77 without a device.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "nibble/base/rng.h"
#include "nibble/numerics/activations.h"
#include "nibble/numerics/codec/bf16.h"
#include "nibble/numerics/codec/bits.h"
#include "nibble/numerics/codec/e2m1.h"
#include "nibble/numerics/codec/e4m3.h"
#include "nibble/numerics/codec/e5m2.h"
#include "nibble/numerics/codec/e8m0.h"
#include "nibble/numerics/codec/f16.h"
#include "nibble/numerics/codec/int4.h"
#include "nibble/numerics/effective_scale.h"
#include "nibble/numerics/element_codec.h"
#include "nibble/numerics/rules/float_scale.h"
#include "nibble/numerics/rules/mx_scale.h"
#include "nibble/numerics/rules/nv_scale.h"
#include "nibble/numerics/scale_codec.h"

namespace nibble {

// Any two patterns to the results of all functions; `a` is also used as an unsigned code and a magnitude.
struct Results {
  static constexpr int kCount = 44;
  uint32_t values[kCount];
};

NIBBLE_HD BlockCoding coding_of(float divisor, uint32_t bits) {
  return {divisor, divisor, static_cast<float>(static_cast<int>(bits % 16) - 8), -8.0f, 7.0f};
}

NIBBLE_HD void codec_results(uint32_t bits, float x, uint32_t* out) {
  const auto code = static_cast<uint8_t>(bits & 255u);
  const auto half = static_cast<uint16_t>(bits & 0xffffu);
  out[0] = e2m1_encode(x, ZeroSign::kCanonical);
  out[1] = e2m1_encode(x, ZeroSign::kNegativeIfNegative);
  out[2] = e2m1_encode_ties_down(x, ZeroSign::kZeroIsNegative);
  out[3] = float_bits(e2m1_decode(code & 15u));
  out[4] = e4m3_encode(x, ZeroSign::kKeepSign);
  out[5] = e4m3_encode(x, ZeroSign::kCanonical, Overflow::kSpecial);
  out[6] = float_bits(e4m3_decode(code));
  out[7] = e5m2_encode(x);
  out[8] = e5m2_encode(x, Overflow::kSpecial);
  out[9] = float_bits(e5m2_decode(code));
  out[10] = e8m0_round_up(x) + 256u * e8m0_of_exponent(static_cast<int>(code) - 128);
  out[11] = float_bits(e8m0_decode(code));
  out[12] = int4_encode(x) + 16u * int4_encode(x, -7, 7) + 256u * int4_twos_complement(code & 15u);
  out[13] = static_cast<uint32_t>(int4_decode(code & 15u)) ^ pack_nibbles(code & 15u, unpack_nibble(code, true));
  out[14] = bf16_encode(x) + 65536u * f16_encode(x);
  out[15] = float_bits(bf16_decode(half)) ^ float_bits(bf16_round(x));
  out[16] = float_bits(f16_decode(half));
  out[17] = float_bits(f16_round(x));
  out[18] = float_bits(double_to_float_odd(bits_double((static_cast<uint64_t>(bits) << 32) | ~bits)));
  out[19] = float_bits(exp2_int(static_cast<int>(bits % 277u) - 149));
}

NIBBLE_HD void rule_results(float amax, float min, float max, float second, uint32_t* out) {
  out[0] = mx_floor(amax, kMxE2m1) + 256u * mx_floor(amax, kMxE4m3);
  out[1] = mx_even(amax, kMxE2m1) + 256u * mx_even(amax, kMxE4m3);
  out[2] = mx_rceil(amax, kMxE2m1) + 256u * mx_rceil(amax, kMxE4m3);
  out[3] = mx_ceil(amax, kMxE2m1) + 256u * mx_ceil(amax, kMxE4m3);
  out[4] = float_bits(nv_second_level(amax, kNvRange, SecondLevel::kMultiply));
  out[5] = float_bits(nv_second_level(amax, kNvFourSixRange, SecondLevel::kDivide));
  out[6] = float_bits(nv_second_level_bf16(amax));
  out[7] = float_bits(nv_single_level(amax, SecondLevel::kMultiply));
  out[8] = nv_block_scale(amax, nv_second(SecondLevel::kMultiply, second)) +
           256u * nv_block_scale(amax, nv_second(SecondLevel::kDivide, second));
  out[9] = nv_four_six_scale(amax, nv_second(SecondLevel::kMultiply, second), 1.5f);
  out[10] = float_bits(amax_scale(amax, kInt4FullRange));
  out[11] = float_bits(ue8m0_scale(amax));
  out[12] = float_bits(int4_asymmetric_scale(min, max));
  out[13] = int4_zero_code(min, second);
  out[14] = float_bits(int4_extreme_scale(min));
  out[15] = scale_encode(ScaleType::kF32, amax) ^ scale_encode(ScaleType::kBF16, amax);
  out[16] = scale_encode(ScaleType::kF16, amax) + 65536u * scale_encode(ScaleType::kE4M3, amax);
  out[17] = scale_encode(ScaleType::kE8M0, amax);
  out[18] = float_bits(activation_scale(amax, 1e-4f, kE4m3Max, false));
  out[19] = float_bits(activation_scale(amax, 0.0f, kInt8Range, true));
}

NIBBLE_HD void element_results(uint32_t bits, float x, float divisor, uint32_t* out) {
  const BlockCoding block = coding_of(divisor, bits);
  const Element kElements[] = {Element::kE2M1, Element::kE4M3, Element::kInt4, Element::kInt8};
  for (int i = 0; i < 4; ++i) {
    const uint8_t plain = encode_element(kElements[i], x, block);
    const uint8_t rounded =
        encode_element(kElements[i], x, block, {Element::kBF16, ZeroSign::kNegativeIfNegative, Ties::kEven});
    const float value = decode_element(kElements[i], plain, block) + scale_decode(ScaleType::kE4M3, bits & 63u) +
                        effective_scale(divisor, SecondLevel::kDivide, 3.0f);
    out[i] = (plain + 256u * rounded) ^ float_bits(value);
  }
}

NIBBLE_HD Results all_results(uint32_t a, uint32_t b) {
  Results results;
  const float x = bits_float(a);
  // Finite magnitudes for the rules, ordinary ones for the elements.
  const float amax = bits_float(a % kFloatInf), second = bits_float((b % 0x20000000u) + 0x30000000u);
  const float near = second * static_cast<float>(static_cast<int32_t>(a)) * 0x1p-28f;
  codec_results(a, x, results.values);
  rule_results(amax, -magnitude(near), second, second, results.values + 20);
  element_results(a, near, second, results.values + 40);
  return results;
}

__global__ void numerics_kernel(const uint32_t* patterns, int count, Results* out) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = all_results(patterns[2 * i], patterns[2 * i + 1]);
}

// NaNs of the device have their own payload: any NaN equals any other.
bool same(uint32_t a, uint32_t b) {
  const bool both_nan = (a & 0x7fffffffu) > kFloatInf && (b & 0x7fffffffu) > kFloatInf;
  return a == b || both_nan;
}

int compare(const std::vector<uint32_t>& patterns, const std::vector<Results>& device) {
  uint64_t different[Results::kCount] = {};
  for (size_t i = 0; i < device.size(); ++i) {
    const Results host = all_results(patterns[2 * i], patterns[2 * i + 1]);
    for (int j = 0; j < Results::kCount; ++j) different[j] += same(host.values[j], device[i].values[j]) ? 0 : 1;
  }
  int failed = 0;
  for (int j = 0; j < Results::kCount; ++j) {
    std::printf("result %2d: %llu of %zu differ\n", j, static_cast<unsigned long long>(different[j]), device.size());
    failed |= different[j] != 0 ? 1 : 0;
  }
  return failed;
}

int run() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return 77;
  constexpr int kInputs = 1 << 20;
  std::vector<uint32_t> patterns(2 * kInputs);
  for (size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<uint32_t>(random_bits(1, i) >> 13);
  uint32_t* in = nullptr;
  Results* out = nullptr;
  std::vector<Results> results(kInputs);
  const size_t in_bytes = patterns.size() * sizeof(uint32_t), out_bytes = results.size() * sizeof(Results);
  if (cudaMalloc(&in, in_bytes) != cudaSuccess || cudaMalloc(&out, out_bytes) != cudaSuccess) return 1;
  if (cudaMemcpy(in, patterns.data(), in_bytes, cudaMemcpyHostToDevice) != cudaSuccess) return 1;
  numerics_kernel<<<(kInputs + 127) / 128, 128>>>(in, kInputs, out);
  if (cudaGetLastError() != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess) return 1;
  if (cudaMemcpy(results.data(), out, out_bytes, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
  return compare(patterns, results);
}

}  // namespace nibble

int main() { return nibble::run(); }
