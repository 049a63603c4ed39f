// The findings of Matcher (matcher.h): what was left over on either side, in words.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nibble/models/matcher.h"

namespace nibble {
namespace {

// Kinds of names that get findings of their own; the totals name the rest.
constexpr size_t kMaxFindings = 50;
constexpr size_t kMaxNames = 20;

const char* plural(uint64_t count) { return count == 1 ? "" : "s"; }

// "a, b, and 3 more": all names if each group is one, otherwise the first of each.
std::string names_of(const NameGroups& groups) {
  std::string text;
  const size_t shown = std::min(groups.groups().size(), kMaxNames);
  for (size_t i = 0; i < shown; ++i) {
    const NameGroup& group = groups.groups()[i];
    text += fmt::format("{}{}", i == 0 ? "" : ", ", group.first);
    if (group.count > 1) text += fmt::format(" ({} like it)", group.count);
  }
  if (groups.groups().size() > shown || groups.ungrouped() > 0) text += ", …";
  return text;
}

}  // namespace

Finding Matcher::finding(Severity severity, const char* rule, const NameGroup& group, std::string message) const {
  Finding result{severity, rule, "", group.first, std::move(message), {}};
  const auto& weights = model_.table.weights();
  const int64_t at = names_.find(group.first);
  if (at >= 0 && !weights[static_cast<size_t>(at)].parts.empty()) {
    const Part& part = weights[static_cast<size_t>(at)].parts.front();
    result.file = checkpoint_.file_of(checkpoint_.tensors()[part.tensor]);
  } else {
    result.file = checkpoint_.path().string();  // a folder, or the one file
  }
  if (group.count > 1) result.values.emplace_back("count", std::to_string(group.count));
  return result;
}

void Matcher::report() {
  report_empty_and_unmatched();
  for (size_t i = 0; i < std::min(shape_findings_.size(), kMaxFindings); ++i) {
    const uint64_t count = wrong_shape_.groups()[i].count;
    if (count > 1) shape_findings_[i].values.emplace_back("count", std::to_string(count));
    findings_.push_back(std::move(shape_findings_[i]));
  }
  report_ties();
  if (mtp_present_ && !mtp_missing_.empty()) {
    const NameGroup& group = mtp_missing_.groups().front();
    findings_.push_back(finding(
        Severity::kWarning, "empty-parameter", group,
        fmt::format("the multi-token-prediction layers are there in part: {} parameter{} of theirs without a tensor; "
                    "fetch the rest, or drop the layers whole",
                    mtp_missing_.total(), plural(mtp_missing_.total()))));
  }
  report_copied();
}

void Matcher::report_ties() {
  const NameGroup head{"", head_name_, 1, 0};
  if (!model_.spec.tied_embeddings && head_missing_)
    findings_.push_back(finding(Severity::kError, "tie-mismatch", head,
                                "the configuration says that the head is a tensor of its own, and there is none; fetch "
                                "it, or set tie_word_embeddings if the model ties it to the embedding"));
  if (model_.spec.tied_embeddings && head_present_)
    findings_.push_back(finding(Severity::kWarning, "tie-mismatch", head,
                                "the configuration ties the head to the embedding, but there is a tensor for it, which "
                                "loaders ignore; if the two differ, set tie_word_embeddings to false"));
}

void Matcher::report_empty_and_unmatched() {
  if (empty_.empty()) return;
  const auto& unmatched = unmatched_.groups();
  if (!unmatched.empty()) {
    const std::string nearest = nearest_parameter(unmatched.front(), empty_.groups());
    Finding summary = finding(
        Severity::kError, "unmatched-tensor", unmatched.front(),
        fmt::format("{} unmatched tensor{}, {} empty parameter{}: these names are not those of family {}; the nearest "
                    "to this one is {}; rename the tensors, or correct model_type in config.json",
                    unmatched_.total(), plural(unmatched_.total()), empty_.total(), plural(empty_.total()),
                    model_.family_name, nearest));
    summary.values = {{"unmatched_tensors", std::to_string(unmatched_.total())},
                      {"empty_parameters", std::to_string(empty_.total())},
                      {"nearest", nearest}};
    findings_.push_back(std::move(summary));
  }
  for (size_t i = 0; i < std::min(unmatched.size(), kMaxFindings); ++i) {
    Finding each =
        finding(Severity::kError, "unmatched-tensor", unmatched[i], "no parameter of the family has this name");
    each.values.emplace_back("nearest", nearest_parameter(unmatched[i], empty_.groups()));
    findings_.push_back(std::move(each));
  }
  for (size_t i = 0; i < std::min(empty_.groups().size(), kMaxFindings); ++i)
    findings_.push_back(finding(Severity::kError, "empty-parameter", empty_.groups()[i],
                                "no tensor is stored for this parameter; fetch the missing files"));
}

void Matcher::report_copied() {
  if (!unmatched_.empty() && empty_.empty()) {
    findings_.push_back(finding(Severity::kNote, "unmatched-tensor", unmatched_.groups().front(),
                                fmt::format("{} tensor{} unknown to the family, copied: {}", unmatched_.total(),
                                            plural(unmatched_.total()), names_of(unmatched_))));
    findings_.back().values = {{"unmatched_tensors", std::to_string(unmatched_.total())}};
  }
  if (!other_part_.empty()) {
    findings_.push_back(finding(
        Severity::kNote, "other-part", other_part_.groups().front(),
        fmt::format("{} tensor{} beside the text model, copied", other_part_.total(), plural(other_part_.total()))));
    findings_.back().values = {{"tensors", std::to_string(other_part_.total())}};
  }
}

}  // namespace nibble
