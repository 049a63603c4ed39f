// Small checkpoints for tests, written into a temporary folder: names and shapes as given, bytes all zero.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nibble/base/file.h"
#include "nibble/checkpoint/safetensors.h"
#include "nibble/models/model.h"

namespace nibble::testing {

struct TinyModel {
  std::string config;  // config.json; "": none is written
  std::map<std::string, std::pair<Dtype, std::vector<uint64_t>>> tensors;

  // A key of the configuration; "" removes it.
  void set(const std::string& key, const std::string& json);
  ModelSpec spec() const;
  void add(const std::string& name, std::vector<uint64_t> shape, Dtype dtype = Dtype::kBF16);
  // Every name through `change`.
  void rename(const std::function<std::string(const std::string&)>& change);
  void erase_experts();
  void erase_prefix(const std::string& prefix);
  Path write(const Path& folder) const;
};

// The family's own inventory as a checkpoint: dense BF16, gpt-oss' stacks transposed; MTP layers included.
TinyModel tiny_from(const std::string& config_text);
// The cases' `tiny`: 2 layers, 4 experts, H = 64, I = 32; 45 tensors.
TinyModel tiny_qwen3();
// The same sizes in gpt-oss' family.
TinyModel tiny_gpt_oss();
// The same experts in Kimi-K2.5's family, with a dense layer before and an MTP layer behind.
TinyModel tiny_kimi_k25();

// A checkpoint that was loaded, and what was said about it.
struct Loaded {
  Findings findings;
  Model model;

  std::vector<Finding> of(const std::string& rule, Severity severity = Severity::kError) const;
  // By name in the weight table; aborts if there is none.
  const ParamSpec& param(const std::string& name) const;
  const Weight& weight(const std::string& name) const;
  size_t count(Role role) const;
};
Loaded load(const Path& path);
Loaded load(const TinyModel& tiny);

// The value of a finding under `key`, "" if there is none.
std::string value_of(const Finding& finding, const std::string& key);

}  // namespace nibble::testing
