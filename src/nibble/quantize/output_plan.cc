#include "nibble/quantize/output_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "nibble/base/check.h"
#include "nibble/base/checked_math.h"
#include "nibble/base/error.h"
#include "nibble/numerics/quantizer.h"
#include "nibble/numerics/recast.h"
#include "nibble/quantize/expert_form.h"
#include "nibble/quantize/plan_notes.h"

namespace nibble {
namespace {

uint64_t leading_product(const std::vector<uint64_t>& shape, size_t trailing) {
  return std::accumulate(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(std::min(trailing, shape.size())),
                         uint64_t{1}, std::multiplies<>());
}

// What a tensor takes in a header, at most: its offsets are not known yet.
uint64_t header_bytes(const TensorDecl& tensor) {
  constexpr std::string_view kKeys = R"("":{"dtype":"F8_E4M3","shape":[],"data_offsets":[,]},)";
  constexpr uint64_t kNumber = 20;  // digits of 64 bits
  uint64_t bytes = kKeys.size() + 2 * kNumber;
  for (const char c : tensor.name) bytes += static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\' ? 6u : 1u;
  for (const uint64_t dim : tensor.shape) bytes += std::to_string(dim).size() + 1;
  return bytes;
}

// Does `layout` belong to the source's own way of writing `format`?
const Convention* source_layout(const Model& model, const Format& format) {
  std::map<const Convention*, uint64_t> votes;
  for (const Weight& weight : model.table.weights()) {
    if (!weight.format.is_dense()) votes[weight.convention] += weight.elements();
  }
  const Convention* best = nullptr;
  uint64_t most = 0;
  for (const auto& [convention, elements] : votes) {
    if (elements > most && convention->can_write(format)) {
      best = convention;
      most = elements;
    }
  }
  return best;
}

const Convention* choose_layout(const Model& model, const QuantizeRequest& request) {
  if (request.format.is_dense()) return nullptr;
  if (!request.layout.empty()) return &parse_layout(request.layout, request.format);
  // That library's bytes mean its layout too, where it has one for the format.
  const std::string_view library = library_name(request.bit_exact);
  for (const Convention* convention : conventions()) {
    if (convention->name() == library && convention->can_write(request.format)) return convention;
  }
  if (const Convention* own = source_layout(model, request.format)) return own;
  for (const Convention* convention : conventions()) {
    // A family may have its own layout for the format even in 16 bits (gpt-oss).
    if (model.family != nullptr && convention->can_write(request.format) &&
        convention->is_own_layout_of(model.family->name(), request.format))
      return convention;
  }
  return &parse_layout(kDefaultLayout, request.format);
}

ExpertForm native_form(const Model& model) {
  if (model.family == nullptr) return ExpertForm::kAsSource;
  ExpertForm form = ExpertForm::kPerExpert;
  model.family->inventory(model.spec, [&form](ParamSpec&& param) {
    if (param.role == Role::kRoutedExpert && param.fusion == Fusion::kInterleaved) form = ExpertForm::kFusedInterleaved;
  });
  return form;
}

bool same_codes(const Format& a, const Format& b) {
  return a.element == b.element && a.block_rows == b.block_rows && a.block_cols == b.block_cols && a.zero == b.zero &&
         a.two_level == b.two_level && (a.scale == ScaleType::kE8M0) == (b.scale == ScaleType::kE8M0);
}

class Planner {
 public:
  Planner(const Checkpoint& source, const Model& model, const QuantizeRequest& request)
      : source_(source), model_(model), request_(request) {}

