#include "nibble/ledger/weight_groups.h"

#include <map>
#include <tuple>

#include "nibble/ledger/sharding.h"

namespace nibble {
namespace {

using Key = std::tuple<Role, Projection, Fusion, std::vector<uint64_t>, std::string, uint64_t, KeyValueRows>;

}  // namespace

uint64_t WeightGroup::count(uint64_t stage, uint64_t stages) const {
  const auto [first, last] = stage_layers(before.size() - 1, stages, stage);
  return count_of_layers(first, last);
}

WeightGroups::WeightGroups(const ModelSpec& spec, const std::vector<WeightItem>& items) : tied_(ties_head(items)) {
  std::map<Key, size_t> found;
  const size_t layers = spec.layers.size();
  for (const WeightItem& item : items) {
    if (item.is_copy()) continue;
    const ParamSpec& param = item.param;
    if (param.role != Role::kMtp) bytes_ += item.bytes;
    const KeyValueRows kv = key_value_rows(spec, param);
    const auto [at, added] = found.try_emplace(
        {param.role, param.projection, param.fusion, param.shape, item.format.name, item.bytes, kv}, groups_.size());
    if (added) groups_.push_back({item, kv, std::vector<uint64_t>(layers + 1), 0, 0});
    WeightGroup& group = groups_[at->second];
    if (param.layer >= 0 && static_cast<size_t>(param.layer) < layers) {
      ++group.before[static_cast<size_t>(param.layer) + 1];
    } else if (param.role == Role::kEmbedding && param.layer < 0) {
      ++group.in_front;
    } else {
      ++group.at_end;
    }
  }
  for (WeightGroup& group : groups_) {
    for (size_t i = 1; i <= layers; ++i) group.before[i] += group.before[i - 1];
  }
}

}  // namespace nibble
