// --tp N, --ep N: can the model be cut that way? Tensor parallelism cuts gate and up (and q, k, v) along their outputs
// and down (and o) along K; a cut inside a scale's block leaves ranks with parts of a block, which kernels refuse or
// read wrongly. Expert parallelism deals out whole experts. With both, the experts of a group of N GPUs are dealt to
// --ep of them, and each expert is cut into tp / ep.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "nibble/ledger/sharding.h"
#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "parallel-cut";

// One way in which weights are cut: `width` elements along an axis, in blocks of `block` (1: anywhere).
struct BlockCut {
  Role role = Role::kUnknown;
  const char* axis = "";
  uint64_t width = 0, block = 1, parts = 1;
  auto key() const { return std::tie(role, axis, width, block, parts); }
  bool operator<(const BlockCut& other) const { return key() < other.key(); }
};

bool is_parallel(Role role) {
  return role == Role::kRoutedExpert || role == Role::kSharedExpert || role == Role::kDenseMlp ||
         role == Role::kAttention;
}

uint64_t expert_parts(const VerifyOptions& options) {
  if (options.ep <= 1) return options.tp;
  return options.tp % options.ep == 0 ? options.tp / options.ep : (options.ep % options.tp == 0 ? 1 : options.tp);
}

std::string expert_way_out(const ModelSpec& spec, uint64_t parts) {
  if (spec.experts == 0) return "";
  if (spec.experts % parts == 0) return fmt::format(", or keep experts whole with expert parallelism: EP = {}", parts);
  std::vector<uint64_t> legal = legal_parts(spec.experts, 1);
  legal.erase(legal.begin());
  return legal.empty() ? "" : fmt::format(", or expert parallelism: EP = {}", fmt::join(legal, ", "));
}

Finding cut_finding(const VerifyContext& context, const BlockCut& cut, size_t first, uint64_t tensors) {
  const uint64_t local = cut.width / cut.parts;
  const uint64_t remainder = cut.width % cut.parts != 0 ? cut.width % cut.parts : local % cut.block;
  const std::string legal = fmt::format("{}", fmt::join(legal_parts(cut.width, cut.block), ", "));
  const std::string expert = cut.role == Role::kRoutedExpert ? expert_way_out(context.model->spec, cut.parts) : "";
  const std::string fault =
      cut.width % cut.parts != 0
          ? fmt::format("{} {} cannot be divided by {}: remainder {}", cut.width, cut.axis, cut.parts, remainder)
          : fmt::format("{} {} over {} GPUs are {} each, and scales cover blocks of {}: remainder {}", cut.width,
                        cut.axis, cut.parts, local, cut.block, remainder);
  return weight_finding(
      context, first, Severity::kError, kName,
      fmt::format("{} ({} {} tensors). Legal TP: {}{}", fault, tensors, role_name(cut.role), legal, expert),
      {{"width", std::to_string(cut.width)},
       {"tp", std::to_string(cut.parts)},
       {"local", std::to_string(local)},
       {"block", std::to_string(cut.block)},
       {"remainder", std::to_string(remainder)},
       {"legal_tp", legal},
       {"tensors", std::to_string(tensors)}});
}

// Queries, keys and values in one matrix are cut one by one.
std::vector<BlockCut> cuts_of_weight(const VerifyContext& context, size_t w) {
  const Weight& weight = context.model->table.weights()[w];
  const ParamSpec& param = context.model->params[w];
  const VerifyOptions& options = *context.options;
  std::vector<BlockCut> cuts;
  if (weight.opaque || weight.shape.size() < 2 || !is_parallel(param.role)) return cuts;
  const bool scaled = !weight.format.is_dense();
  const KeyValueRows kv = key_value_rows(context.model->spec, param);
  const uint64_t parts = param.role == Role::kRoutedExpert ? expert_parts(options) : options.tp;
  for (const Cut& cut : cuts_of(param, kv, weight.rows(), weight.cols(), parts)) {
    const bool rows = cut.axis == CutAxis::kRows;
    const uint64_t block = rows ? weight.format.block_rows : weight.format.block_cols;
    cuts.push_back(
        {param.role, rows ? "outputs" : "inputs", cut.width, scaled ? std::max<uint64_t>(block, 1) : 1, cut.parts});
  }
  return cuts;
}

void check_tensors(const VerifyContext& context, Findings* findings) {
  struct Seen {
    size_t first = 0;
    uint64_t tensors = 0;
  };
  std::map<BlockCut, Seen> bad;
  for (size_t w = 0; w < context.model->table.weights().size(); ++w) {
    for (const BlockCut& cut : cuts_of_weight(context, w)) {
      if (cut.parts <= 1 || cut.width == 0) continue;
      if (cut.width % cut.parts == 0 && cut.width / cut.parts % cut.block == 0) continue;
      const auto [seen, fresh] = bad.try_emplace(cut, Seen{w, 0});
      ++seen->second.tensors;
    }
  }
  for (const auto& [cut, seen] : bad) findings->push_back(cut_finding(context, cut, seen.first, seen.tensors));
}

void check_count(const VerifyContext& context, std::string_view what, std::string_view option, uint64_t count,
                 uint64_t parts, Findings* findings) {
  if (parts <= 1 || count == 0 || count % parts == 0) return;
  const std::string legal = fmt::format("{}", fmt::join(legal_parts(count, 1), ", "));
  findings->push_back({Severity::kError,
                       std::string(kName),
                       context.checkpoint->path().string(),
                       "",
                       fmt::format("{} {} cannot be divided by {} {}: remainder {}. Legal: {}", count, what, option,
                                   parts, count % parts, legal),
                       {{"count", std::to_string(count)},
                        {"parts", std::to_string(parts)},
                        {"remainder", std::to_string(count % parts)},
                        {"legal", legal}}});
}

void check(const VerifyContext& context, Findings* findings) {
  const VerifyOptions& options = *context.options;
  if (options.tp <= 1 && options.ep <= 1) return;
  const ModelSpec& spec = context.model->spec;
  if (context.model->family == nullptr) {
    findings->push_back({Severity::kNote,
                         std::string(kName),
                         context.checkpoint->path().string(),
                         "",
                         fmt::format("how `{}` is cut over GPUs is not known: --tp and --ep were not checked",
                                     context.model->family_name),
                         {}});
    return;
  }
  check_tensors(context, findings);
  check_count(context, "attention heads", "TP", spec.heads, options.tp, findings);
  if (spec.kv_heads != 0 && options.tp % spec.kv_heads != 0)
    check_count(context, "key/value heads", "TP", spec.kv_heads, options.tp, findings);
  check_count(context, "experts", "EP", spec.experts, options.ep, findings);
}

}  // namespace

extern const Rule kParallelCut = {
    kName, "--tp, --ep: cuts inside a scale's block, heads and experts that do not divide", check};

}  // namespace nibble
