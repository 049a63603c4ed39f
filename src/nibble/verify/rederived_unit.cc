#include "nibble/verify/rederived_unit.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/quantize/manifest.h"
#include "nibble/verify/byte_difference.h"
#include "nibble/verify/rederive.h"

namespace nibble {
namespace {

constexpr uint64_t kReadBytes = uint64_t{1} << 20;
constexpr const char* kInputs = "inputs_xxh3_128";

std::string short_text(const Json& value) {
  constexpr size_t kShown = 120;
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.size() <= kShown) return printable(text);
  text.resize(kShown);
  return printable(text) + "…";
}

Json member(const Json& object, const std::string& key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found == object.end() ? Json() : *found;
}

class UnitComparison {
 public:
  UnitComparison(const RederiveContext& context, const Unit& unit) : c_(context), unit_(unit) {
    for (const uint32_t out : unit.outs) parts_.emplace_back(weight(out).part_offsets.size());
  }

  UnitOutcome run() {
    try {
      const UnitResult result = encode_unit(
          c_.encode, unit_, [this](uint32_t out, uint32_t part, uint64_t offset, std::span<const std::byte> bytes) {
            compare(out, part, offset, bytes);
          });
      compare_rows(result);
    } catch (const Error& error) {
      UnitOutcome failed;
      failed.findings.push_back(finding_of(error, kRederiveRule));
      failed.differing = comparable_parts();
      return failed;
    }
    count_parts();
    return std::move(outcome_);
  }

 private:
  const OutWeight& weight(uint32_t out) const { return c_.encode.plan->outs[out]; }

  uint64_t comparable_parts() const {
    uint64_t count = 0;
    for (const uint32_t out : unit_.outs) {
      for (size_t part = 0; part < weight(out).part_offsets.size(); ++part)
        count += c_.parts->find(out, part) != nullptr ? 1u : 0u;
    }
    return count;
  }

  void compare(uint32_t out, uint32_t part, uint64_t offset, std::span<const std::byte> made) {
    const StoredTensor* tensor = c_.parts->find(out, part);
    if (tensor == nullptr) return;
    const auto at = std::lower_bound(unit_.outs.begin(), unit_.outs.end(), out) - unit_.outs.begin();
    ByteDifference& difference = parts_[static_cast<size_t>(at)][part];
    while (!made.empty()) {
      const auto piece = made.first(std::min<size_t>(made.size(), kReadBytes));
      buffer_.resize(std::max(buffer_.size(), piece.size()));
      const auto stored = std::span(buffer_).first(piece.size());
      c_.stored->read(*tensor, offset, stored);
      difference.add(offset, piece, stored);
      offset += piece.size();
      made = made.subspan(piece.size());
    }
  }

  // ---- the manifest's rows
  struct Row {
    Json recorded, made;
  };

  void compare_rows(const UnitResult& result) {
    std::vector<Row> differing;
    for (size_t i = 0; i < unit_.outs.size(); ++i) {
      const OutWeight& out = weight(unit_.outs[i]);
      const auto recorded = c_.run->rows.find(out.name);
      if (recorded == c_.run->rows.end()) {
        if (outcome_.unrecorded++ == 0) outcome_.first_unrecorded = out.name;
        continue;
      }
      Json made = tensor_row(*c_.encode.source, out, *c_.encode.request, result.outs[i], result.tensor_hashes,
                             *c_.encode.model);
      if (made.dump() != recorded->second)
        differing.push_back({parse_json(recorded->second, c_.run->path), std::move(made)});
    }
    for (const Row& row : differing) compare_inputs(row);
    if (other_inputs_.empty() && c_.same_tool) {
      for (const Row& row : differing) compare_fields(row);
    }
  }

  void compare_inputs(const Row& row) {
    const Json recorded = member(row.recorded, kInputs);
    for (const auto& [name, hash] : row.made.at(kInputs).items()) {
      const Json before = member(recorded, name);
      // An input may stand in several rows.
      if (before == hash || !other_inputs_.insert(name).second) continue;
      const int64_t tensor = c_.encode.source->find(name);
      NIBBLE_CHECK(tensor >= 0);
      outcome_.findings.push_back(
          {Severity::kError,
           kRederiveRule,
           c_.encode.source->file_of(c_.encode.source->tensors()[static_cast<size_t>(tensor)]),
           name,
           before.is_null() ? "the manifest records no hash of this input: nothing made from it is proven"
                            : "BASE is not what was quantized: the input's hash is not the recorded one, so nothing "
                              "made from it is proven. Give the BASE that was quantized",
           {{"recorded", before.is_null() ? "none" : short_text(before)}, {"base", short_text(hash)}}});
    }
  }

  void compare_fields(const Row& row) {
    std::set<std::string> keys;
    for (const auto& [key, value] : row.made.items()) keys.insert(key);
    for (const auto& [key, value] : row.recorded.items()) keys.insert(key);
    for (const auto& key : keys) {
      const Json recorded = member(row.recorded, key);
      const Json made = member(row.made, key);
      if (recorded == made) continue;
      outcome_.findings.push_back(
          {Severity::kError,
           kRederiveRule,
           c_.run->path,
           row.made.at("name").get<std::string>(),
           fmt::format("the manifest records {} {} where the recipe gives {}: it was changed, or is another run's", key,
                       short_text(recorded), short_text(made)),
           {{"field", key}, {"recorded", short_text(recorded)}, {"expected", short_text(made)}}});
    }
  }

  // ---- the bytes
  void count_parts() {
    for (size_t i = 0; i < unit_.outs.size(); ++i) {
      const OutWeight& out = weight(unit_.outs[i]);
      for (size_t part = 0; part < out.part_offsets.size(); ++part) count(unit_.outs[i], part, parts_[i][part]);
    }
  }

  void count(uint32_t out, size_t part, const ByteDifference& difference) {
    const StoredTensor* tensor = c_.parts->find(out, part);
    if (tensor == nullptr) return;  // reported and counted by StoredParts
    // A byte that was not made again would count as equal.
    NIBBLE_CHECK(difference.compared() == tensor->bytes);
    ++outcome_.tensors;
    outcome_.bytes += tensor->bytes;
    if (difference.differing() == 0) return;
    ++outcome_.differing;
    outcome_.differing_bytes += difference.differing();
    if (!other_inputs_.empty()) return;
    outcome_.findings.push_back({Severity::kError, kRederiveRule, c_.stored->file_of(*tensor), tensor->name,
                                 fmt::format("not what the recipe gives from BASE: {}. Copy the file again, or make "
                                             "it again with `nibble quantize`",
                                             difference.text(tensor->bytes)),
                                 difference.values(tensor->bytes)});
  }

  const RederiveContext& c_;
  const Unit& unit_;
  std::vector<std::vector<ByteDifference>> parts_;  // as unit_.outs, then parts
  std::vector<std::byte> buffer_;
  std::set<std::string> other_inputs_;  // inputs whose hash is not the recorded one
  UnitOutcome outcome_;
};

}  // namespace

UnitOutcome rederive_unit(const RederiveContext& context, const Unit& unit) {
  return UnitComparison(context, unit).run();
}

}  // namespace nibble
