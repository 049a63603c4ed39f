// The reference: one element at a time, by the codecs.
#include <algorithm>
#include <cstring>

#include "nibble/base/check.h"
#include "nibble/numerics/codec/e5m2.h"
#include "nibble/numerics/simd/kernels.h"

namespace nibble::simd {
namespace {

template <typename Bits>
Bits read_bits(const std::byte* at) {
  Bits bits;
  std::memcpy(&bits, at, sizeof(Bits));
  return bits;
}

// Calls body(decode, size): `decode` maps the address of one element to its float32.
template <typename Body>
auto with_element(Element element, Body body) {
  switch (element) {
    case Element::kF32: return body([](const std::byte* at) { return read_bits<float>(at); }, 4);
    case Element::kBF16: return body([](const std::byte* at) { return bf16_decode(read_bits<uint16_t>(at)); }, 2);
    case Element::kF16: return body([](const std::byte* at) { return f16_decode(read_bits<uint16_t>(at)); }, 2);
    case Element::kF64: return body([](const std::byte* at) { return static_cast<float>(read_bits<double>(at)); }, 8);
    case Element::kE4M3: return body([](const std::byte* at) { return e4m3_decode(read_bits<uint8_t>(at)); }, 1);
    case Element::kE5M2: return body([](const std::byte* at) { return e5m2_decode(read_bits<uint8_t>(at)); }, 1);
    default: break;
  }
  NIBBLE_CHECK(false && "a dense element");
  return body([](const std::byte*) { return 0.0f; }, 1);
}

void load(Element element, const std::byte* in, uint64_t count, float* out) {
  with_element(element, [&](auto decode, uint64_t size) {
    for (uint64_t i = 0; i < count; ++i) out[i] = decode(in + i * size);
  });
}

template <typename Bits>
void write_bits(std::byte* at, Bits bits) {
  std::memcpy(at, &bits, sizeof(Bits));
}

void store(Element element, const float* in, uint64_t count, std::byte* out) {
  for (uint64_t i = 0; i < count; ++i) {
    switch (element) {
      case Element::kF32: write_bits(out + 4 * i, in[i]); break;
      case Element::kBF16: write_bits(out + 2 * i, bf16_encode(in[i])); break;
      case Element::kF16: write_bits(out + 2 * i, f16_encode(in[i])); break;
      case Element::kF64: write_bits(out + 8 * i, static_cast<double>(in[i])); break;
      case Element::kE4M3: write_bits(out + i, e4m3_encode(in[i])); break;
      case Element::kE5M2: write_bits(out + i, e5m2_encode(in[i])); break;
      default: NIBBLE_CHECK(false && "a dense element");
    }
  }
}

uint32_t abs_max(Element element, const std::byte* in, uint64_t count) {
  return with_element(element, [&](auto decode, uint64_t size) {
    uint32_t largest = 0;
    for (uint64_t i = 0; i < count; ++i) largest = std::max(largest, magnitude_bits(decode(in + i * size)));
    return largest;
  });
}

void block_abs_max(const float* x, uint64_t cols, uint64_t block_cols, float* amax) {
  for (uint64_t k = 0; k < cols; ++k) {
    float& largest = amax[k / block_cols];
    largest = bits_float(std::max(float_bits(largest), magnitude_bits(x[k])));
  }
}

void dense_block_abs_max(Element element, const std::byte* in, uint64_t cols, uint64_t block_cols, float* amax) {
  const uint64_t size = element_bits(element) / 8;
  for (uint64_t start = 0, b = 0; start < cols; start += block_cols, ++b) {
    const uint32_t most = abs_max(element, in + start * size, std::min(block_cols, cols - start));
    amax[b] = bits_float(std::max(float_bits(amax[b]), most));
  }
}

void block_min_max(const float* x, uint64_t cols, uint64_t block_cols, float* min, float* max) {
  for (uint64_t k = 0; k < cols; ++k) {
    const uint64_t b = k / block_cols;
    min[b] = x[k] < min[b] ? x[k] : min[b];
    max[b] = x[k] > max[b] ? x[k] : max[b];
  }
}

// Sums of one row or block: squares are collected over a step, then added lane by lane.
class SquareSums {
 public:
  SquareSums(double* lanes, bool wide) : lanes_(lanes), wide_(wide) {}

  void add(uint64_t column, float x) {
    if (wide_) {
      const double exact = x;
      lanes_[column % 8] += exact * exact;
    } else {
      squares_[column % kSumStep] = x * x;
    }
  }

  void end_step() {
    for (uint64_t j = 0; j < 8 && !wide_; ++j) {
      lanes_[j] += (squares_[j] + squares_[j + 16]) + (squares_[j + 8] + squares_[j + 24]);
    }
    std::fill_n(squares_, kSumStep, 0.0f);
  }

