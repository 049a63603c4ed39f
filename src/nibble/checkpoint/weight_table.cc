#include "nibble/checkpoint/weight_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "nibble/base/check.h"
#include "nibble/base/checked_math.h"
#include "nibble/base/error.h"
#include "nibble/base/strings.h"
#include "nibble/numerics/decode.h"

namespace nibble {
namespace {

struct Entry {
  std::string_view module, suffix;
  uint32_t tensor = 0;
};

// Splits stored names into module and suffix with the suffixes of all conventions: whole last components
// ("weight_scale"), or tails of one ("_blocks"). What starts with "weight_" belongs to a module even if nobody knows
// it: dense says so then.
class Splitter {
 public:
  Splitter() {
    for (const Convention* convention : conventions()) {
      for (const std::string_view suffix : convention->suffixes()) {
        (suffix.front() == '_' ? &tails_ : &components_)->push_back(suffix);
      }
    }
    for (auto* list : {&components_, &tails_}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    // The longest tail first: "_weight_scale" before "_scale".
    std::stable_sort(tails_.begin(), tails_.end(), [](auto a, auto b) { return a.size() > b.size(); });
  }

  Entry split(std::string_view name, uint32_t tensor) const {
    const size_t dot = name.rfind('.');
    const std::string_view leaf = dot == std::string_view::npos ? name : name.substr(dot + 1);
    if (starts_with(leaf, "weight_") || std::binary_search(components_.begin(), components_.end(), leaf)) {
      return {dot == std::string_view::npos ? std::string_view() : name.substr(0, dot), leaf, tensor};
    }
    for (const std::string_view tail : tails_) {
      if (leaf.size() > tail.size() && ends_with(leaf, tail)) {
        return {name.substr(0, name.size() - tail.size()), name.substr(name.size() - tail.size()), tensor};
      }
    }
    return {name, std::string_view(), tensor};
  }

 private:
  std::vector<std::string_view> components_, tails_;
};

std::vector<Entry> sorted_entries(const Checkpoint& checkpoint) {
  const Splitter splitter;
  const auto& tensors = checkpoint.tensors();
  std::vector<Entry> entries;
  entries.reserve(tensors.size());
  for (uint32_t i = 0; i < tensors.size(); ++i) entries.push_back(splitter.split(tensors[i].name, i));
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.module, a.suffix, a.tensor) < std::tie(b.module, b.suffix, b.tensor);
  });
  return entries;
}

void claim_module(const ModuleParts& module, const ReadContext& context, std::vector<Weight>* weights,
                  std::vector<bool>* used) {
  used->assign(module.parts.size(), false);
  for (const Convention* convention : conventions()) {
    convention->claim(module, context, weights, used);
    if (std::find(used->begin(), used->end(), false) == used->end()) return;
  }
  for (size_t i = 0; i < module.parts.size(); ++i) {
    if ((*used)[i]) continue;
    const StoredTensor& tensor = context.checkpoint->tensors()[module.parts[i].second];
    context.findings->push_back({Severity::kError,
                                 "unsupported",
                                 context.checkpoint->file_of(tensor),
                                 tensor.name,
                                 "no known convention explains this tensor; export the checkpoint in a plain layout",
                                 {{"dtype", std::string(dtype_name(tensor.dtype))}}});
  }
}

std::vector<Weight> claim_all(const Checkpoint& checkpoint, const ReadContext& context) {
  const std::vector<Entry> entries = sorted_entries(checkpoint);
  std::vector<Weight> weights;
  weights.reserve(entries.size());
  std::vector<std::pair<std::string_view, uint32_t>> parts;
  std::vector<bool> used;
  for (size_t begin = 0; begin < entries.size();) {
    parts.clear();
    size_t end = begin;
    for (; end < entries.size() && entries[end].module == entries[begin].module; ++end) {
      parts.emplace_back(entries[end].suffix, entries[end].tensor);
    }
    claim_module({entries[begin].module, parts}, context, &weights, &used);
    begin = end;
  }
  return weights;
}

