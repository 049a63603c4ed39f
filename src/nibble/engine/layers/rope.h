// Rotary positions: the angles of RopeSpec (plain, linear, YaRN as in gpt-oss and DeepSeek, Llama-3), as `transformers`
// computes them: frequencies in float32, angle = position · frequency in float32.
#pragma once

#include <cstdint>
#include <vector>

#include "nibble/models/model_spec.h"

namespace nibble {

class RotaryTable {
 public:
  // Of heads with `width` columns of which RopeSpec::partial_rotary_factor are rotated (`whole`: all).
  RotaryTable(const RopeSpec& rope, uint64_t width, bool whole);

  uint64_t half() const { return frequencies_.size(); }  // pairs
  // Cosines and sines of one position, half() each, times attention_factor().
  void angles(uint64_t position, float* cos, float* sin) const;
  const std::vector<float>& frequencies() const { return frequencies_; }
  float attention_factor() const { return attention_factor_; }

 private:
  std::vector<float> frequencies_;
  float attention_factor_ = 1;
};

// What multiplies the softmax's scale: YaRN with mscale_all_dim (DeepSeek), else 1.
double rope_softmax_factor(const RopeSpec& rope);

// Rotates the first 2 · half columns of a head in place; `interleaved`: pairs (2i, 2i + 1), which come out as halves
// (the products of queries and keys are the same).
void rotate_head(float* head, const float* cos, const float* sin, uint64_t half, bool interleaved);

}  // namespace nibble
