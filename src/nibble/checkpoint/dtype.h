// Element types of containers: safetensors' dtype strings and GGUF's type numbers (FORMATS.md §3, §9.1). A container
// type says how bytes are counted, not what they mean: four-bit floats come as U8, I8 or F4.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "nibble/numerics/format.h"

namespace nibble {

// safetensors' types in the reference writer's ascending rank (files are sorted by descending rank, then name).
enum class Dtype : uint8_t {
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
  kGgufBlock,  // a GGUF block type: StoredTensor::gguf_type says which
};

std::string_view dtype_name(Dtype dtype);  // "F8_E4M3"
std::optional<Dtype> parse_dtype(std::string_view name);
uint64_t dtype_bits(Dtype dtype);  // 0 for kGgufBlock
// The element for types that a dense weight can have (F64 F32 BF16 F16, also F8_E5M2 and F8_E4M3 without scales).
std::optional<Element> dense_element(Dtype dtype);
Dtype dtype_of(Element dense_element);

}  // namespace nibble
