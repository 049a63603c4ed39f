// Small checkpoints in a temporary folder, and what tests ask of them: weights by name, values, findings by rule.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "nibble/base/file.h"
#include "nibble/base/json.h"
#include "nibble/checkpoint/weight_table.h"
#include "nibble/numerics/decode.h"
#include "nibble/testing/golden.h"
#include "nibble/testing/temp_dir.h"

namespace nibble {

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

inline std::vector<std::byte> repeated(uint8_t byte, uint64_t count) {
  return std::vector<std::byte>(count, std::byte{byte});
}

// Bytes without meaning, the same at every run.
inline std::vector<std::byte> noise(uint64_t count, uint64_t seed) {
  std::vector<std::byte> bytes(count);
  uint64_t state = seed * 2 + 1;
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = std::byte(static_cast<uint8_t>(state >> 56));
  }
  return bytes;
}

class TestCheckpoint {
 public:
  TestCheckpoint& add(std::string name, Dtype dtype, std::vector<uint64_t> shape, std::vector<std::byte> bytes) {
    decls_.push_back({std::move(name), dtype, std::move(shape)});
    data_.push_back(std::move(bytes));
    return *this;
  }
  // Of zeros.
  TestCheckpoint& add(std::string name, Dtype dtype, std::vector<uint64_t> shape) {
    const uint64_t bytes = TensorDecl{name, dtype, shape}.bytes();
    return add(std::move(name), dtype, std::move(shape), std::vector<std::byte>(bytes));
  }
  TestCheckpoint& file(const std::string& name, const std::string& text) {
    write_atomically(folder_ / name, text);
    return *this;
  }
  TestCheckpoint& settings(const std::string& quantization_config) {
    return file("config.json", R"({"quantization_config": )" + quantization_config + "}");
  }

  // Writes and opens; the table's findings are kept.
  const WeightTable& table() {
    if (!table_) {
      write_safetensors(folder_ / "model.safetensors", decls_, data_, {});
      checkpoint_ = std::make_unique<Checkpoint>(Checkpoint::open(folder_.path()));
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
  const Weight& weight(std::string_view name) {
    const int64_t index = table().find(name);
    if (index < 0) {
      ADD_FAILURE() << "no weight " << name;
      for (const Finding& finding : findings_) ADD_FAILURE() << error_of(finding).what();
      std::abort();
    }
    return table().weights()[static_cast<size_t>(index)];
  }
  std::vector<float> values(std::string_view name, uint64_t slice = 0) {
    const Weight& w = weight(name);
    return read_rows_f32(checkpoint(), w, slice, 0, w.rows());
  }
  // The only finding, as the line a user sees; "" and a failure if there are others or none.
  std::string only_finding(const std::string& rule) {
    if (findings().size() != 1 || findings()[0].rule != rule) {
      for (const Finding& finding : findings()) ADD_FAILURE() << finding.rule << ": " << error_of(finding).what();
      ADD_FAILURE() << "expected one finding of " << rule << ", got " << findings().size();
      return "";
    }
    return error_of(findings()[0]).what();
  }
  const Path& path() const { return folder_.path(); }

 private:
  testing::TempDir folder_;
  std::vector<TensorDecl> decls_;
  std::vector<std::vector<std::byte>> data_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<WeightTable> table_;
  Findings findings_;
};

// Bit patterns, so that NaN and -0 count.
inline std::vector<uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<uint32_t> bits(values.size());
  if (!bits.empty()) std::memcpy(bits.data(), values.data(), bits.size() * 4);
  return bits;
}

// read() in pieces of every size that divides unevenly gives what read() of the whole slice gives.
inline void expect_cuts_equal_whole(const Checkpoint& checkpoint, const Weight& weight) {
  for (uint64_t slice = 0; slice < weight.slices(); ++slice) {
    const std::vector<uint32_t> whole = bits_of(read_rows_f32(checkpoint, weight, slice, 0, weight.rows()));
    for (const uint64_t step : {uint64_t{1}, uint64_t{3}, uint64_t{8}, uint64_t{100}, uint64_t{128}}) {
      std::vector<uint32_t> pieces;
      for (uint64_t row = 0; row < weight.rows(); row += step) {
        const auto piece = read_rows_f32(checkpoint, weight, slice, row, std::min(step, weight.rows() - row));
        const auto bits = bits_of(piece);
        pieces.insert(pieces.end(), bits.begin(), bits.end());
      }
      EXPECT_EQ(pieces, whole) << weight.name << " slice " << slice << " in pieces of " << step;
    }
  }
}

}  // namespace nibble
