#include "nibble/engine/layers/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "nibble/base/check.h"
#include "nibble/kernels/cpu/vector/vector_loops.h"

namespace nibble {
namespace {

double yarn_mscale(double factor, double mscale) { return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0; }

// The column pair that turns `rotations` times over the original context.
double correction_dim(const RopeSpec& rope, double rotations, double dim) {
  const double context = static_cast<double>(rope.original_max_position);
  return dim * std::log(context / (rotations * 2 * std::numbers::pi)) / (2 * std::log(rope.theta));
}

// Between interpolated frequencies (slow pairs) and the original ones (quick pairs).
void apply_yarn(const RopeSpec& rope, std::vector<float>* frequencies) {
  const double dim = 2.0 * static_cast<double>(frequencies->size());
  double low = correction_dim(rope, rope.beta_fast, dim), high = correction_dim(rope, rope.beta_slow, dim);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high) high += 0.001;
  for (size_t i = 0; i < frequencies->size(); ++i) {
    const auto ramp = static_cast<float>((static_cast<double>(i) - low) / (high - low));
    const float original = 1.0F - std::clamp(ramp, 0.0F, 1.0F);
    const float f = (*frequencies)[i];
    (*frequencies)[i] = f / static_cast<float>(rope.factor) * (1.0F - original) + f * original;
  }
}

void apply_llama3(const RopeSpec& rope, std::vector<float>* frequencies) {
  const double context = static_cast<double>(rope.original_max_position);
  const double low_wave = context / rope.low_freq_factor, high_wave = context / rope.high_freq_factor;
  for (float& f : *frequencies) {
    const double wave = 2 * std::numbers::pi / static_cast<double>(f);
    if (wave > low_wave) {
      f = static_cast<float>(static_cast<double>(f) / rope.factor);
    } else if (wave >= high_wave) {
      const double smooth = (context / wave - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
      const auto wide = static_cast<double>(f);
      f = static_cast<float>((1 - smooth) * wide / rope.factor + smooth * wide);
    }
  }
}

}  // namespace

RotaryTable::RotaryTable(const RopeSpec& rope, uint64_t width, bool whole) {
  const double factor = whole ? 1.0 : rope.partial_rotary_factor;
  const auto rotated = static_cast<uint64_t>(static_cast<double>(width) * factor);
  frequencies_.resize(rotated / 2);
  for (size_t i = 0; i < frequencies_.size(); ++i) {
    const double exponent = static_cast<double>(static_cast<float>(2 * i) / static_cast<float>(rotated));
    frequencies_[i] = static_cast<float>(1.0 / std::pow(rope.theta, exponent));
  }
  if (rope.scaling == "linear") {
    for (float& f : frequencies_) f /= static_cast<float>(rope.factor);
  } else if (rope.scaling == "llama3") {
    apply_llama3(rope, &frequencies_);
  } else if (rope.scaling == "yarn") {
    apply_yarn(rope, &frequencies_);
    const bool both = rope.mscale != 0 && rope.mscale_all_dim != 0;
    const double stated = rope.attention_factor;
    attention_factor_ = static_cast<float>(stated != 0 ? stated
                                           : both      ? yarn_mscale(rope.factor, rope.mscale) /
                                                        yarn_mscale(rope.factor, rope.mscale_all_dim)
                                                  : yarn_mscale(rope.factor, 1));
  }
}

void RotaryTable::angles(uint64_t position, float* cos, float* sin) const {
  for (size_t i = 0; i < frequencies_.size(); ++i) {
    const auto angle = static_cast<double>(static_cast<float>(position) * frequencies_[i]);
    cos[i] = static_cast<float>(std::cos(angle)) * attention_factor_;
    sin[i] = static_cast<float>(std::sin(angle)) * attention_factor_;
  }
}

double rope_softmax_factor(const RopeSpec& rope) {
  if (rope.scaling != "yarn" || rope.mscale_all_dim == 0) return 1;
  const double mscale = yarn_mscale(rope.factor, rope.mscale_all_dim);
  return mscale * mscale;
}

void rotate_head(float* head, const float* cos, const float* sin, uint64_t half, bool interleaved) {
  if (interleaved) {
    NIBBLE_CHECK(half <= 256);
    float apart[512];
    for (uint64_t i = 0; i < half; ++i) {
      apart[i] = head[2 * i];
      apart[half + i] = head[2 * i + 1];
    }
    std::copy_n(apart, 2 * half, head);
  }
  vector_loops().rotate(head, cos, sin, half);
}

}  // namespace nibble
