// dense_sums of code_stats.h. Elements are taken as magnitudes (sign bit cleared), so that the largest, the zeros and
// what is not finite are found by integer comparison; sums of squares are doubles, since bfloat16 squares can leave
// float32's range.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "nibble/verify/code_stats.h"

namespace nibble {
namespace {

// How one stored type becomes a magnitude: `Bits` its pattern without the sign, `kInfinity` the first pattern that is
// not finite.
struct Bf16 {
  using Bits = uint16_t;
  static constexpr Bits kSign = 0x8000, kInfinity = 0x7F80;
  static double value(Bits b) { return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(b) << 16)); }
};
struct F16 {
  using Bits = uint16_t;
  static constexpr Bits kSign = 0x8000, kInfinity = 0x7C00;
  // The exponent is moved by a multiplication, which does subnormals too.
  static double value(Bits b) {
    return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(b) << 13)) * 0x1p112;
  }
};
struct F32 {
  using Bits = uint32_t;
  static constexpr Bits kSign = 0x80000000, kInfinity = 0x7F800000;
  static double value(Bits b) { return static_cast<double>(std::bit_cast<float>(b)); }
};
struct F64 {
  using Bits = uint64_t;
  static constexpr Bits kSign = Bits{1} << 63, kInfinity = Bits{0x7FF0} << 48;
  static double value(Bits b) { return std::bit_cast<double>(b); }
};

constexpr uint64_t kLanes = 8;
constexpr uint64_t kBlock = 128 * kLanes;

template <typename Type>
typename Type::Bits load(const std::byte* at) {
  typename Type::Bits bits = 0;
  std::memcpy(&bits, at, sizeof(bits));
  return static_cast<typename Type::Bits>(bits & static_cast<typename Type::Bits>(~Type::kSign));
}

template <typename Type>
void add_one(typename Type::Bits bits, uint64_t index, DenseSums* sums) {
  if (bits >= Type::kInfinity) {
    ++(bits == Type::kInfinity ? sums->infinities : sums->nans);
    if (!sums->first_bad) sums->first_bad = index;
    return;
  }
  const double value = Type::value(bits);
  sums->zeros += bits == 0 ? 1 : 0;
  sums->amax = std::max(sums->amax, value);
  sums->sum_squares += value * value;
}

template <typename Type>
DenseSums sums_of(const std::byte* data, uint64_t count) {
  using Bits = typename Type::Bits;
  DenseSums sums;
  sums.elements = count;
  uint64_t at = 0;
  for (; at + kBlock <= count; at += kBlock) {
    std::array<double, kLanes> squares{};
    std::array<Bits, kLanes> most{};
    std::array<Bits, kLanes> zeros{};
    for (uint64_t i = 0; i < kBlock; i += kLanes) {
      for (uint64_t lane = 0; lane < kLanes; ++lane) {
        const Bits bits = load<Type>(data + (at + i + lane) * sizeof(Bits));
        const double value = Type::value(bits);
        squares[lane] += value * value;
        most[lane] = bits > most[lane] ? bits : most[lane];
        zeros[lane] = static_cast<Bits>(zeros[lane] + (bits == 0 ? 1 : 0));
      }
    }
    const Bits largest = *std::max_element(most.begin(), most.end());
    if (largest >= Type::kInfinity) {  // rare: once more, one by one
      for (uint64_t i = 0; i < kBlock; ++i) add_one<Type>(load<Type>(data + (at + i) * sizeof(Bits)), at + i, &sums);
      continue;
    }
    for (uint64_t lane = 0; lane < kLanes; ++lane) {
      sums.sum_squares += squares[lane];
      sums.zeros += zeros[lane];
    }
    sums.amax = std::max(sums.amax, Type::value(largest));
  }
  for (; at < count; ++at) add_one<Type>(load<Type>(data + at * sizeof(Bits)), at, &sums);
  return sums;
}

DenseSums sums_of_bytes(std::span<const std::byte> bytes, Element element) {
  Format format;
  format.element = element;
  const std::vector<float> values = code_values(format);
  DenseSums sums;
  sums.elements = bytes.size();
  for (uint64_t i = 0; i < bytes.size(); ++i) {
    const double value = static_cast<double>(values[static_cast<uint8_t>(bytes[i])]);
    if (!std::isfinite(value)) {
      ++(std::isnan(value) ? sums.nans : sums.infinities);
      if (!sums.first_bad) sums.first_bad = i;
      continue;
    }
    sums.zeros += value == 0 ? 1 : 0;
    sums.amax = std::max(sums.amax, std::fabs(value));
    sums.sum_squares += value * value;
  }
  return sums;
}

}  // namespace

DenseSums dense_sums(std::span<const std::byte> bytes, Element element) {
  switch (element) {
    case Element::kBF16: return sums_of<Bf16>(bytes.data(), bytes.size() / 2);
    case Element::kF16: return sums_of<F16>(bytes.data(), bytes.size() / 2);
    case Element::kF32: return sums_of<F32>(bytes.data(), bytes.size() / 4);
    case Element::kF64: return sums_of<F64>(bytes.data(), bytes.size() / 8);
    default: return sums_of_bytes(bytes, element);
  }
}

}  // namespace nibble
