#include "nibble/train/data/train_data.h"

namespace nibble {

SequenceBatch TrainData::batch(uint64_t first, uint64_t rows) const {
  SequenceBatch batch{rows, length(), {}, {}};
  for (uint64_t row = 0; row < rows; ++row) append(first + row, &batch);
  return batch;
}

SequenceBatch TrainData::held_out_batch(uint64_t first, uint64_t rows) const {
  SequenceBatch batch{rows, length(), {}, {}};
  for (uint64_t row = 0; row < rows; ++row) append_held_out(first + row, &batch);
  return batch;
}

}  // namespace nibble
