// The matrix products of real models, as data: bench/shapes/*.json, built into the program.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nibble {

struct ShapeOp {
  std::string name;       // "experts.gate_up"
  uint64_t experts = 0;   // 0: one matrix
  uint64_t top_k = 1;     // experts that a token goes to
  uint64_t n = 0, k = 0;  // of one matrix
};

struct BenchShape {
  std::string name;  // "gpt-oss-20b"
  std::vector<ShapeOp> ops;
};

std::span<const BenchShape> bench_shapes();  // sorted by name
// "gpt-oss-20b", or "gpt-oss-20b/experts.down" for one of its products. Error with all names.
BenchShape find_shape(std::string_view name);

}  // namespace nibble