  OutputPlan run() {
    if (model_.table.weights().empty())
      throw Error("the source holds no tensors")
          .file(source_.path().string())
          .way_out("name the folder or file that holds the weights");
    const auto decisions = decide(model_, request_);
    plan_.layout = choose_layout(model_, request_);
    plan_.model_dtype = model_dtype();
    const bool forms = model_.family != nullptr;
    const ExpertForm native = forms ? native_form(model_) : ExpertForm::kAsSource;
    const ExpertForm form = forms && plan_.layout != nullptr ? plan_.layout->expert_form(model_.family_name) : native;
    const ExpertForm kept = model_.from_gguf ? native : ExpertForm::kAsSource;
    plan_.outs = arrange_outputs(model_, {form, kept, &decisions});
    refuse_illegal_shapes();
    refuse_undecodable();
    for (OutWeight& out : plan_.outs) route(out);
    refuse_impossible_options();
    make_units();
    plan_.notes = plan_notes(plan_, model_, request_);
    return std::move(plan_);
  }

 private:
  const Weight& first_source(const OutWeight& out) const { return model_.table.weights()[out.pieces.front().weight]; }

  // The type of the model's weights: what 16-bit scales and decoded weights are stored in.
  Element model_dtype() const {
    if (request_.format.is_dense()) return request_.format.element;
    std::map<Element, uint64_t> votes;
    for (const Weight& weight : model_.table.weights()) {
      if (weight.format.is_dense() && !weight.opaque && weight.shape.size() >= 2)
        votes[weight.format.element] += weight.elements();
    }
    Element best = Element::kBF16;
    uint64_t most = 0;
    for (const auto& [element, elements] : votes) {
      if (elements > most && (element == Element::kBF16 || element == Element::kF16 || element == Element::kF32)) {
        best = element;
        most = elements;
      }
    }
    // Quantized sources keep a few float32 tensors; their weights mean BF16.
    return best == Element::kF32 && source_.container() == Container::kGguf ? Element::kBF16 : best;
  }

  void refuse_illegal_shapes() const {
    if (request_.format.is_dense()) return;
    std::string others;
    const OutWeight* first = nullptr;
    std::optional<ShapeProblem> problem;
    uint64_t count = 0;
    for (const OutWeight& out : plan_.outs) {
      if (out.action != Action::kQuantized || first_source(out).elements() == 0) continue;
      auto found = check_shape(request_.format, out.rows(), out.cols());
      if (!found) continue;
      ++count;
      if (first == nullptr) {
        first = &out;
        problem = std::move(found);
      } else if (count <= 8) {
        others += fmt::format("{}{} (K {}: {})", others.empty() ? "" : "; ", out.name, out.cols(),
                              fmt::join(found->legal_groups, " "));
      }
    }
    if (first == nullptr) return;
    Error error(problem->reason);
    error.file(source_.file_of(source_.tensors()[first_source(*first).parts.front().tensor])).tensor(first->name);
    error.value("N", first->rows()).value("K", first->cols()).value("block", request_.format.block_cols);
    error.value("legal_groups", problem->legal_groups.empty()
                                    ? std::string("none")
                                    : fmt::format("{}", fmt::join(problem->legal_groups, " ")));
    error.value("tensors_affected", count);
    if (!others.empty()) error.value("others", others);
    if (!problem->legal_groups.empty()) error.way_out("choose a legal group size");
    throw error.way_out(fmt::format("leave it in 16 bits: --keep name:{}", first_source(*first).name));
  }

  // Integers and booleans are copied as they are. What only its own layout can hold would be copied into one that says
  // nothing of it: block types of GGUF in safetensors, codes that lack the factors stored beside them. The convention
  // knows why it does not decode them, and what to do.
  void refuse_undecodable() const {
    for (const Weight& weight : model_.table.weights()) {
      if (!weight.opaque || weight.elements() == 0) continue;
      const bool block = source_.tensors()[weight.parts.front().tensor].dtype == Dtype::kGgufBlock;
      if (block || weight.parts.size() > 1) weight.convention->read(source_, weight, 0, 0, 1);
    }
  }

