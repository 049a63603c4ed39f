#include "nibble/verify/stored_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "nibble/verify/rederive.h"

namespace nibble {

StoredParts::StoredParts(const Checkpoint& stored, const OutputPlan& plan, const Checkpoint& base, Findings* findings)
    : stored_(stored), plan_(plan), parts_(plan.outs.size()) {
  std::unordered_set<std::string> planned;
  for (size_t o = 0; o < plan.outs.size(); ++o) {
    const OutWeight& out = plan.outs[o];
    const std::string& planned_file = plan.shards[out.shard].file_name;
    for (const PartDecl& part : parts_of(plan, out, base)) {
      planned.insert(part.tensor.name);
      parts_[o].push_back(match(part.tensor, findings));
      if (parts_[o].back() == nullptr) continue;
      const std::string& stored_file = stored.files()[parts_[o].back()->file].name;
      if (stored_file == planned_file || elsewhere_++ > 0) continue;
      first_elsewhere_ = part.tensor.name;
      planned_file_ = planned_file;
      stored_file_ = stored_file;
    }
  }
  std::vector<std::string> extra;
  for (const StoredTensor& tensor : stored.tensors()) {
    if (!planned.contains(tensor.name)) extra.push_back(tensor.name);
  }
  report_names(missing_, "that quantize makes from BASE are not in the checkpoint", findings);
  report_names(extra, "of the checkpoint are not among those that quantize makes from BASE", findings);
  unmatched_ += extra.size();
  if (elsewhere_ > 0) report_elsewhere(findings);
}

const StoredTensor* StoredParts::match(const TensorDecl& planned, Findings* findings) {
  const int64_t found = stored_.find(planned.name);
  if (found < 0) {
    missing_.push_back(planned.name);
    ++unmatched_;
    return nullptr;
  }
  const StoredTensor& tensor = stored_.tensors()[static_cast<size_t>(found)];
  if (tensor.dtype == planned.dtype && tensor.shape == planned.shape && tensor.bytes == planned.bytes()) return &tensor;
  ++unmatched_;
  const std::string expected = fmt::format("{} {}", dtype_name(planned.dtype), shape_text(planned.shape));
  const std::string is = fmt::format("{} {}", dtype_name(tensor.dtype), shape_text(tensor.shape));
  findings->push_back({Severity::kError,
                       kRederiveRule,
                       stored_.file_of(tensor),
                       tensor.name,
                       fmt::format("stored as {} where the recipe gives {}: make the checkpoint again", is, expected),
                       {{"expected", expected}, {"stored", is}}});
  return nullptr;
}

void StoredParts::report_names(const std::vector<std::string>& names, const std::string& message, Findings* findings) {
  constexpr size_t kShown = 8;
  if (names.empty()) return;
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kShown));
  findings->push_back({Severity::kError,
                       kRederiveRule,
                       stored_.folder().string(),
                       names.front(),
                       fmt::format("{} tensor{} {}: {}{}", names.size(), names.size() == 1 ? "" : "s", message,
                                   fmt::join(names.begin(), end, ", "), names.size() > kShown ? ", …" : ""),
                       {{"tensors", std::to_string(names.size())}}});
}

void StoredParts::report_elsewhere(Findings* findings) const {
  findings->push_back({Severity::kError,
                       kRederiveRule,
                       stored_.folder().string(),
                       first_elsewhere_,
                       "the tensors lie in other files than quantize writes: they are compared by name, headers and "
                       "index are not. Quantize again if the files themselves are to be proven",
                       {{"tensors", std::to_string(elsewhere_)},
                        {"expected_file", planned_file_},
                        {"stored_file", stored_file_},
                        {"expected_files", std::to_string(plan_.shards.size())},
                        {"stored_files", std::to_string(stored_.files().size())}}});
}

}  // namespace nibble
