#include "nibble/models/stacked_inventory.h"

#include <utility>

namespace nibble {

std::vector<ParamSpec> stacked_inventory(const Family& family, const ModelSpec& spec) {
  ModelSpec stacked = spec;
  stacked.expert_naming.native = Fusion::kStackedExperts;
  std::vector<ParamSpec> params;
  family.inventory(stacked, [&](ParamSpec&& param) { params.push_back(std::move(param)); });
  return params;
}

}  // namespace nibble
