#include "nibble/verify/expected_error.h"

#include <fmt/format.h>

#include "nibble/numerics/decode.h"
#include "nibble/numerics/scale_rule.h"
#include "nibble/quantize/unify_scales.h"

namespace nibble {
namespace {

DenseView view_of(const std::vector<float>& rows, uint64_t count, uint64_t cols) {
  return {reinterpret_cast<const std::byte*>(rows.data()), Element::kF32, count, cols, cols * sizeof(float)};
}

// Multiplies the second-level scale as the record has it. The larger one of a pair is kept, whichever way it is stored.
void enlarge_second_level(const SecondScaleChange& recorded, EncodedMatrix* matrix) {
  const float ratio = recorded.from / recorded.to;
  const float factor = ratio < 1 ? 1 / ratio : ratio;
  TensorScale larger = matrix->tensor_scale;
  larger.value = larger.level == SecondLevel::kDivide ? larger.value / factor : larger.value * factor;
  rescale(*matrix, larger);
}

}  // namespace

ErrorSums difference(const std::vector<float>& base, const std::vector<float>& other) {
  ErrorSums sums;
  for (size_t i = 0; i < base.size(); ++i) {
    const double x = static_cast<double>(base[i]);
    const double d = x - static_cast<double>(other[i]);
    sums.signal += x * x;
    sums.noise += d * d;
  }
  sums.count = base.size();
  return sums;
}

std::vector<Rounding> roundings_of(const Format& format) {
  std::vector<Rounding> roundings;
  for (const ScaleRule* rule : scale_rules()) {
    if (rule->applies(format)) roundings.push_back({.rule = {rule, false}});
  }
  for (const BitExact library : kBitExactLibraries) {
    const std::string_view rule = bit_exact_rule(library, format);
    if (!rule.empty()) roundings.push_back({.rule = parse_rule(rule, format), .bit_exact = library});
  }
  return roundings;
}

std::string Rounding::name(const Format& format) const {
  std::string text = rule.rule == nullptr ? default_rule(format).name() : rule.name();
  if (bit_exact != BitExact::kNone) text += fmt::format(", bit-exact with {}", library_name(bit_exact));
  return text;
}

std::optional<Expected> expected_errors(const Format& format, const std::vector<float>& rows, uint64_t count,
                                        float amax, const SecondScaleChange* recorded, const Rounding& rounding,
                                        Element type) {
  const uint64_t cols = count == 0 ? 0 : rows.size() / count;
  DenseView view = view_of(rows, count, cols);
  std::vector<float> decoded(rows.size());
  if (format.is_dense()) {
    EncodedMatrix dense = EncodedMatrix::make(format, count, cols);
    convert(view, format.element, dense.codes.data());
    decode(dense, decoded);
    return Expected{difference(rows, decoded).rel_rmse(), 0};
  }
  if (family_of(format).default_rule.empty() || check_shape(format, count, cols)) return std::nullopt;
  const Quantizer quantizer({.format = format,
                             .rule = rounding.rule.rule == nullptr ? default_rule(format) : rounding.rule,
                             .bit_exact = rounding.bit_exact,
                             .second_level = rounding.level});
  // A library's arithmetic is that of the weight's type, which is BF16 where the base is quantized itself.
  if (type != Element::kF32 && type != Element::kF16) type = Element::kBF16;
  std::vector<std::byte> narrowed;
  if (rounding.bit_exact != BitExact::kNone && type != Element::kF32) {
    const uint64_t row_bytes = cols * element_bits(type) / 8;
    narrowed.resize(count * row_bytes);
    convert(view, type, narrowed.data());
    view = {narrowed.data(), type, count, cols, row_bytes};
  }
  EncodedMatrix matrix = EncodedMatrix::make(format, count, cols);
  matrix.tensor_scale = quantizer.tensor_scale(amax, type);
  MutableEncodedView out = matrix.mutable_view();
  if (quantizer.encode(view, matrix.tensor_scale, out, nullptr)) return std::nullopt;
  decode(matrix, decoded);
  if (recorded == nullptr || !format.two_level) return Expected{difference(rows, decoded).rel_rmse(), 0};
  enlarge_second_level(*recorded, &matrix);
  std::vector<float> changed(rows.size());
  decode(matrix, changed);
  return Expected{difference(rows, changed).rel_rmse(), difference(decoded, changed).rel_rmse()};
}

}  // namespace nibble
