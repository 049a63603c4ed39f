#include "nibble/checkpoint/tensor_size.h"

#include "nibble/base/check.h"
#include "nibble/base/checked_math.h"
#include "nibble/checkpoint/safetensors.h"

namespace nibble {
namespace {

Error shape_error(const char* message, const std::string& name, Dtype dtype, std::span<const uint64_t> shape) {
  Error error(message);
  error.tensor(name).value("dtype", std::string(dtype_name(dtype))).value("shape", shape_text(shape));
  return error;
}

}  // namespace

std::string shape_text(std::span<const uint64_t> shape) {
  std::string text = "[";
  for (const uint64_t dim : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(dim);
  }
  return text + "]";
}

uint64_t tensor_bytes(const std::string& name, Dtype dtype, std::span<const uint64_t> shape) {
  NIBBLE_CHECK(dtype != Dtype::kGgufBlock);
  const auto elements = checked_product(shape);
  const auto bits = elements ? checked_mul(*elements, dtype_bits(dtype)) : std::nullopt;
  if (!bits) {
    throw shape_error("the shape's product does not fit 64 bits", name, dtype, shape)
        .way_out("the header is wrong: fetch the file again or export it again");
  }
  // Two elements share a byte and no rule says that a row may end within one, so each row must fill its bytes.
  if (dtype == Dtype::kF4 && *elements > 0 && !shape.empty() && shape.back() % 2 != 0) {
    throw shape_error("an F4 tensor with an odd last dimension: two elements share a byte", name, dtype, shape)
        .value("last_dimension", shape.back())
        .way_out("export it again with an even last dimension");
  }
  if (*bits % 8 != 0) {
    throw shape_error("the elements do not fill whole bytes", name, dtype, shape)
        .value("bits", *bits)
        .way_out("export it again with a last dimension that fills whole bytes");
  }
  return *bits / 8;
}

}  // namespace nibble
