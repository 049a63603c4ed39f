#include "nibble/verify/code_stats.h"

#include <algorithm>
#include <cstring>

#include "nibble/base/check.h"
#include "nibble/base/checked_math.h"
#include "nibble/numerics/decode.h"

namespace nibble {
namespace {

template <typename Magnitude>
void byte_magnitudes(const uint8_t* __restrict codes, uint8_t* __restrict out, uint64_t count, Magnitude magnitude) {
  for (uint64_t i = 0; i < count; ++i) out[i] = magnitude(codes[i]);
}

constexpr uint8_t clear_sign(uint8_t code, uint8_t mask) { return code & mask; }
constexpr uint8_t distance(uint8_t code, uint8_t middle) {
  return static_cast<uint8_t>(code > middle ? code - middle : middle - code);
}
constexpr uint8_t twos_complement(uint8_t code, unsigned range) {
  return static_cast<uint8_t>(code > range / 2 ? range - code : code);
}

uint8_t nibble_magnitude(CodeShape shape, uint8_t code) {
  switch (shape) {
    case CodeShape::kSignMagnitude: return clear_sign(code, 7);
    case CodeShape::kOffset: return distance(code, 8);
    case CodeShape::kTwosComplement: return twos_complement(code, 16);
    case CodeShape::kPlain: return code;
  }
  return code;
}

void bytes_to_magnitudes(CodeShape shape, const uint8_t* codes, uint8_t* out, uint64_t count) {
  switch (shape) {
    case CodeShape::kSignMagnitude:
      return byte_magnitudes(codes, out, count, [](uint8_t c) { return clear_sign(c, 0x7F); });
    case CodeShape::kOffset: return byte_magnitudes(codes, out, count, [](uint8_t c) { return distance(c, 128); });
    case CodeShape::kTwosComplement:
      return byte_magnitudes(codes, out, count, [](uint8_t c) { return twos_complement(c, 256); });
    case CodeShape::kPlain: return byte_magnitudes(codes, out, count, [](uint8_t c) { return c; });
  }
}

}  // namespace

void count_bytes(std::span<const std::byte> bytes, ByteCounts* counts) {
  // Four tables, because two equal bytes in a row would otherwise wait for each other's increment.
  std::array<std::array<uint32_t, 256>, 4> tables{};
  constexpr size_t kPiece = size_t{1} << 30;  // a 32-bit count cannot overflow
  NIBBLE_CHECK(bytes.size() <= kPiece);
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    ++tables[0][word & 0xFF];
    ++tables[1][(word >> 8) & 0xFF];
    ++tables[2][(word >> 16) & 0xFF];
    ++tables[3][(word >> 24) & 0xFF];
    ++tables[0][(word >> 32) & 0xFF];
    ++tables[1][(word >> 40) & 0xFF];
    ++tables[2][(word >> 48) & 0xFF];
    ++tables[3][word >> 56];
  }
  for (; at < bytes.size(); ++at) ++tables[0][static_cast<uint8_t>(bytes[at])];
  for (size_t b = 0; b < 256; ++b) {
    for (const auto& table : tables) (*counts)[b] += table[b];
  }
}

uint8_t code_magnitude(CodeShape shape, uint64_t bits, uint8_t code) {
  if (bits != 8) return nibble_magnitude(shape, code & 15);
  uint8_t magnitude = 0;
  bytes_to_magnitudes(shape, &code, &magnitude, 1);
  return magnitude;
}

uint64_t code_sum(std::span<const std::byte> codes, uint64_t bits) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(codes.data());
  uint64_t sum = 0;
  if (bits == 8) {
    for (size_t i = 0; i < codes.size(); ++i) sum += bytes[i];
  } else {
    for (size_t i = 0; i < codes.size(); ++i) sum += static_cast<uint64_t>((bytes[i] & 15) + (bytes[i] >> 4));
  }
  return sum;
}

