// One module while a convention decides about it: parts by suffix, the weight it becomes, and findings worded in one
// way. A refused module is refused whole: all its parts count as used, so that one fault gives one finding.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nibble/checkpoint/convention.h"

namespace nibble {

using Values = std::vector<std::pair<std::string, std::string>>;

class Claim {
 public:
  Claim(const Convention& convention, const ModuleParts& module, const ReadContext& context,
        std::vector<Weight>* weights, std::vector<bool>* used);

  const ReadContext& context() const { return context_; }
  // null if the module has no such part or an earlier convention used it.
  const StoredTensor* get(std::string_view suffix) const;
  // The name a part of this module has or would have: "M.weight_scale", "M_blocks", "M".
  std::string name_of(std::string_view suffix) const;

  // Appends a weight; attach() then gives it parts. A suffix that the module does not have is skipped.
  Weight& add(std::string name, Format format, std::vector<uint64_t> shape, uint32_t variant = 0);
  void attach(PartKind kind, std::string_view suffix);

  // A finding of severity error about the part `suffix`; the module is used up.
  void refuse(std::string rule, std::string_view suffix, std::string message, Values values = {});
  // The part is there, its partner is not. Always false, for `return claim.lacks(…)`.
  bool lacks(std::string_view suffix, std::string_view partner);
  // A scale (or other companion) whose shape does not go with the weight's. Always false.
  bool bad_shape(std::string_view suffix, std::string_view weight_suffix, std::string message, Values values = {});
  // Two ways of storing one weight side by side: false, with a finding, if both are there.
  bool only_one(std::string_view suffix, std::string_view other);
  void warn(std::string rule, std::string_view suffix, std::string message, Values values = {});

 private:
  void report(Severity severity, std::string rule, std::string_view suffix, std::string message, Values values);

  const Convention& convention_;
  const ModuleParts& module_;
  const ReadContext& context_;
  std::vector<Weight>* weights_;
  std::vector<bool>* used_;
};

// The last component, or the tail beginning with '_', put behind a module's name.
std::string join_name(std::string_view module, std::string_view suffix);
// The part of a weight of this kind, as stored; null if it has none.
const StoredTensor* stored_part(const Checkpoint& checkpoint, const Weight& weight, PartKind kind);
// Elements, from the shape.
uint64_t element_count(const StoredTensor& tensor);
// Are the leading dimensions (all but the last `tail`) of both the same?
bool same_stack(std::span<const uint64_t> a, size_t a_tail, std::span<const uint64_t> b, size_t b_tail);
// The stored scale type of a tensor; kNone if the type is no scale's. U8 counts as E8M0.
ScaleType scale_type_of(Dtype dtype);

}  // namespace nibble
