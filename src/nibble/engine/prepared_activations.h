// Activations in the form that a matrix's kernel takes, with what they were made from: made once for all matrices that
// read the same.
#pragma once

#include <cstdint>

#include "nibble/engine/weights/linear.h"
#include "nibble/kernels/panel.h"

namespace nibble {

// Keeps memory from call to call; not thread-safe.
class PreparedActivations {
 public:
  // x (rows, K), `stride` floats apart, in the form that `weights` take.
  void prepare(const Linear& weights, const float* x, uint64_t rows, uint64_t stride, ThreadPool* pool);
  // Whether that is what these weights would take of this x.
  bool serves(const Linear& weights, const float* x, uint64_t rows, uint64_t stride) const;
  // Into the task; valid until the next prepare().
  void give(PanelTask* task) const;

 private:
  const float* x_ = nullptr;
  uint64_t rows_ = 0, stride_ = 0;
  ActivationKind kind_ = ActivationKind::kF32;
  ActivationRounding rounding_ = ActivationRounding::kNone;
  WeightLayout layout_;
  F32Padder padder_;
  Int8Quantizer quantizer_;
  E2M1Quantizer e2m1_quantizer_;
  BF16Rounder rounder_;
  F32Activations f32_;
  Int8Activations int8_;
  E2M1Activations e2m1_;
  BF16Activations bf16_;
};

}  // namespace nibble
