#include "nibble/numerics/quantizer.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/numerics/bit_exact.h"
#include "nibble/numerics/decode.h"
#include "nibble/numerics/rules/applies.h"
#include "nibble/numerics/rules/mse.h"
#include "nibble/numerics/scale_codec.h"
#include "nibble/numerics/simd/kernels.h"
#include "nibble/numerics/tile_encoder.h"

namespace nibble {
namespace {

const BitExactRecipe* recipe_of(const QuantizeOptions& options) {
  return options.bit_exact == BitExact::kNone ? nullptr : bit_exact_recipe(options.bit_exact, options.format);
}

Error cannot_have(const QuantizeOptions& options, const char* why) {
  return Error(why)
      .value("format", options.format.name)
      .value("rule", options.rule.name())
      .value("bit_exact_with", std::string(library_name(options.bit_exact)));
}

void check_bit_exact(const QuantizeOptions& options) {
  if (options.bit_exact == BitExact::kNone) return;
  const BitExactRecipe* recipe = recipe_of(options);
  if (recipe == nullptr) {
    throw cannot_have(options, "the library does not write this format").way_out("leave bit-exactness out");
  }
  if (options.rule.mse || options.rule.rule->name != recipe->rule) {
    throw cannot_have(options, "the library has another scale rule for this format")
        .way_out("use the rule " + std::string(recipe->rule));
  }
  const SecondLevel own =
      options.bit_exact == BitExact::kCompressedTensors ? SecondLevel::kDivide : SecondLevel::kMultiply;
  if (options.format.two_level && options.second_level != SecondLevel::kNone && options.second_level != own) {
    throw cannot_have(options, "the library holds its second-level scale the other way round")
        .way_out("write the library's own layout");
  }
}

BadValue first_bad_value(const DenseView& rows) {
  const simd::Kernels& kernels = simd::kernels();
  std::vector<float> x(rows.cols);
  for (uint64_t row = 0; row < rows.rows; ++row) {
    kernels.load(rows.element, rows.data + row * rows.row_stride, rows.cols, x.data());
    for (uint64_t col = 0; col < rows.cols; ++col) {
      if (!is_finite(x[col])) return {row, col, x[col]};
    }
  }
  NIBBLE_CHECK(false && "a value is not finite");
  return {};
}

DenseView row_of(const DenseView& rows, uint64_t row) {
  return {rows.data + row * rows.row_stride, rows.element, 1, rows.cols, rows.row_stride};
}

ErrorSums dense_errors(const float* x, const float* y, uint64_t count) {
  simd::RowSums sums;
  for (uint64_t k = 0; k < count; ++k) {
    const double signal = x[k], noise = signal - y[k];
    sums.signal[k % 8] += signal * signal;
    sums.noise[k % 8] += noise * noise;
  }
  return {simd::sum_of_lanes(sums.signal), simd::sum_of_lanes(sums.noise), count};
}

// A dense target: one conversion. False if some value is not finite.
bool encode_dense(const DenseView& rows, Element element, std::byte* out, ErrorSums* row_errors) {
  const simd::Kernels& kernels = simd::kernels();
  const uint64_t row_bytes = rows.cols * (element_bits(element) / 8);
  std::vector<float> x(rows.cols), y(rows.cols);
  for (uint64_t row = 0; row < rows.rows; ++row) {
    const DenseView one = row_of(rows, row);
    if (kernels.abs_max(rows.element, one.data, rows.cols) >= kFloatInf) return false;
    convert(one, element, out + row * row_bytes);
    if (row_errors == nullptr) continue;
    kernels.load(rows.element, one.data, rows.cols, x.data());
    kernels.load(element, out + row * row_bytes, rows.cols, y.data());
    row_errors[row] = dense_errors(x.data(), y.data(), rows.cols);
  }
  return true;
}

}  // namespace

std::optional<BitExact> parse_library(std::string_view name) {
  if (name.empty()) return BitExact::kNone;
  for (const BitExact who : kBitExactLibraries) {
    if (library_name(who) == name) return who;
  }
  return std::nullopt;
}

std::string_view library_name(BitExact who) {
  switch (who) {
    case BitExact::kNone: return "";
    case BitExact::kCompressedTensors: return "compressed-tensors";
    case BitExact::kModelOpt: return "modelopt";
    case BitExact::kGgml: return "ggml";
  }
  return "";
}

AbsMax abs_max(const DenseView& rows) {
  const simd::Kernels& kernels = simd::kernels();
  uint32_t largest = 0;
  for (uint64_t row = 0; row < rows.rows; ++row) {
    const uint32_t of_row = kernels.abs_max(rows.element, rows.data + row * rows.row_stride, rows.cols);
    largest = of_row > largest ? of_row : largest;
  }
  if (largest < kFloatInf) return {.amax = bits_float(largest), .bad = std::nullopt};
  return {.amax = bits_float(largest), .bad = first_bad_value(rows)};
}

void ErrorSums::add(const ErrorSums& other) {
  signal += other.signal;
  noise += other.noise;
  count += other.count;
}

double ErrorSums::rel_rmse() const {
  if (noise == 0) return 0;
  return signal == 0 ? std::numeric_limits<double>::infinity() : std::sqrt(noise / signal);
}

double ErrorSums::snr_db() const {
  return noise == 0 ? std::numeric_limits<double>::infinity() : 10 * std::log10(signal / noise);
}

Quantizer::Quantizer(QuantizeOptions options) : options_(std::move(options)) {
  const Format& format = options_.format;
  if (format.is_dense()) {
    if (options_.rule.rule == nullptr && options_.bit_exact == BitExact::kNone) return;
    throw cannot_have(options_, "a format without scales has no scale rule").way_out("leave the rule out");
  }
  if (options_.rule.rule == nullptr) throw cannot_have(options_, "this format is only read, not written");
  parse_rule(options_.rule.name(), format);  // throws unless the rule applies
  check_bit_exact(options_);
}

bool Quantizer::needs_amax() const { return options_.format.two_level || has_tensor_scale_only(options_.format); }

TensorScale Quantizer::tensor_scale(float amax, Element element) const {
  if (!needs_amax() || options_.format.is_dense()) return {};
  const BitExactRecipe* recipe = recipe_of(options_);
  if (recipe != nullptr && recipe->tensor_scale != nullptr) {
    return recipe->tensor_scale(options_.format, amax, element);
  }
  NIBBLE_CHECK(options_.rule.rule->tensor_scale != nullptr);
  return options_.rule.rule->tensor_scale(options_.format, amax, options_.second_level);
}

std::vector<TensorScale> Quantizer::tensor_scale_candidates(const TensorScale& chosen) const {
  std::vector<TensorScale> list{chosen};
  if (!options_.rule.mse || !has_tensor_scale_only(options_.format)) return list;
  const BlockScale first{.stored = scale_encode(options_.format.scale, chosen.value), .value = chosen.value};
  BlockScale others[kMaxMseCandidates];
  const int count = mse_candidates(options_.format, *options_.rule.rule, first, others);
  for (int i = 0; i < count; ++i) list.push_back({chosen.level, others[i].value});
  return list;
}

std::optional<BadValue> Quantizer::encode(const DenseView& rows, const TensorScale& tensor_scale,
                                          const MutableEncodedView& out, ErrorSums* row_errors) const {
  NIBBLE_CHECK(out.rows == rows.rows && out.cols == rows.cols && out.row_phase == 0 && out.column_group == nullptr);
  if (rows.rows == 0 || rows.cols == 0) return std::nullopt;
  bool good = false;
  if (options_.format.is_dense()) {
    good = encode_dense(rows, options_.format.element, out.codes, row_errors);
  } else {
    good = TileEncoder(options_, recipe_of(options_), rows, tensor_scale, out).run(row_errors);
  }
  return good ? std::nullopt : std::optional(first_bad_value(rows));
}

}  // namespace nibble
