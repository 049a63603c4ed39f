#include "nibble/quantize/unit_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "nibble/base/error.h"

namespace nibble {
namespace {

Error at(const UnitPlace& place, const char* message) {
  return std::move(Error(message).file(place.file).tensor(place.tensor).value("slice", place.slice));
}

std::string keep_advice(const UnitPlace& place) {
  return fmt::format("leave the tensor as it is: --keep name:{}", place.source);
}

}  // namespace

void refuse_value(const UnitPlace& place, uint64_t begin, const BadValue& bad) {
  throw std::move(at(place, std::isnan(bad.value) ? "a weight is not a number" : "a weight is infinite")
                      .value("row", begin + bad.row)
                      .value("column", bad.col)
                      .value("value", static_cast<double>(bad.value))
                      .way_out("fetch the source again, or repair it")
                      .way_out(keep_advice(place)));
}

void refuse_range(const UnitPlace& place, uint64_t row, const ErrorSums& errors) {
  const auto count = static_cast<double>(std::max<uint64_t>(1, errors.count));
  throw std::move(at(place, "a row's weights are beyond what the format can give back: they would decode to infinity")
                      .value("row", row)
                      .value("root_mean_square", std::sqrt(errors.signal / count))
                      .way_out(keep_advice(place)));
}

void refuse_tensor_scale(const UnitPlace& place, float amax, float scale) {
  throw std::move(at(place, "the largest weight is beyond what the second-level scale can stand for")
                      .value("largest_weight", static_cast<double>(amax))
                      .value("second_level_scale", static_cast<double>(scale))
                      .way_out(keep_advice(place)));
}

void refuse_span(const UnitPlace& place, const ExponentSpan& span, int max_span, const std::string& rule) {
  throw std::move(at(place, "the cast cannot be exact: the block exponents span too much for one shared scale")
                      .value("lowest_exponent", span.low)
                      .value("highest_exponent", span.high)
                      .value("span", span.high - span.low)
                      .value("limit", max_span)
                      .way_out(fmt::format("round instead: --rule {}", rule))
                      .way_out(keep_advice(place)));
}

void refuse_erased(const UnitPlace& place, const ScaleChanges& changes) {
  const SecondScaleChange& change = changes.second_scales.front();
  throw std::move(
      at(place, "one second-level scale for these matrices would erase this one: all its block scales become zero")
          .value("second_level_scale", static_cast<double>(change.from))
          .value("shared", static_cast<double>(change.to))
          .way_out("leave --unify-scales out: readers use each matrix' own scale")
          .way_out(keep_advice(place)));
}

void refuse_differing_scale(const UnitPlace& place, float of_slice_0, float other) {
  throw std::move(
      at(place, "this layout holds one second-level scale for a whole stack, and these matrices have several")
          .value("second_level_scale", static_cast<double>(other))
          .value("of_slice_0", static_cast<double>(of_slice_0))
          .way_out("--unify-scales, which rounds block scales again")
          .way_out("--layout compressed-tensors, which keeps them apart"));
}

}  // namespace nibble
