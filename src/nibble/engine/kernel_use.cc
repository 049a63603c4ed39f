#include "nibble/engine/kernel_use.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "nibble/base/cpu_features.h"
#include "nibble/kernels/cpu/vector/vector_loops.h"

namespace nibble {

std::vector<KernelUse> kernel_uses(const Engine& engine) {
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, KernelUse> groups;
  engine.visit_matrices([&](const Linear& matrix) {
    const std::string_view weights = code_kind_name(matrix.matrix.layout.codes);
    const std::string_view activations = activation_kind_name(matrix.activations);
    KernelUse& use = groups[{matrix.kernel_name(), weights, activations}];
    use.kernel = matrix.kernel_name();
    use.weights = weights;
    use.activations = activations;
    ++use.matrices;
    use.bytes += matrix.matrix.layout.bytes();
  });
  std::vector<KernelUse> uses;
  uses.reserve(groups.size());
  for (const auto& [key, use] : groups) uses.push_back(use);
  std::stable_sort(uses.begin(), uses.end(), [](const KernelUse& a, const KernelUse& b) { return a.bytes > b.bytes; });
  return uses;
}

std::string kernel_line(const std::vector<KernelUse>& uses) {
  uint64_t bytes = 0;
  for (const KernelUse& use : uses) bytes += use.bytes;
  std::vector<std::string> parts;
  for (const KernelUse& use : uses) {
    const double share = bytes == 0 ? 0 : static_cast<double>(use.bytes) / static_cast<double>(bytes);
    parts.push_back(
        fmt::format("{}: {} by {}, {:.0f} % of the weights", use.kernel, use.weights, use.activations, 100 * share));
  }
  parts.push_back(fmt::format("attention: {}", isa_name(vector_loops().isa)));
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace nibble
