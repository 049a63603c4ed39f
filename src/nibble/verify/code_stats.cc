#include "nibble/verify/code_stats.h"

#include <algorithm>
#include <cstring>

#include "nibble/base/check.h"
#include "nibble/base/checked_math.h"
#include "nibble/numerics/decode.h"

namespace nibble {
namespace {

// Elementwise max of two byte arrays into a third.
void pairwise_max(const uint8_t* __restrict in, uint8_t* __restrict out, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    uint16_t pair = 0;
    std::memcpy(&pair, in + 2 * i, 2);
    const auto low = static_cast<uint8_t>(pair & 0xFF);
    const auto high = static_cast<uint8_t>(pair >> 8);
    out[i] = low > high ? low : high;
  }
}

template <typename Magnitude>
void byte_magnitudes(const uint8_t* __restrict codes, uint8_t* __restrict out, uint64_t count, Magnitude magnitude) {
  for (uint64_t i = 0; i < count; ++i) out[i] = magnitude(codes[i]);
}

// Of a byte with two codes: the larger of the two.
template <typename Magnitude>
void nibble_magnitudes(const uint8_t* __restrict codes, uint8_t* __restrict out, uint64_t count, Magnitude magnitude) {
  for (uint64_t i = 0; i < count; ++i) {
    const uint8_t low = magnitude(static_cast<uint8_t>(codes[i] & 15));
    const uint8_t high = magnitude(static_cast<uint8_t>(codes[i] >> 4));
    out[i] = low > high ? low : high;
  }
}

constexpr auto sign_magnitude_nibble = [](uint8_t c) { return static_cast<uint8_t>(c & 7); };
constexpr auto offset_nibble = [](uint8_t c) { return static_cast<uint8_t>(c > 8 ? c - 8 : 8 - c); };
constexpr auto plain_nibble = [](uint8_t c) { return c; };
constexpr auto sign_magnitude_byte = [](uint8_t c) { return static_cast<uint8_t>(c & 0x7F); };
constexpr auto twos_complement_byte = [](uint8_t c) { return static_cast<uint8_t>(c > 127 ? 256 - c : c); };

void magnitudes_of(Element element, const uint8_t* codes, uint8_t* out, uint64_t count) {
  switch (element) {
    case Element::kE2M1: return nibble_magnitudes(codes, out, count, sign_magnitude_nibble);
    case Element::kInt4: return nibble_magnitudes(codes, out, count, offset_nibble);
    case Element::kUint4: return nibble_magnitudes(codes, out, count, plain_nibble);
    case Element::kInt8: return byte_magnitudes(codes, out, count, twos_complement_byte);
    default: return byte_magnitudes(codes, out, count, sign_magnitude_byte);
  }
}

uint8_t last_nibble_magnitude(Element element, uint8_t code) { return code_magnitude(element, code & 15); }

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

uint8_t code_magnitude(Element element, uint8_t code) {
  switch (element) {
    case Element::kE2M1: return sign_magnitude_nibble(code);
    case Element::kInt4: return offset_nibble(code);
    case Element::kUint4: return plain_nibble(code);
    case Element::kInt8: return twos_complement_byte(code);
    default: return sign_magnitude_byte(code);
  }
}

BlockMaxima::BlockMaxima(Element element, uint64_t cols, uint64_t block_cols) : element_(element) {
  const uint64_t per_byte = 8 / element_bits(element);
  const uint64_t block = block_cols == 0 || block_cols > cols ? cols : block_cols;
  blocks_ = block == 0 ? 0 : ceil_div(cols, block);
  bytes_ = ceil_div(cols, per_byte);
  block_bytes_ = ceil_div(block, per_byte);
  NIBBLE_CHECK(blocks_ <= 1 || block % per_byte == 0);
  odd_ = cols % per_byte != 0;
  magnitudes_.resize(bytes_);
  scratch_.resize(bytes_);
}

void BlockMaxima::row(const std::byte* codes, uint8_t* maxima) {
  if (blocks_ == 0) return;
  const auto* bytes = reinterpret_cast<const uint8_t*>(codes);
  magnitudes_of(element_, bytes, magnitudes_.data(), bytes_);
  // The high nibble of the last byte of an odd row is padding.
  if (odd_) magnitudes_[bytes_ - 1] = last_nibble_magnitude(element_, bytes[bytes_ - 1]);
  reduce(magnitudes_.data(), maxima);
}

void BlockMaxima::reduce(const uint8_t* magnitudes, uint8_t* maxima) {
  // Halving whole rows vectorises where a maximum per short block would not.
  const uint8_t* in = magnitudes;
  uint64_t width = block_bytes_;
  uint64_t count = bytes_;
  uint8_t* out = scratch_.data();
  while (width > 1 && width % 2 == 0 && count % 2 == 0) {
    width /= 2;
    count /= 2;
    pairwise_max(in, out, count);
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

std::vector<float> code_values(Element element) {
  // One row that holds every code once, decoded with scale 1: the values are numerics', not a copy of them.
  const uint64_t codes = uint64_t{1} << element_bits(element);
  Format format;
  format.element = element;
  format.scale = ScaleType::kF32;
  format.block_rows = 0;
  format.block_cols = 0;
  EncodedMatrix matrix = EncodedMatrix::make(format, 1, codes);
  const float one = 1;
  std::memcpy(matrix.scales.data(), &one, sizeof(one));
  for (uint64_t c = 0; c < codes; ++c) {
    if (element_bits(element) == 8) {
      matrix.codes[c] = static_cast<std::byte>(c);
    } else {
      matrix.codes[c / 2] |= static_cast<std::byte>(c % 2 == 0 ? c : c << 4);
    }
  }
  std::vector<float> values(codes);
  decode(matrix, values);
  return values;
}

}  // namespace nibble
