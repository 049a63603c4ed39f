// What the passes multiply, made from the master values: what the exported checkpoint will hold, to the bit.
//
// Every weight is rounded to BF16 first, since a checkpoint holds no more; those that are trained in low bits are then
// rounded to their format as `quantize` will round the BF16 ones (train/fake_quant.h). Gradients go straight through to
// the masters.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nibble/train/fake_quant.h"
#include "nibble/train/loop/config.h"
#include "nibble/train/model/decoder.h"
#include "nibble/train/model/trained_tensors.h"

namespace nibble {

class WeightValues {
 public:
  // `rounding` null: BF16 alone. Error for what export/rounded_roles.h refuses.
  WeightValues(const TrainedTensors& tensors, const RoundingConfig* rounding);

  // In the order of TrainedTensors::list(). `packed`: in low bits even where training is not. Error naming the tensor
  // for a NaN or an infinity.
  std::vector<torch::Tensor> of(const std::vector<torch::Tensor>& masters, bool packed = false) const;

 private:
  struct Home {
    std::string name;
    std::vector<uint64_t> parts;
    bool low_bit = false;
  };

  torch::Tensor packed_value(const Home& home, const torch::Tensor& bf16) const;

  std::vector<Home> homes_;
  std::optional<FakeQuant> how_;
  bool during_training_ = false;
  bool slices_share_ = false;  // one second-level scale for all matrices of a stack
};

// Sets the decoder's rounding of activations, if the configuration has one.
void round_activations(const TrainedTensors& tensors, const RoundingConfig& rounding, Decoder* decoder);

}  // namespace nibble
