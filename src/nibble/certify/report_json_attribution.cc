#include "nibble/certify/report_json_attribution.h"

#include <nlohmann/json.hpp>

namespace nibble {
namespace {

Json place_json(const WeightPlace& place) {
  return {{"layer", place.layer ? Json(*place.layer) : Json(nullptr)}, {"role", role_name(place.role)}};
}

}  // namespace

Json attribution_json(const Attribution& attribution) {
  Json rows = Json::array();
  for (const AttributedGroup& group : attribution.groups) {
    Json row = place_json(group.place);
    row["tensors"] = group.tensors;
    row["healed"] = group.healed;
    row["of"] = attribution.of;
    row["margin_gain"] = group.margin_gain;
    row["kl_before"] = attribution.kl_before;
    row["kl_after"] = group.kl_after;
    rows.push_back(std::move(row));
  }
  return rows;
}

Json attribution_basis_json(const Attribution& attribution) {
  Json same = Json::array();
  for (const WeightPlace& place : attribution.same) same.push_back(place_json(place));
  return {{"first_divergences", attribution.divergences},
          {"left_out", attribution.left_out},
          {"tried", attribution.of},
          {"seed", attribution.seed},
          {"same", std::move(same)}};
}

Json attribution_cost_json(const Attribution& attribution) {
  return {{"tokens", attribution.tokens},
          {"sweeps", attribution.sweeps},
          {"layer_passes", attribution.layer_passes},
          {"seconds", attribution.seconds}};
}

}  // namespace nibble
