#include "nibble/certify/attribution.h"

#include <fmt/format.h>

#include "nibble/base/strings.h"

namespace nibble {

std::string place_name(const WeightPlace& place) {
  const std::string role(role_name(place.role));
  if (place.layer) return fmt::format("layer {}, {}", *place.layer, role);
  return place.role == Role::kNorm ? "final norm" : role;
}

std::string attribution_basis(const Attribution& a) {
  std::string text = fmt::format("{} of {} first divergences", a.of, with_commas(a.divergences));
  if (a.of + a.left_out < a.divergences) text += fmt::format(" (drawn with seed {})", a.seed);
  if (a.left_out != 0) {
    text += fmt::format("; {} left out, where the reference itself does not choose the chain's token",
                        with_commas(a.left_out));
  }
  if (!a.same.empty()) text += fmt::format("; {} groups are the same in both checkpoints", with_commas(a.same.size()));
  return text;
}

std::string attribution_cost(const Attribution& a) {
  const double whole = a.layers == 0 ? 0 : static_cast<double>(a.layer_passes) / static_cast<double>(a.layers);
  return fmt::format("{} sweep{}, {} layer passes over {} tokens ({:.1f} whole passes), {:.1f} s", a.sweeps,
                     a.sweeps == 1 ? "" : "s", with_commas(a.layer_passes), with_commas(a.tokens), whole, a.seconds);
}

std::string attribution_verdict(const Attribution& a) {
  if (a.divergences == 0) return "the candidate leaves no chain: there is nothing to attribute";
  if (a.of == 0) return "the reference itself leaves the chains at all of these places: there is nothing to attribute";
  if (a.groups.empty()) return "all weights are the same in both checkpoints";
  const AttributedGroup& first = a.groups.front();
  if (first.healed == 0) {
    return fmt::format("no single group heals any of {}: the damage is spread over the layers", a.of);
  }
  return fmt::format("{} heals {} of {}", place_name(first.place), first.healed, a.of);
}

}  // namespace nibble
