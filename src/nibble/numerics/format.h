// A format is data: how one element is coded, which block of the matrix shares a scale, how that scale is stored, and
// whether zero points or a second-level scale come with it. Generic encode and decode (quantizer.h, decode.h) follow
// from these fields; nothing else in the tree switches over formats.
//
// Matrices are (N, K): N outputs = rows, K the reduction axis = columns, row-major. Blocks run along K.
//
// Canonical arrays of an encoded matrix (encoded.h), whatever container they come from:
//   codes   (N, code_row_bytes(K)): 4-bit codes of columns 2j and 2j+1 in the low and high nibble of byte j, a row
//           starts on a byte, unused nibbles are 0
//   scales  (scale_rows(N), scale_cols(K)) in the stored type `scale`, little-endian
//   zeros   the same shape, one byte each (kCode): 0..15 with 4-bit codes, signed with bytes
//   mins    the same shape, float32 (kMin)
//   second  one float32 for the matrix (two_level)
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nibble {

enum class Element : uint8_t {
  kF32,
  kBF16,
  kF16,
  kE4M3,
  kE5M2,
  kE2M1,
  kInt4,   // offset binary nibble: value = code - 8, or code - zero
  kUint4,  // value = code (with kMin)
  kInt8,
  kF64,
};

enum class ScaleType : uint8_t { kNone, kF32, kBF16, kF16, kE8M0, kE4M3 };

enum class ZeroPoint : uint8_t { kNone, kCode, kMin };

struct Format {
  std::string name;  // "int4-g32-asym": what the command line takes and the manifest stores
  Element element = Element::kBF16;
  ScaleType scale = ScaleType::kNone;
  uint64_t block_rows = 1;  // 0: all rows share
  uint64_t block_cols = 1;  // 0: all columns share; unused without scale
  ZeroPoint zero = ZeroPoint::kNone;
  bool two_level = false;
  // Bits that scale, zero point and minimum of one block take in the container, where it packs them tighter than the
  // arrays above (q4_k). 0: as above, zero points at 4 bits.
  uint64_t container_block_bits = 0;

  bool is_dense() const { return scale == ScaleType::kNone; }
  uint64_t code_bits() const;
  uint64_t code_row_bytes(uint64_t cols) const;  // rounded up to a byte
  uint64_t scale_rows(uint64_t rows) const;      // 0 when dense
  uint64_t scale_cols(uint64_t cols) const;
  uint64_t scale_bytes() const;  // of one scale
  // Bytes of an (N, K) matrix in its file: codes, scales, zero points, second level; nullopt if 64 bits do not hold it.
  std::optional<uint64_t> stored_bytes(uint64_t rows, uint64_t cols) const;
  // The same per weight, in bits.
  double bits_per_weight(uint64_t rows, uint64_t cols) const;
  friend bool operator==(const Format&, const Format&) = default;
};

uint64_t element_bits(Element element);
uint64_t scale_type_bytes(ScaleType type);
std::string_view element_name(Element element);    // "e2m1"
std::string_view scale_type_name(ScaleType type);  // "e8m0"

// One family of format names ("int4-gN[-asym]", "mxfp4", …): a file in numerics/formats/ and a row in format_list.cc.
struct FormatFamily {
  std::string_view pattern;       // as in --help: "int4-gN"
  std::string_view summary;       // one line for --help
  std::string_view default_rule;  // "" for dense formats
  bool writable;                  // a target of `quantize`; false: only read
  std::optional<Format> (*parse)(std::string_view name);
  // Target-quality reference for `verify --against`: the relative RMSE that round-to-nearest gives on normally
  // distributed weights with this format's default rule (measured by a test, not estimated); 0 for dense formats.
  double (*typical_rel_rmse)(const Format& format);
};

// The list: format_list.cc holds its rows and nothing else.
std::span<const FormatFamily* const> format_families();

// Error with the list of names (nearest first) if no family knows `name`.
Format parse_format(std::string_view name);
const FormatFamily& family_of(const Format& format);

// One format of each family that can be written, with groups of 32 where they are free.
std::vector<Format> example_writable_formats();

// A target of `quantize`: its family is writable, and groups are powers of two from 16 (other groups are only read).
bool is_writable(const Format& format);
// parse_format, and Error with what can be written, nearest first, unless it is known and is_writable().
Format parse_writable_format(std::string_view name);

// Can (N, K) be encoded? nullopt, or what is wrong: the reason with the numbers, and the powers of two from 16 that are
// legal groups for K (empty for formats with fixed blocks). FP8 blocks may be partial; all others need K % block_cols
// == 0.
struct ShapeProblem {
  std::string reason;
  std::vector<uint64_t> legal_groups;
};
std::optional<ShapeProblem> check_shape(const Format& format, uint64_t rows, uint64_t cols);

}  // namespace nibble
