// Small GGUF files in a temporary folder.
#pragma once

#include "nibble/checkpoint/conventions/checkpoint_for_test.h"

namespace nibble {

// A GGUF file of tensors without metadata, dimensions slowest first here and fastest first in the file.
class TestGguf {
 public:
  TestGguf& add(std::string name, uint32_t type, std::vector<uint64_t> shape, std::vector<std::byte> bytes) {
    tensors_.push_back({std::move(name), type, std::move(shape), std::move(bytes)});
    return *this;
  }
  const WeightTable& table() {
    if (!table_) {
      write_atomically(folder_ / "model.gguf", std::span<const std::byte>(image()));
      checkpoint_ = std::make_unique<Checkpoint>(Checkpoint::open(folder_ / "model.gguf"));
      table_ = std::make_unique<WeightTable>(WeightTable::build(*checkpoint_, &findings_));
    }
    return *table_;
  }
  const Checkpoint& checkpoint() {
    table();
    return *checkpoint_;
  }
  const Findings& findings() {
    table();
    return findings_;
  }
  Weight& weight(std::string_view name) {
    table();
    const int64_t index = table_->find(name);
    if (index < 0) ADD_FAILURE() << "no weight " << name;
    return table_->weights()[static_cast<size_t>(index < 0 ? 0 : index)];
  }
  std::vector<float> values(std::string_view name, uint64_t slice = 0) {
    return read_rows_f32(checkpoint(), weight(name), slice, 0, weight(name).rows());
  }

 private:
  struct Tensor {
    std::string name;
    uint32_t type;
    std::vector<uint64_t> shape;
    std::vector<std::byte> bytes;
  };

  template <typename T>
  static void put(std::vector<std::byte>* out, T value) {
    const auto bytes = bytes_of<T>({value});
    out->insert(out->end(), bytes.begin(), bytes.end());
  }
  static void pad(std::vector<std::byte>* out) { out->resize((out->size() + 31) / 32 * 32); }

  std::vector<std::byte> image() const {
    std::vector<std::byte> out;
    for (const char c : {'G', 'G', 'U', 'F'}) out.push_back(std::byte(c));
    put<uint32_t>(&out, 3);
    put<uint64_t>(&out, tensors_.size());
    put<uint64_t>(&out, 0);
    uint64_t offset = 0;
    for (const Tensor& tensor : tensors_) {
      put<uint64_t>(&out, tensor.name.size());
      for (const char c : tensor.name) out.push_back(std::byte(c));
      put<uint32_t>(&out, static_cast<uint32_t>(tensor.shape.size()));
      for (size_t i = tensor.shape.size(); i-- > 0;) put<uint64_t>(&out, tensor.shape[i]);
      put<uint32_t>(&out, tensor.type);
      put<uint64_t>(&out, offset);
      offset += (tensor.bytes.size() + 31) / 32 * 32;
    }
    pad(&out);
    for (const Tensor& tensor : tensors_) {
      out.insert(out.end(), tensor.bytes.begin(), tensor.bytes.end());
      pad(&out);
    }
    return out;
  }

  testing::TempDir folder_;
  std::vector<Tensor> tensors_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<WeightTable> table_;
  Findings findings_;
};

}  // namespace nibble