 private:
  double* lanes_;
  bool wide_;
  float squares_[kSumStep] = {};
};

BlockCoding block_of(const EncodeJob& job, uint64_t b) {
  return {job.divisor[b], job.multiplier[b], job.zero != nullptr ? job.zero[b] : 0.0f, job.low, job.high};
}

template <Element kElement>
void put_code(const EncodeJob& job, uint64_t k, uint8_t code) {
  if (kElement == Element::kE4M3 || kElement == Element::kInt8) {
    job.codes[k] = std::byte{code};
  } else if (k % 2 == 0) {
    job.codes[k / 2] = std::byte{code};
  } else {
    job.codes[k / 2] |= std::byte{static_cast<uint8_t>(code << 4)};
  }
}

float column(const EncodeJob& job, uint64_t k) {
  return job.bf16 != nullptr ? bf16_decode(read_bits<uint16_t>(job.bf16 + 2 * k)) : job.x[k];
}

template <Element kElement>
void encode_as(const EncodeJob& job, RowSums* sums) {
  RowSums ignored;
  SquareSums signal(sums != nullptr ? sums->signal : ignored.signal, job.wide);
  SquareSums noise(sums != nullptr ? sums->noise : ignored.noise, job.wide);
  uint64_t next_block = 0, block_end = 0;
  BlockCoding block;
  for (uint64_t k = 0; k < job.cols; ++k) {
    if (k == block_end) {
      block = block_of(job, next_block++);
      block_end += job.block_cols;
    }
    const float x = column(job, k);
    const uint8_t code = encode_element(kElement, x, block, job.arithmetic);
    put_code<kElement>(job, k, code);
    signal.add(k, x);
    noise.add(k, x - decode_element(kElement, code, block));
    if (k % kSumStep == kSumStep - 1 || k + 1 == job.cols) {
      signal.end_step();
      noise.end_step();
    }
  }
}

void encode(const EncodeJob& job, RowSums* sums) {
  switch (job.element) {
    case Element::kE2M1: return encode_as<Element::kE2M1>(job, sums);
    case Element::kE4M3: return encode_as<Element::kE4M3>(job, sums);
    case Element::kInt4: return encode_as<Element::kInt4>(job, sums);
    case Element::kInt8: return encode_as<Element::kInt8>(job, sums);
    default: NIBBLE_CHECK(false && "an element with a scale");
  }
}

void block_noise(const EncodeJob& job, double* noise) {
  for (uint64_t start = 0, b = 0; start < job.cols; start += job.block_cols, ++b) {
    const BlockCoding block = block_of(job, b);
    const uint64_t count = std::min(job.block_cols, job.cols - start);
    double lanes[8] = {};
    SquareSums sums(lanes, job.wide);
    for (uint64_t i = 0; i < count; ++i) {
      const float x = job.x[start + i];
      const uint8_t code = encode_element(job.element, x, block, job.arithmetic);
      sums.add(i, x - decode_element(job.element, code, block));
      if (i % kSumStep == kSumStep - 1 || i + 1 == count) sums.end_step();
    }
    noise[b] += sum_of_lanes(lanes);
  }
}

uint8_t code_at(const DecodeJob& job, uint64_t k) {
  if (element_bits(job.element) == 8) return static_cast<uint8_t>(job.codes[k]);
  return unpack_nibble(static_cast<uint8_t>(job.codes[k / 2]), k % 2 != 0);
}

void decode(const DecodeJob& job) {
  for (uint64_t k = 0; k < job.cols; ++k) {
    const uint64_t b = k / job.block_cols;
    const uint8_t code = code_at(job, k);
    if (job.element == Element::kUint4) {
      job.out[k] = static_cast<float>(code) * job.multiplier[b] + job.min[b];
    } else {
      BlockCoding block;
      block.multiplier = job.multiplier[b];
      block.zero = job.zero != nullptr ? job.zero[b] : 0.0f;
      job.out[k] = decode_element(job.element, code, block);
    }
  }
}

void nibble_maxima(const uint8_t* codes, uint64_t count, const uint8_t* table, uint8_t* out) {
  for (uint64_t i = 0; i < count; ++i) out[i] = std::max(table[codes[i] & 15], table[codes[i] >> 4]);
}

void pair_maxima(const uint8_t* in, uint64_t count, uint8_t* out) {
  for (uint64_t i = 0; i < count; ++i) out[i] = std::max(in[2 * i], in[2 * i + 1]);
}

}  // namespace

const Kernels& scalar_kernels() {
  static constexpr Kernels kTable = {Isa::kScalar,  load,   store,       abs_max, block_abs_max, dense_block_abs_max,
                                     block_min_max, encode, block_noise, decode,  nibble_maxima, pair_maxima};
  return kTable;
}

}  // namespace nibble::simd
