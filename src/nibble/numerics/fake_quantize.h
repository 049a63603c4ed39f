// Fake quantization: what a weight reads back as once it was packed, without keeping the packed form. Training rounds
// its weights like this at every step.
//
//   const FakeQuantizer fake({format, rule});
//   const TensorScale scale = *fake.tensor_scale({&rows, 1});     // one for all matrices of a fusion group
//   if (auto bad = fake.run(rows, scale, out, out_stride)) …
//
// `out` is bit for bit decode() of what Quantizer::encode() writes: both are called, on as many rows at a time as stay
// in the first levels of cache, so that codes and scales never reach memory. NaN and infinity as in quantizer.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "nibble/numerics/quantizer.h"

namespace nibble {

class FakeQuantizer {
 public:
  explicit FakeQuantizer(QuantizeOptions options) : quantizer_(std::move(options)) {}  // Error as Quantizer's
  const Quantizer& quantizer() const { return quantizer_; }

  // The scale that matrices share which are packed together, as `quantize` chooses it: from the maximum over all of
  // them, searched where the rule searches one for whole matrices. {} for formats that have none. `bad`, if given,
  // receives the first NaN or infinity, in which case nullopt comes back; its row counts over all matrices.
  std::optional<TensorScale> tensor_scale(std::span<const DenseView> matrices, BadValue* bad = nullptr) const;

  // (rows, cols) of any element type to float32, rows `out_stride` floats apart; `out` may be the float32 input itself.
  // Rows may be a cut of a matrix on multiples of cut_rows().
  std::optional<BadValue> run(const DenseView& rows, const TensorScale& tensor_scale, float* out,
                              uint64_t out_stride) const;
  uint64_t cut_rows() const;

 private:
  double noise(std::span<const DenseView> matrices, const TensorScale& tensor_scale) const;

  Quantizer quantizer_;
};

}  // namespace nibble