// What the settings say against what is stored. The stored tensors decide; whoever wrote the settings should know.
void check_contradictions(const QuantHints& hints, const Checkpoint& checkpoint, const std::vector<Weight>& weights,
                          Findings* findings) {
  std::map<const Convention*, const Weight*> stored;
  for (const Weight& weight : weights) {
    if (!weight.convention->methods().empty()) stored.emplace(weight.convention, &weight);
  }
  const auto explained = [&stored](const std::string& method) {
    if (method.empty()) return true;
    return std::any_of(stored.begin(), stored.end(), [&method](const auto& entry) {
      const auto methods = entry.first->methods();
      return std::find(methods.begin(), methods.end(), method) != methods.end();
    });
  };
  // A refused module has been reported; that its settings explain no weight follows from it.
  const bool unexplained = !explained(hints.method) && !(stored.empty() && has_error(*findings));
  if (hints.other_source.empty() && !unexplained) return;
  Finding finding{Severity::kWarning, "config-contradiction", hints.source, "", "", {}};
  const auto say = [&finding](const std::string& file, const std::string& method, const std::string& algorithm) {
    if (!file.empty()) finding.values.emplace_back(file, algorithm.empty() ? method : method + " " + algorithm);
  };
  say(hints.source, hints.method, hints.algorithm);
  say(hints.other_source, hints.other_method, hints.other_algorithm);
  for (const auto& [convention, weight] : stored) {
    const StoredTensor& tensor = checkpoint.tensors()[weight->parts.front().tensor];
    finding.values.emplace_back("stored", std::string(convention->name()) + " " + weight->format.name + " (" +
                                              tensor.name + " " + std::string(dtype_name(tensor.dtype)) + ")");
  }
  if (stored.empty()) finding.values.emplace_back("stored", "no quantized weight");
  finding.message =
      "the quantization settings contradict the stored tensors, which decide how they are read; correct or remove the "
      "settings";
  findings->push_back(std::move(finding));
}

// A declared width that no stored weight of that method has.
void check_declared_bits(const std::vector<DeclaredSizes>& declared, const Checkpoint& checkpoint,
                         const std::vector<Weight>& weights, Findings* findings) {
  for (const DeclaredSizes& carrier : declared) {
    if (carrier.bits.empty() || carrier.method.empty()) continue;
    for (const Weight& weight : weights) {
      const auto methods = weight.convention->methods();
      if (std::find(methods.begin(), methods.end(), carrier.method) == methods.end()) continue;
      const uint64_t stored = element_bits(weight.format.element);
      if (std::find(carrier.bits.begin(), carrier.bits.end(), stored) != carrier.bits.end()) continue;
      const StoredTensor& tensor = checkpoint.tensors()[weight.parts.front().tensor];
      findings->push_back({Severity::kWarning,
                           "config-contradiction",
                           checkpoint.file_of(tensor),
                           tensor.name,
                           "the quantization settings declare another width than is stored, which decides how the "
                           "weight is read; correct the settings",
                           {{carrier.source, fmt::format("{} bits", fmt::join(carrier.bits, ", "))},
                            {"stored", fmt::format("{} bits ({})", stored, weight.format.name)}}});
      break;  // one says it
    }
  }
}

// Rows of a weight that is stored transposed, (K, N): the whole slice, turned.
EncodedMatrix read_transposed(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                              uint64_t rows) {
  if (!weight.format.is_dense()) {
    throw Error("a quantized weight that is stored transposed cannot be read")
        .tensor(weight.name)
        .value("format", weight.format.name)
        .way_out("start from the unquantized checkpoint");
  }
  Weight stored = weight;
  stored.row_order = RowOrder::kPlain;
  std::swap(stored.shape[stored.shape.size() - 2], stored.shape.back());
  const EncodedMatrix whole = weight.convention->read(checkpoint, stored, slice, 0, stored.rows());
  EncodedMatrix out = EncodedMatrix::make(weight.format, rows, weight.cols());
  const uint64_t width = element_bits(weight.format.element) / 8;
  const uint64_t stored_stride = weight.rows() * width;
  for (uint64_t r = 0; r < rows; ++r) {
    const std::byte* from = whole.codes.data() + (row_begin + r) * width;
    std::byte* to = out.codes.data() + r * weight.cols() * width;
    for (uint64_t k = 0; k < weight.cols(); ++k) std::memcpy(to + k * width, from + k * stored_stride, width);
  }
  return out;
}

void copy_row(const EncodedMatrix& from, uint64_t from_row, EncodedMatrix* to, uint64_t to_row) {
  const auto copy = [&](const auto& source, auto* target, uint64_t width) {
    if (width != 0)
      std::copy_n(source.begin() + static_cast<ptrdiff_t>(from_row * width), width,
                  target->begin() + static_cast<ptrdiff_t>(to_row * width));
  };
  copy(from.codes, &to->codes, from.format.code_row_bytes(from.cols));
  if (from.format.is_dense()) return;
  const uint64_t scales = from.format.scale_cols(from.cols);
  copy(from.scales, &to->scales, scales * from.format.scale_bytes());
  if (!from.zeros.empty()) copy(from.zeros, &to->zeros, scales);
  if (!from.mins.empty()) copy(from.mins, &to->mins, scales);
}

