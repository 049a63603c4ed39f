#include "nibble/quantize/output_plan.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "nibble/base/error.h"
#include "nibble/checkpoint/name_index.h"
#include "nibble/quantize/expert_form.h"
#include "nibble/quantize/plan_notes.h"
#include "nibble/quantize/routes.h"
#include "nibble/quantize/shard_names.h"

namespace nibble {
namespace {

uint64_t leading_product(const std::vector<uint64_t>& shape, size_t trailing) {
  return std::accumulate(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(std::min(trailing, shape.size())),
                         uint64_t{1}, std::multiplies<>());
}

// How the family's own releases hold routed experts.
ExpertForm released_form(const Model& model) {
  if (model.family == nullptr) return ExpertForm::kAsSource;
  return native_form(model.spec) == ExpertStorage::kInterleaved ? ExpertForm::kFusedInterleaved
                                                                : ExpertForm::kPerExpert;
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
    const auto decisions = decide(model_, request_, &plan_.reasons);
    plan_.layout = choose_layout(model_, request_);
    plan_.model_dtype = model_dtype_of(source_, model_, request_);
    const ExpertForm native = released_form(model_);
    const bool of_layout = model_.family != nullptr && plan_.layout != nullptr;
    const ExpertForm form = of_layout ? plan_.layout->expert_form(model_.family_name) : native;
    const ExpertForm kept = model_.from_gguf ? native : ExpertForm::kAsSource;
    plan_.outs = arrange_outputs(model_, {form, kept, &decisions});
    choose_routes(source_, model_, request_, &plan_);
    auto units = make_units();
    refuse_double_names();
    fill_shards(std::move(units));
    plan_.notes = plan_notes(plan_, model_, request_);
    return std::move(plan_);
  }

 private:
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
    constexpr uint32_t kNone = UINT32_MAX;
    std::vector<uint32_t> by_weight(model_.table.weights().size(), kNone);
    std::unordered_map<uint32_t, uint32_t> by_fusion;
    for (uint32_t i = 0; i < plan_.outs.size(); ++i) {
      for (const Piece& piece : plan_.outs[i].pieces) {
        uint32_t& first = by_weight[piece.weight];
        if (first == kNone) first = i;
        join(first, i);
      }
      if (plan_.outs[i].fusion != 0) join(by_fusion.try_emplace(plan_.outs[i].fusion, i).first->second, i);
    }
    for (uint32_t i = 0; i < root.size(); ++i) root[i] = find(i);
    return root;
  }

  // By first output.
  std::vector<Unit> make_units() const {
    const auto roots = unit_of();
    std::vector<Unit> units;
    std::vector<uint32_t> number(roots.size());  // of the unit that begins with an output
    std::vector<bool> seen(model_.table.weights().size());
    for (uint32_t i = 0; i < plan_.outs.size(); ++i) {
      if (roots[i] == i) {
        number[i] = static_cast<uint32_t>(units.size());
        units.emplace_back();
      }
      Unit& unit = units[number[roots[i]]];
      unit.outs.push_back(i);
      for (const PartDecl& part : parts_of(plan_, plan_.outs[i], source_)) {
        unit.bytes_out += part.tensor.bytes();
        unit.header_bytes += part.tensor.header_bytes();
      }
      for (const Piece& piece : plan_.outs[i].pieces) {
        if (!seen[piece.weight]) unit.bytes_in += model_.table.weights()[piece.weight].stored_bytes(source_);
        seen[piece.weight] = true;
      }
    }
    return units;
  }

  void fill_shards(std::vector<Unit> units) {
    plan_.metadata = {{"format", "pt"},
                      {"nibble", kToolVersion},
                      {"nibble.format", request_.format.name},
                      {"nibble.rule", request_.rule.rule == nullptr ? "" : request_.rule.name()}};
    std::vector<std::vector<Unit>> groups;
    const uint64_t empty_bytes = plan_safetensors({}, plan_.metadata).file_bytes + 8;  // padded again when filled
    uint64_t filled = 0;
    for (Unit& unit : units) {
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
    shard.file_name = shard_name(index, count);
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
    SafetensorsLayout layout = shard_layout(plan_, shard, source_);
    layout.header = {};  // makes room for the index
    shard.file_bytes = layout.file_bytes;
    NameIndex names;
    names.reserve(layout.tensors.size());
    for (const TensorDecl& tensor : layout.tensors) names.insert(tensor.name);
    for (const Unit& unit : shard.units) {
      for (const uint32_t out : unit.outs) {
        for (const PartDecl& part : parts_of(plan_, plan_.outs[out], source_))
          plan_.outs[out].part_offsets.push_back(layout.offsets[static_cast<size_t>(names.find(part.tensor.name))]);
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

const Weight& first_source(const Model& model, const OutWeight& out) {
  return model.table.weights()[out.pieces.front().weight];
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
