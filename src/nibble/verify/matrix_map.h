// The logical matrices of a model, wherever they are stored: one per expert and projection (gate, up, down) even if a
// checkpoint stacks experts or fuses gate and up, one per slice of everything else. Two checkpoints of one model have
// the same keys, whatever their layouts, so that their rows can be compared.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "nibble/models/model.h"

namespace nibble {

// Row r of the matrix is stored row row_begin + r * row_step of slice `slice` of weight `weight`, and its column c is
// stored column col_begin + c * col_step (biases of experts, which are rows of one stored matrix, can interleave).
struct MatrixPlace {
  uint32_t weight = 0;
  uint64_t slice = 0, row_begin = 0, row_step = 1, col_begin = 0, col_step = 1;
  uint64_t rows = 0, cols = 0;
  std::string part;  // "" for a whole weight, else "[expert] gate": for messages
};

class MatrixMap {
 public:
  explicit MatrixMap(const Model& model);
  // By weight, slice, then row.
  const std::vector<MatrixPlace>& places() const { return places_; }
  const std::string& key(size_t place) const { return keys_[place]; }
  const MatrixPlace* find(const std::string& key) const;

 private:
  void add_weight(uint32_t w, const Weight& weight, const ParamSpec& param);
  void add_expert_biases(uint32_t w, const Weight& weight, const ParamSpec& param);
  void add(std::string key, MatrixPlace place);

  std::vector<MatrixPlace> places_;
  std::vector<std::string> keys_;
  std::unordered_map<std::string, size_t> by_key_;
};

// Rows [begin, begin + count) of a matrix, decoded, (count, K) contiguous. Reads the whole slice where its layout
// demands that. `change`, if given, is applied to the stored rows before they are decoded.
std::vector<float> read_matrix_rows(const Checkpoint& checkpoint, const Weight& weight, const MatrixPlace& place,
                                    uint64_t begin, uint64_t count,
                                    const std::function<void(EncodedMatrix&)>& change = {});

// Rows to read at once: about `bytes` of float32, or all where rows cannot be read apart.
uint64_t rows_at_once(const Weight& weight, uint64_t bytes);

}  // namespace nibble
