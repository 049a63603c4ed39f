#include "nibble/checkpoint/dtype.h"

#include <array>

#include "nibble/base/check.h"

namespace nibble {
namespace {

struct Row {
  std::string_view name;
  uint64_t bits;
};

// In the order of the enumeration.
constexpr std::array<Row, 23> kRows{{
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
    {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
    {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64},        {"GGUF_BLOCK", 0},
}};
static_assert(kRows.size() == static_cast<size_t>(Dtype::kGgufBlock) + 1);

const Row& row(Dtype dtype) { return kRows[static_cast<size_t>(dtype)]; }

}  // namespace

std::string_view dtype_name(Dtype dtype) { return row(dtype).name; }

uint64_t dtype_bits(Dtype dtype) { return row(dtype).bits; }

std::optional<Dtype> parse_dtype(std::string_view name) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name && kRows[i].bits != 0) return static_cast<Dtype>(i);
  }
  return std::nullopt;
}

std::optional<Element> dense_element(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF64: return Element::kF64;
    case Dtype::kF32: return Element::kF32;
    case Dtype::kBF16: return Element::kBF16;
    case Dtype::kF16: return Element::kF16;
    case Dtype::kF8E5M2: return Element::kE5M2;
    case Dtype::kF8E4M3: return Element::kE4M3;
    default: return std::nullopt;
  }
}

Dtype dtype_of(Element dense_element) {
  switch (dense_element) {
    case Element::kF64: return Dtype::kF64;
    case Element::kF32: return Dtype::kF32;
    case Element::kBF16: return Dtype::kBF16;
    case Element::kF16: return Dtype::kF16;
    case Element::kE5M2: return Dtype::kF8E5M2;
    case Element::kE4M3: return Dtype::kF8E4M3;
    default: break;
  }
  NIBBLE_CHECK(false && "a dense element");
  return Dtype::kU8;
}

}  // namespace nibble
