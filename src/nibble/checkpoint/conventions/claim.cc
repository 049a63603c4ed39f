#include "nibble/checkpoint/conventions/claim.h"

#include <algorithm>

#include "nibble/checkpoint/safetensors.h"

namespace nibble {

std::string join_name(std::string_view module, std::string_view suffix) {
  std::string name(module);
  if (!suffix.empty() && suffix.front() != '_' && !module.empty()) name += '.';
  name += suffix;
  return name;
}

const StoredTensor* stored_part(const Checkpoint& checkpoint, const Weight& weight, PartKind kind) {
  const Part* part = weight.part(kind);
  return part == nullptr ? nullptr : &checkpoint.tensors()[part->tensor];
}

uint64_t element_count(const StoredTensor& tensor) {
  uint64_t count = 1;
  for (const uint64_t dim : tensor.shape) count *= dim;
  return count;
}

bool same_stack(std::span<const uint64_t> a, size_t a_tail, std::span<const uint64_t> b, size_t b_tail) {
  if (a.size() < a_tail || b.size() < b_tail) return false;
  const auto stack_a = a.first(a.size() - a_tail);
  const auto stack_b = b.first(b.size() - b_tail);
  return std::equal(stack_a.begin(), stack_a.end(), stack_b.begin(), stack_b.end());
}

ScaleType scale_type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF32: return ScaleType::kF32;
    case Dtype::kBF16: return ScaleType::kBF16;
    case Dtype::kF16: return ScaleType::kF16;
    case Dtype::kF8E4M3: return ScaleType::kE4M3;
    case Dtype::kF8E8M0:
    case Dtype::kU8: return ScaleType::kE8M0;
    default: return ScaleType::kNone;
  }
}

Claim::Claim(const Convention& convention, const ModuleParts& module, const ReadContext& context,
             std::vector<Weight>* weights, std::vector<bool>* used)
    : convention_(convention), module_(module), context_(context), weights_(weights), used_(used) {}

const StoredTensor* Claim::get(std::string_view suffix) const {
  for (size_t i = 0; i < module_.parts.size(); ++i) {
    if (module_.parts[i].first == suffix) {
      return (*used_)[i] ? nullptr : &context_.checkpoint->tensors()[module_.parts[i].second];
    }
  }
  return nullptr;
}

std::string Claim::name_of(std::string_view suffix) const { return join_name(module_.module, suffix); }

Weight& Claim::add(std::string name, Format format, std::vector<uint64_t> shape, uint32_t variant) {
  Weight& weight = weights_->emplace_back();
  weight.name = std::move(name);
  weight.convention = &convention_;
  weight.format = std::move(format);
  weight.shape = std::move(shape);
  weight.variant = variant;
  return weight;
}

void Claim::attach(PartKind kind, std::string_view suffix) {
  for (size_t i = 0; i < module_.parts.size(); ++i) {
    if (module_.parts[i].first != suffix || (*used_)[i]) continue;
    (*used_)[i] = true;
    weights_->back().parts.push_back({kind, module_.parts[i].second});
  }
}

void Claim::report(Severity severity, std::string rule, std::string_view suffix, std::string message, Values values) {
  Finding finding{severity, std::move(rule), "", name_of(suffix), std::move(message), std::move(values)};
  const int64_t tensor = module_.find(suffix);
  if (tensor >= 0) {
    const StoredTensor& stored = context_.checkpoint->tensors()[static_cast<size_t>(tensor)];
    finding.file = context_.checkpoint->file_of(stored);
    finding.values.insert(finding.values.begin(),
                          {"stored", std::string(dtype_name(stored.dtype)) + " " + shape_text(stored.shape)});
  }
  context_.findings->push_back(std::move(finding));
}

void Claim::refuse(std::string rule, std::string_view suffix, std::string message, Values values) {
  report(Severity::kError, std::move(rule), suffix, std::move(message), std::move(values));
  used_->assign(used_->size(), true);
}

bool Claim::lacks(std::string_view suffix, std::string_view partner) {
  refuse("unmatched-part", suffix,
         name_of(partner) +
             " is missing, and this tensor has no meaning without it; copy the missing tensor back in, "
             "or write the checkpoint again",
         {{"missing", name_of(partner)}});
  return false;
}

bool Claim::bad_shape(std::string_view suffix, std::string_view weight_suffix, std::string message, Values values) {
  if (const StoredTensor* weight = get(weight_suffix); weight != nullptr && suffix != weight_suffix) {
    values.insert(values.begin(),
                  {weight->name, std::string(dtype_name(weight->dtype)) + " " + shape_text(weight->shape)});
  }
  refuse("bad-shape", suffix, std::move(message), std::move(values));
  return false;
}

bool Claim::only_one(std::string_view suffix, std::string_view other) {
  if (get(suffix) == nullptr || get(other) == nullptr) return true;
  refuse("mixed", suffix,
         "the same weight is stored twice, also as " + name_of(other) + ": remove the one that is out of date",
         {{"other", name_of(other)}});
  return false;
}

void Claim::warn(std::string rule, std::string_view suffix, std::string message, Values values) {
  report(Severity::kWarning, std::move(rule), suffix, std::move(message), std::move(values));
}

}  // namespace nibble
