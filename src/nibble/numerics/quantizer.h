// Round to nearest: dense rows in, canonical arrays out.
//
//   Quantizer q({format, rule});
//   AbsMax m = abs_max(rows);                       // only if q.needs_amax()
//   TensorScale ts = q.tensor_scale(m.amax);        // one for all matrices of a fusion group
//   q.encode(rows, ts, out, errors);
//
// The bytes depend on the input and the options alone: not on the instruction set, the threads or how the rows were cut
// (cuts must lie on multiples of block_rows; 0 = all rows in one call, unless needs_amax() is true and the scale is
// given). Elements: round to nearest even of x / scale in float32, saturating; never -0 (code 8); scale rounded to its
// stored type first. Zero blocks get zero codes and the format's stated scale.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "nibble/numerics/encoded.h"
#include "nibble/numerics/scale_rule.h"

namespace nibble {

// Whose bytes are wanted: nibble's own rules, or exactly those of a library of the field (FORMATS.md §2.2, §2.3: their
// arithmetic in the weight's type, their zero signs, their constants).
enum class BitExact : uint8_t {
  kNone,
  kCompressedTensors,
  kModelOpt,
  kGgml,  // int4.extreme8 in int4-g32 with binary16 scales (Q4_0), mx.floor in mxfp4
};

inline constexpr std::array kBitExactLibraries = {BitExact::kCompressedTensors, BitExact::kModelOpt, BitExact::kGgml};

std::string_view library_name(BitExact who);  // "compressed-tensors", as on the command line; "" for kNone
std::optional<BitExact> parse_library(std::string_view name);  // the reverse; nullopt for any other name

// The rule whose bytes that library writes into this format; "" if it writes none, or not by any of our rules.
std::string_view bit_exact_rule(BitExact who, const Format& format);

struct QuantizeOptions {
  Format format;
  NamedRule rule;
  BitExact bit_exact = BitExact::kNone;
  // The form in which the file holds the second-level scale; kNone: the rule's own. Asking for it here and not dividing
  // afterwards matters, since 1/x rounds.
  SecondLevel second_level = SecondLevel::kNone;
};

// NaN and infinity have no code: the caller words the error, since it knows file and tensor.
struct BadValue {
  uint64_t row = 0, col = 0;
  float value = 0;
};

struct AbsMax {
  float amax = 0;
  std::optional<BadValue> bad;
};
AbsMax abs_max(const DenseView& rows);

// Sums over elements, in float64, defined so that they do not depend on instruction set, cuts or threads: a row is
// summed on its own in a fixed lane order, rows are added by the caller in ascending order.
struct ErrorSums {
  double signal = 0;  // sum of x^2
  double noise = 0;   // sum of (x - decoded)^2
  uint64_t count = 0;
  void add(const ErrorSums& other);
  double rel_rmse() const;  // sqrt(noise / signal); 0 if both are 0
  double snr_db() const;    // 10 log10(signal / noise); +inf if noise is 0
};

class Quantizer {
 public:
  explicit Quantizer(QuantizeOptions options);  // Error if the rule does not apply, or bit_exact cannot be had
  const QuantizeOptions& options() const { return options_; }
  // The second-level scale (or a scale for the whole tensor) needs the maximum before the first row can be encoded.
  bool needs_amax() const;
  // `element`: the weights' stored type, which some libraries' arithmetic depends on.
  TensorScale tensor_scale(float amax, Element element = Element::kBF16) const;
  // The scales of a whole matrix that a search tries, `chosen` (by tensor_scale) first; `chosen` alone where nothing is
  // searched for the matrix as a whole. The caller encodes all rows with each: the smallest sum of noise wins, the
  // first on ties.
  std::vector<TensorScale> tensor_scale_candidates(const TensorScale& chosen) const;
  // Encodes `rows` into `out` (same rows and cols, arrays present as the format needs). `errors`, if given, holds one
  // entry per row. Returns the first NaN or infinity, in which case `out` is unspecified.
  std::optional<BadValue> encode(const DenseView& rows, const TensorScale& tensor_scale, const MutableEncodedView& out,
                                 ErrorSums* row_errors) const;

 private:
  QuantizeOptions options_;
};

}  // namespace nibble