  void route(OutWeight& out) {
    const Weight& weight = first_source(out);
    out.format = weight.format;
    if (weight.elements() == 0) return route_raw(out, weight);
    if (out.action != Action::kQuantized) return route_kept(out, weight);
    if (request_.format.is_dense()) return route_dense(out, request_.format);
    out.convention = plan_.layout;
    out.format = request_.format;
    out.format.scale = stored_scale(out.format.scale);
    const bool movable = weight.format.element == out.format.element && same_codes(weight.format, out.format) &&
                         weight.row_order == RowOrder::kPlain && !weight.opaque && movable_rows(out, weight);
    if (movable && (!request_.rule_given || request_.unify_scales)) {
      out.route = Route::kMove;
      out.action = Action::kRecast;
      out.format.scale = weight.format.scale;
      out.reason += request_.unify_scales && out.format.two_level
                        ? "; already in this format, second-level scales unified"
                        : "; already in this format, bytes and scales kept";
    } else if (!request_.rule_given && exact_recast(weight.format, out.format) != nullptr &&
               weight.row_order == RowOrder::kPlain) {
      out.route = Route::kRecast;
      out.action = Action::kRecast;
      out.reason += fmt::format("; {} is re-expressed exactly", weight.format.name);
    } else {
      out.route = Route::kEncode;
      if (!weight.format.is_dense()) out.reason += fmt::format("; decoded from {}", weight.format.name);
    }
    if (out.format.two_level) out.fusion = fusion_key(out.param);
    if (out.convention->one_second_scale(out.request(plan_.model_dtype))) {
      out.one_scale = true;
      out.fusion = out.name;
    }
  }

  // A target is not begun with options that its first weight would refuse: a journal of them would stand in the way of
  // better ones.
  void refuse_impossible_options() const {
    for (const OutWeight& out : plan_.outs) {
      if (out.route != Route::kEncode) continue;
      const SecondLevel level = out.format.two_level ? out.convention->second_level() : SecondLevel::kNone;
      const Quantizer checked({out.format, request_.rule, request_.bit_exact, level});
      return;
    }
  }

  // Codes can be moved row by row unless a scale covers several rows that would be torn apart.
  bool movable_rows(const OutWeight& out, const Weight& weight) const {
    const bool whole = std::all_of(out.pieces.begin(), out.pieces.end(), [](const Piece& p) {
      return p.row_begin == 0 && p.row_stride == 1 && p.out_begin == 0 && p.out_stride == 1;
    });
    return whole || weight.format.block_rows == 1;
  }

  // 16-bit scales have the model's type; compressed-tensors stores those of bytes in it as well.
  ScaleType stored_scale(ScaleType scale) const {
    const bool of_model_type =
        scale == ScaleType::kBF16 || (scale == ScaleType::kF32 && request_.bit_exact == BitExact::kCompressedTensors);
    if (!of_model_type) return scale;
    return plan_.model_dtype == Element::kF16   ? ScaleType::kF16
           : plan_.model_dtype == Element::kF32 ? ScaleType::kF32
                                                : ScaleType::kBF16;
  }

  void route_kept(OutWeight& out, const Weight& weight) {
    const bool reshaped = out.pieces.size() != weight.slices() || out.name != weight.name || out.shape != weight.shape;
    // The configuration describes one scheme: what is stored otherwise cannot stay as it is.
    const bool foreign =
        !weight.opaque && !weight.format.is_dense() &&
        (plan_.layout == nullptr || weight.convention != plan_.layout || !same_codes(weight.format, request_.format));
    const bool gguf = source_.container() == Container::kGguf;
    if (!weight.opaque &&
        (foreign || reshaped || gguf || weight.row_order == RowOrder::kGgufRotaryPairs || out.vector_rows)) {
      Format target = parse_format(element_name(foreign || gguf ? plan_.model_dtype : weight.format.element));
      if (foreign)
        out.reason +=
            fmt::format("; decoded from {} to {}, since one output holds one scheme", weight.format.name, target.name);
      return route_dense(out, target);
    }
    route_raw(out, weight);
  }

  void route_raw(OutWeight& out, const Weight& weight) {
    if (out.action == Action::kQuantized) {
      out.action = Action::kKept;
      out.reason += "; it has no elements";
    }
    out.route = Route::kRawCopy;
    out.pieces.resize(1);
    // Split expert stacks may make several outputs of one source; raw copies are one to one.
    for (const Part& part : weight.parts) out.raw_tensors.push_back(part.tensor);
  }

