// Small checkpoints in memory, to be broken one tensor at a time: the `tiny` of the cases from the field (Qwen3-MoE
// layout, BF16: 2 layers, 4 experts, H = 64, I = 32, vocabulary 256, untied head: 45 tensors), the same sizes as
// gpt-oss, and any folder that is on disk already.
//
//   TinyCheckpoint tiny = TinyCheckpoint::qwen3_moe();
//   tiny.quantize("compressed-tensors", "int4-g32");
//   tiny.drop("model.layers.1.mlp.gate.weight");
//   tiny.write(dir.path());
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/base/json.h"
#include "nibble/checkpoint/safetensors.h"
#include "nibble/numerics/format.h"

namespace nibble::testing {

struct TinyOptions {
  uint64_t layers = 2, experts = 4, hidden = 64, intermediate = 32, vocabulary = 256;
  uint64_t heads = 4, kv_heads = 2, head_dim = 16;
  uint64_t seed = 1;
  double deviation = 0.05;  // of the normal distribution that weights are drawn from
};

struct TinyTensor {
  Dtype dtype = Dtype::kBF16;
  std::vector<uint64_t> shape;
  std::vector<std::byte> data;
};

class TinyCheckpoint {
 public:
  TinyCheckpoint();
  TinyCheckpoint(const TinyCheckpoint& other);
  TinyCheckpoint& operator=(const TinyCheckpoint& other);
  ~TinyCheckpoint();
  static TinyCheckpoint qwen3_moe(const TinyOptions& options = {});
  // Experts fused (E, in, out) with interleaved gate and up, biases, sinks.
  static TinyCheckpoint gpt_oss(const TinyOptions& options = {});
  static TinyCheckpoint load(const Path& folder);

  std::map<std::string, TinyTensor>& tensors() { return tensors_; }
  Json& config();  // as written to config.json; null: none is written

  TinyTensor& at(const std::string& name);  // must be there
  bool has(const std::string& name) const { return tensors_.contains(name); }
  void add(const std::string& name, Dtype dtype, std::vector<uint64_t> shape, std::vector<std::byte> data);
  void drop(const std::string& name);
  // Every name that contains `from`; returns how many.
  size_t rename(std::string_view from, std::string_view to);
  // Names that match a glob, sorted.
  std::vector<std::string> matching(std::string_view glob) const;

  // Values of a dense tensor (F32, BF16 or F16), and back with rounding to nearest even.
  std::vector<float> values(const std::string& name) const;
  void set_values(const std::string& name, std::span<const float> values);
  void scale_values(const std::string& name, float factor);

  // Every dense tensor that matches `glob` becomes `format` in the convention `layout`, with its configuration. Gate
  // and up get second-level scales of their own.
  void quantize(std::string_view layout, std::string_view format, std::string_view glob = "*.mlp.experts.*");

  // Any number of shards (with an index from two on), and config.json.
  void write(const Path& folder, uint64_t shards = 1) const;

 private:
  void add_normal(const std::string& name, std::vector<uint64_t> shape, const TinyOptions& options, double mean = 0);
  void quantize_one(const std::string& name, std::string_view layout, const Format& format);

  std::map<std::string, TinyTensor> tensors_;
  std::unique_ptr<Json> config_;
};

}  // namespace nibble::testing