std::vector<float> code_values(const Format& format) {
  // One row that holds every code once, decoded with scale 1: the values are numerics', not a copy of them.
  Format plain;
  plain.element = format.element;
  plain.scale = ScaleType::kF32;
  plain.block_rows = 0;
  plain.block_cols = 0;
  plain.zero = format.zero == ZeroPoint::kMin ? ZeroPoint::kMin : ZeroPoint::kNone;
  const uint64_t codes = uint64_t{1} << element_bits(format.element);
  EncodedMatrix matrix = EncodedMatrix::make(plain, 1, codes);
  const float one = 1;
  std::memcpy(matrix.scales.data(), &one, sizeof(one));
  for (uint64_t c = 0; c < codes; ++c) {
    if (codes == 256) {
      matrix.codes[c] = static_cast<std::byte>(c);
    } else {
      matrix.codes[c / 2] |= static_cast<std::byte>(c % 2 == 0 ? c : c << 4);
    }
  }
  std::vector<float> values(codes);
  decode(matrix, values);
  return values;
}

CodeShape code_shape(const Format& format) {
  const std::vector<float> values = code_values(format);
  const size_t half = values.size() / 2;
  if (values[half + 1] == -values[1]) return CodeShape::kSignMagnitude;
  if (values[half] == 0) return CodeShape::kOffset;
  return values[half] < 0 ? CodeShape::kTwosComplement : CodeShape::kPlain;
}

BlockMaxima::BlockMaxima(const Format& format, uint64_t cols)
    : shape_(code_shape(format)), bits_(element_bits(format.element)) {
  const uint64_t per_byte = 8 / bits_;
  const uint64_t block = format.block_cols == 0 || format.block_cols > cols ? cols : format.block_cols;
  blocks_ = block == 0 ? 0 : ceil_div(cols, block);
  bytes_ = ceil_div(cols, per_byte);
  block_bytes_ = ceil_div(block, per_byte);
  NIBBLE_CHECK(blocks_ <= 1 || block % per_byte == 0);
  odd_ = cols % per_byte != 0;
  for (uint8_t code = 0; code < 16; ++code) of_nibble_[code] = nibble_magnitude(shape_, code);
  magnitudes_.resize(bytes_);
  scratch_.resize(bytes_);
}

void BlockMaxima::row(const std::byte* codes, uint8_t* maxima) {
  if (blocks_ == 0) return;
  const auto* bytes = reinterpret_cast<const uint8_t*>(codes);
  if (bits_ == 8) {
    bytes_to_magnitudes(shape_, bytes, magnitudes_.data(), bytes_);
  } else {
    kernels_.nibble_maxima(bytes, bytes_, of_nibble_.data(), magnitudes_.data());
  }
  // The high nibble of the last byte of an odd row is padding.
  if (odd_) magnitudes_[bytes_ - 1] = code_magnitude(shape_, bits_, bytes[bytes_ - 1]);
  reduce(magnitudes_.data(), maxima);
}

void BlockMaxima::reduce(const uint8_t* magnitudes, uint8_t* maxima) {
  // Halving whole rows takes whole vectors where a maximum per short block would not.
  const uint8_t* in = magnitudes;
  uint64_t width = block_bytes_;
  uint64_t count = bytes_;
  uint8_t* out = scratch_.data();
  while (width > 1 && width % 2 == 0 && count % 2 == 0) {
    width /= 2;
    count /= 2;
    kernels_.pair_maxima(in, count, out);
    in = out;
    out = in == scratch_.data() ? magnitudes_.data() : scratch_.data();
  }
  for (uint64_t b = 0; b < blocks_; ++b) {
    const uint64_t begin = b * width;
    const uint64_t end = std::min(begin + width, count);
    uint8_t most = 0;
    for (uint64_t i = begin; i < end; ++i) most = std::max(most, in[i]);
    maxima[b] = most;
  }
}

}  // namespace nibble