  void route_dense(OutWeight& out, const Format& target) {
    const Weight& weight = first_source(out);
    out.route = Route::kDense;
    out.format = target;
    out.action = weight.format.is_dense() && weight.format.element == target.element ? Action::kKept : Action::kRecast;
    out.transposed = out.param.transposed_when_dense && out.shape.size() == 3;
  }

  // Joins outputs that share a source weight or a fusion key.
  std::vector<uint32_t> unit_of() const {
    std::vector<uint32_t> root(plan_.outs.size());
    std::iota(root.begin(), root.end(), 0u);
    const auto find = [&root](uint32_t i) {
      while (root[i] != i) i = root[i] = root[root[i]];
      return i;
    };
    // The smaller index stays the root, so that a unit stands where its first output stands.
    const auto join = [&](uint32_t a, uint32_t b) {
      a = find(a);
      b = find(b);
      root[std::max(a, b)] = std::min(a, b);
    };
    std::unordered_map<uint32_t, uint32_t> by_weight;
    std::unordered_map<std::string, uint32_t> by_fusion;
    for (uint32_t i = 0; i < plan_.outs.size(); ++i) {
      for (const Piece& piece : plan_.outs[i].pieces) join(by_weight.try_emplace(piece.weight, i).first->second, i);
      if (!plan_.outs[i].fusion.empty()) join(by_fusion.try_emplace(plan_.outs[i].fusion, i).first->second, i);
    }
    for (uint32_t i = 0; i < root.size(); ++i) root[i] = find(i);
    return root;
  }

  void make_units() {
    const auto roots = unit_of();
    std::map<uint32_t, Unit> units;  // by first output
    std::set<uint32_t> seen;
    for (uint32_t i = 0; i < plan_.outs.size(); ++i) {
      Unit& unit = units[roots[i]];
      unit.outs.push_back(i);
      for (const PartDecl& part : parts_of(plan_, plan_.outs[i], source_)) {
        unit.bytes_out += part.tensor.bytes();
        unit.header_bytes += header_bytes(part.tensor);
      }
      for (const Piece& piece : plan_.outs[i].pieces) {
        if (seen.insert(piece.weight).second)
          unit.bytes_in += model_.table.weights()[piece.weight].stored_bytes(source_);
      }
    }
    refuse_double_names();
    plan_.metadata = {{"format", "pt"},
                      {"nibble", kToolVersion},
                      {"nibble.format", request_.format.name},
                      {"nibble.rule", request_.rule.rule == nullptr ? "" : request_.rule.name()}};
    std::vector<std::vector<Unit>> groups;
    const uint64_t empty_bytes = plan_safetensors({}, plan_.metadata).file_bytes + 8;  // padded again when filled
    uint64_t filled = 0;
    for (auto& [first, unit] : units) {
      const uint64_t bytes = unit.bytes_out + unit.header_bytes;
      if (groups.empty() || filled + bytes > request_.shard_bytes) {
        groups.emplace_back();
        filled = empty_bytes;
      }
      filled += bytes;
      plan_.bytes_in += unit.bytes_in;
      groups.back().push_back(std::move(unit));
    }
    for (uint32_t s = 0; s < groups.size(); ++s) add_shard(std::move(groups[s]), s, groups.size());
  }

  // Hashes first: a set of half a million names is larger than the plan.
  bool may_have_double_names() const {
    std::vector<size_t> hashes;
    for (const OutWeight& out : plan_.outs) {
      for (const PartDecl& part : parts_of(plan_, out, source_))
        hashes.push_back(std::hash<std::string>()(part.tensor.name));
    }
    std::sort(hashes.begin(), hashes.end());
    return std::adjacent_find(hashes.begin(), hashes.end()) != hashes.end();
  }

