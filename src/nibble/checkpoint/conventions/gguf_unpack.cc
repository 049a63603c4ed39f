#include "nibble/checkpoint/conventions/gguf_unpack.h"

#include <cstring>

#include "nibble/checkpoint/conventions/stored_formats.h"
#include "nibble/numerics/decode.h"

namespace nibble {
namespace {

uint32_t byte_at(const std::byte* at) { return std::to_integer<uint32_t>(*at); }

float half_at(const std::byte* at) { return scale_value(ScaleType::kF16, at); }

// `half` bytes whose low nibbles are elements 0 … half - 1 and high nibbles the next `half`, into pairs of neighbours.
void pair_nibbles(const std::byte* from, uint64_t half, std::byte* to) {
  for (uint64_t j = 0; j < half; j += 2) {
    const uint32_t a = byte_at(from + j);
    const uint32_t b = byte_at(from + j + 1);
    to[j / 2] = std::byte((a & 0xF) | (b & 0xF) << 4);
    to[(half + j) / 2] = std::byte(a >> 4 | (b >> 4) << 4);
  }
}

void copy_scale(const std::byte* from, uint64_t index, uint64_t bytes, EncodedMatrix* out) {
  std::memcpy(out->scales.data() + index * bytes, from, bytes);
}

// d, 16 bytes: (q - 8) * d, which is the canonical INT4.
void unpack_q4_0(const std::byte* block, uint64_t index, EncodedMatrix* out) {
  copy_scale(block, index, 2, out);
  pair_nibbles(block + 2, 16, out->codes.data() + index * 16);
}

// d, m, 16 bytes: d * q + m.
void unpack_q4_1(const std::byte* block, uint64_t index, EncodedMatrix* out) {
  copy_scale(block, index, 2, out);
  out->mins[index] = half_at(block + 2);
  pair_nibbles(block + 4, 16, out->codes.data() + index * 16);
}

void unpack_q8_0(const std::byte* block, uint64_t index, EncodedMatrix* out) {
  copy_scale(block, index, 2, out);
  std::memcpy(out->codes.data() + index * 32, block + 2, 32);
}

// Sub-block j's six-bit scale and minimum: the upper two bits of the last four stand in the first bytes.
struct SixBits {
  uint32_t scale, min;
};
SixBits six_bits(const std::byte* packed, uint32_t j) {
  if (j < 4) return {byte_at(packed + j) & 63, byte_at(packed + j + 4) & 63};
  const uint32_t low = byte_at(packed + j + 4);
  return {(low & 15) | (byte_at(packed + j - 4) >> 6) << 4, (low >> 4) | (byte_at(packed + j) >> 6) << 4};
}

// d, dmin, 12 bytes of scales, 128 bytes: eight sub-blocks of 32, value = (d * scale) * q - dmin * min. The products of
// an F16 and six bits are exact in float32.
void unpack_q4_k(const std::byte* block, uint64_t index, EncodedMatrix* out) {
  const float d = half_at(block);
  const float dmin = half_at(block + 2);
  for (uint32_t j = 0; j < 8; ++j) {
    const SixBits bits = six_bits(block + 4, j);
    const float scale = d * static_cast<float>(bits.scale);
    std::memcpy(out->scales.data() + (index * 8 + j) * sizeof(float), &scale, sizeof(float));
    out->mins[index * 8 + j] = -(dmin * static_cast<float>(bits.min));
  }
  for (uint64_t t = 0; t < 4; ++t) pair_nibbles(block + 16 + t * 32, 32, out->codes.data() + index * 128 + t * 32);
}

void unpack_mxfp4(const std::byte* block, uint64_t index, EncodedMatrix* out) {
  copy_scale(block, index, 1, out);
  pair_nibbles(block + 1, 16, out->codes.data() + index * 16);
}

// Four unsigned E4M3 scales, then 8 bytes for each. ggml reads 0x7F as 0 and never looks at the sign bit; 0xFF stays
// NaN, since ggml's own number for it has no code here.
void unpack_nvfp4(const std::byte* block, uint64_t index, EncodedMatrix* out) {
  for (uint64_t s = 0; s < 4; ++s) {
    const uint32_t stored = byte_at(block + s);
    out->scales[index * 4 + s] = std::byte(stored == 0x7F ? 0 : stored == 0xFF ? 0x7F : stored & 0x7F);
    pair_nibbles(block + 4 + s * 8, 8, out->codes.data() + index * 32 + s * 8);
  }
}

Format q4_0_format() { return int_format(4, 32, ScaleType::kF16, false); }
Format q8_0_format() { return int_format(8, 32, ScaleType::kF16, false); }
Format q4_1_format() { return parse_format("q4_1"); }
Format q4_k_format() { return parse_format("q4_k"); }

constexpr GgufUnpacker kUnpackers[] = {
    {2, q4_0_format, unpack_q4_0},  {3, q4_1_format, unpack_q4_1},    {8, q8_0_format, unpack_q8_0},
    {12, q4_k_format, unpack_q4_k}, {39, mxfp4_format, unpack_mxfp4}, {40, nvfp4_format, unpack_nvfp4},
};

}  // namespace

const GgufUnpacker* gguf_unpacker(uint32_t type) {
  for (const GgufUnpacker& unpacker : kUnpackers) {
    if (unpacker.type == type) return &unpacker;
  }
  return nullptr;
}

}  // namespace nibble