// Rotary pairs: row 2j + h of a stored head is row h * d/2 + j of the logical one (h = 0, 1). Reads the heads that the
// rows lie in.
EncodedMatrix read_rotary(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                          uint64_t rows) {
  const uint64_t head = weight.rotary_heads == 0 ? 0 : weight.rows() / weight.rotary_heads;
  const bool whole = head != 0 && head % 2 == 0 && weight.rows() % weight.rotary_heads == 0;
  if (!whole || (!weight.format.is_dense() && weight.format.block_rows != 1)) {
    throw Error("rows in rotary pairs do not go with this weight")
        .tensor(weight.name)
        .value("rows", weight.rows())
        .value("heads", weight.rotary_heads)
        .value("format", weight.format.name)
        .way_out("check the head count in the checkpoint's metadata");
  }
  const uint64_t first = row_begin / head * head;
  const uint64_t end = std::min(ceil_div(row_begin + rows, head) * head, weight.rows());
  const EncodedMatrix stored = weight.convention->read(checkpoint, weight, slice, first, end - first);
  EncodedMatrix out = EncodedMatrix::make(weight.format, rows, weight.cols());
  out.tensor_scale = stored.tensor_scale;
  out.column_group = stored.column_group;
  for (uint64_t r = 0; r < rows; ++r) {
    const uint64_t row = row_begin + r;
    const uint64_t in_head = row % head;
    const uint64_t pair = in_head % (head / 2) * 2 + in_head / (head / 2);
    copy_row(stored, row / head * head + pair - first, &out, r);
  }
  return out;
}

}  // namespace

WeightTable WeightTable::build(const Checkpoint& checkpoint, Findings* findings) {
  WeightTable table;
  table.hints_ = read_quant_hints(checkpoint, findings);
  const ReadContext context{&checkpoint, table.hints_, declared_sizes(checkpoint), findings};
  table.weights_ = claim_all(checkpoint, context);
  table.by_name_.reserve(table.weights_.size());
  for (uint32_t i = 0; i < table.weights_.size(); ++i) {
    const Weight& weight = table.weights_[i];
    const auto [at, fresh] = table.by_name_.emplace(weight.name, i);
    if (fresh) continue;
    const StoredTensor& tensor = checkpoint.tensors()[weight.parts.front().tensor];
    const StoredTensor& other = checkpoint.tensors()[table.weights_[at->second].parts.front().tensor];
    findings->push_back({Severity::kError,
                         "mixed",
                         checkpoint.file_of(tensor),
                         tensor.name,
                         "two stored tensors stand for one weight; remove the one that is out of date",
                         {{"weight", weight.name}, {"other", other.name}}});
  }
  check_contradictions(table.hints_, checkpoint, table.weights_, findings);
  check_declared_bits(context.declared, checkpoint, table.weights_, findings);
  return table;
}

void WeightTable::reindex() {
  by_name_.clear();
  for (uint32_t i = 0; i < weights_.size(); ++i) by_name_.emplace(weights_[i].name, i);
}

int64_t WeightTable::find(std::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? -1 : static_cast<int64_t>(at->second);
}

EncodedMatrix read_rows(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                        uint64_t rows) {
  NIBBLE_CHECK(slice < weight.slices() && row_begin <= weight.rows() && rows <= weight.rows() - row_begin);
  switch (weight.row_order) {
    case RowOrder::kTransposed: return read_transposed(checkpoint, weight, slice, row_begin, rows);
    case RowOrder::kGgufRotaryPairs: return read_rotary(checkpoint, weight, slice, row_begin, rows);
    case RowOrder::kPlain: break;
  }
  return weight.convention->read(checkpoint, weight, slice, row_begin, rows);
}

std::vector<float> read_rows_f32(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice, uint64_t row_begin,
                                 uint64_t rows) {
  const EncodedMatrix encoded = read_rows(checkpoint, weight, slice, row_begin, rows);
  std::vector<float> out(encoded.rows * encoded.cols);
  decode(encoded, out);
  return out;
}

}  // namespace nibble