  void refuse_double_names() const {
    if (!may_have_double_names()) return;
    std::unordered_set<std::string> names;
    for (const OutWeight& out : plan_.outs) {
      for (const PartDecl& part : parts_of(plan_, out, source_)) {
        if (!names.insert(part.tensor.name).second)
          throw Error("two outputs would have the same name")
              .tensor(part.tensor.name)
              .way_out("rename one of them in the source");
      }
    }
  }

  void add_shard(std::vector<Unit> units, uint32_t index, size_t count) {
    OutShard shard;
    shard.file_name =
        count == 1 ? "model.safetensors" : fmt::format("model-{:05}-of-{:05}.safetensors", index + 1, count);
    for (const Unit& unit : units) {
      shard.bytes_in += unit.bytes_in;
      for (const uint32_t out : unit.outs) plan_.outs[out].shard = index;
    }
    shard.units = std::move(units);
    place_parts(shard);
    plan_.bytes_out += shard.file_bytes;
    plan_.shards.push_back(std::move(shard));
  }

  void place_parts(OutShard& shard) {
    const SafetensorsLayout layout = shard_layout(plan_, shard, source_);
    shard.file_bytes = layout.file_bytes;
    std::unordered_map<std::string_view, uint64_t> offsets;
    for (size_t t = 0; t < layout.tensors.size(); ++t) offsets[layout.tensors[t].name] = layout.offsets[t];
    for (const Unit& unit : shard.units) {
      for (const uint32_t out : unit.outs) {
        for (const PartDecl& part : parts_of(plan_, plan_.outs[out], source_))
          plan_.outs[out].part_offsets.push_back(offsets.at(part.tensor.name));
      }
    }
  }

  const Checkpoint& source_;
  const Model& model_;
  const QuantizeRequest& request_;
  OutputPlan plan_;
};

}  // namespace

uint64_t OutWeight::slices() const { return vector_rows ? leading_product(shape, 1) : leading_product(shape, 2); }

uint64_t OutWeight::rows() const {
  if (vector_rows) return shape.back();
  return shape.size() >= 2 ? shape[shape.size() - 2] : 1;
}

uint64_t OutWeight::cols() const {
  if (vector_rows) return 1;
  return shape.empty() ? 1 : shape.back();
}

WriteRequest OutWeight::request(Element model_dtype) const {
  return {name,
          format,
          shape,
          model_dtype,
          format.two_level ? convention->second_level() : SecondLevel::kNone,
          param.transposed_when_dense && shape.size() == 3};
}

std::vector<PartDecl> parts_of(const OutputPlan& plan, const OutWeight& out, const Checkpoint& source) {
  if (out.route == Route::kRawCopy) {
    std::vector<PartDecl> parts;
    for (const uint32_t raw : out.raw_tensors) {
      const StoredTensor& tensor = source.tensors()[raw];
      parts.push_back({PartKind::kCodes, {tensor.name, tensor.dtype, tensor.shape}});
    }
    return parts;
  }
  if (out.route != Route::kDense) return out.convention->declare(out.request(plan.model_dtype));
  auto shape = out.shape;
  if (out.transposed) std::swap(shape[1], shape[2]);
  return {{PartKind::kCodes, {out.name, dtype_of(out.format.element), shape}}};
}

SafetensorsLayout shard_layout(const OutputPlan& plan, const OutShard& shard, const Checkpoint& source) {
  std::vector<TensorDecl> tensors;
  for (const Unit& unit : shard.units) {
    for (const uint32_t out : unit.outs) {
      for (PartDecl& part : parts_of(plan, plan.outs[out], source)) tensors.push_back(std::move(part.tensor));
    }
  }
  // In the order in which they are made, so that the hash of the file follows the writers from front to back.
  return plan_safetensors(std::move(tensors), plan.metadata, TensorOrder::kAsGiven);
}

OutputPlan plan_output(const Checkpoint& source, const Model& model, const QuantizeRequest& request) {
  return Planner(source, model, request).run();
}

}  // namespace nibble
