#include "nibble/quantize/unit_steps.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "nibble/quantize/source_rows.h"

namespace nibble {

std::vector<Step> steps_of(const OutputPlan& plan, const Unit& unit) {
  std::map<std::pair<uint32_t, uint64_t>, size_t> by_fusion;
  std::vector<std::pair<std::pair<uint64_t, uint32_t>, Step>> steps;
  for (size_t index = 0; index < unit.outs.size(); ++index) {
    const uint32_t o = unit.outs[index];
    const OutWeight& weight = plan.outs[o];
    const uint64_t slices = weight.route == Route::kRawCopy ? 1 : weight.slices();
    for (uint64_t slice = 0; slice < slices; ++slice) {
      const SliceTask task{o, index, slice};
      if (weight.fusion != 0) {
        const auto [it, added] = by_fusion.try_emplace({weight.fusion, weight.one_scale ? 0 : slice}, steps.size());
        if (!added) {
          steps[it->second].second.push_back(task);
          continue;
        }
      }
      const uint64_t source_slice = weight.route == Route::kRawCopy ? 0 : pieces_of(weight, slice).front().slice;
      steps.push_back({{source_slice, o}, {task}});
    }
  }
  std::stable_sort(steps.begin(), steps.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Step> ordered;
  ordered.reserve(steps.size());
  for (auto& [key, step] : steps) ordered.push_back(std::move(step));
  return ordered;
}

std::vector<uint32_t> source_weights(const OutputPlan& plan, const Unit& unit) {
  std::set<uint32_t> weights;
  for (const uint32_t out : unit.outs) {
    for (const Piece& piece : plan.outs[out].pieces) weights.insert(piece.weight);
  }
  return {weights.begin(), weights.end()};
}

}  // namespace nibble
