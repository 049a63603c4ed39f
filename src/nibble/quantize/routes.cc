#include "nibble/quantize/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/checkpoint/act_order.h"
#include "nibble/numerics/recast.h"

namespace nibble {
namespace {

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

bool same_codes(const Format& a, const Format& b) {
  return a.element == b.element && a.block_rows == b.block_rows && a.block_cols == b.block_cols && a.zero == b.zero &&
         a.two_level == b.two_level && (a.scale == ScaleType::kE8M0) == (b.scale == ScaleType::kE8M0);
}

class Router {
 public:
  Router(const Checkpoint& source, const Model& model, const QuantizeRequest& request, OutputPlan* plan)
      : source_(source), model_(model), request_(request), plan_(*plan) {}

  void run() {
    refuse_illegal_shapes();
    refuse_undecodable();
    for (OutWeight& out : plan_.outs) route(out);
    refuse_impossible_options();
  }

 private:
  const Weight& first_source(const OutWeight& out) const { return nibble::first_source(model_, out); }

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
    // Whatever the rule: it would choose scales again for weights that have been rounded, and only add an error.
    if (is_movable(out, weight) && !held_up_by_order(out)) {
      out.route = Route::kMove;
      out.action = Action::kRecast;
      out.format.scale = weight.format.scale;
      add_reason(out, request_.unify_scales && out.format.two_level
                          ? "already in this format, second-level scales unified"
                          : "already in this format, bytes and scales kept");
    } else if (!request_.rule_given && exact_recast(weight.format, out.format) != nullptr &&
               weight.row_order == RowOrder::kPlain && under_one_second_level(out, weight)) {
      out.route = Route::kRecast;
      out.action = Action::kRecast;
      add_reason(out, fmt::format("{} is re-expressed exactly{}", weight.format.name,
                                  weight.format.two_level ? " where its block scales allow it" : ""));
    } else {
      out.route = Route::kEncode;
      if (!weight.format.is_dense())
        add_reason(out, fmt::format("decoded from {}{}", weight.format.name, order_of(out)));
    }
    // Asked again, since the type of the scales is another one now: what a layout does not know it would declare
    // wrongly.
    NIBBLE_CHECK(out.convention->can_write(out.format));
    out.one_scale = out.convention->one_second_scale(out.request(plan_.model_dtype));
    if (out.one_scale) {
      out.fusion = fusion_of(out.name);
    } else if (out.format.two_level) {
      out.fusion = fusion_of(fusion_key(out.param.projection, out.name, out.shape.size()));
    }
  }

  uint32_t fusion_of(const std::string& key) {
    if (key.empty()) return 0;
    return fusions_.try_emplace(key, static_cast<uint32_t>(fusions_.size() + 1)).first->second;
  }

  void add_reason(OutWeight& out, std::string_view more) {
    out.reason = plan_.reasons.keep(fmt::format("{}; {}", out.reason, more));
  }

  // A target is not begun with options that its first weight would refuse: a journal of them would stand in the way of
  // better ones.
  void refuse_impossible_options() const {
    for (const OutWeight& out : plan_.outs) {
      if (out.route != Route::kEncode) continue;
      const SecondLevel level = out.format.two_level ? out.convention->second_level() : SecondLevel::kNone;
      return check_can_round(request_, out.format, level);
    }
  }

  bool is_movable(const OutWeight& out, const Weight& weight) const {
    Format moved = out.format;
    moved.scale = weight.format.scale;  // scales are taken over in the type that they are stored in
    return same_codes(weight.format, out.format) && weight.row_order == RowOrder::kPlain && !weight.opaque &&
           movable_rows(out, weight) && out.convention->can_write(moved);
  }

  // Are columns of one of its sources grouped out of order? No layout is written with an index of groups, and codes
  // under the scales of their neighbours would be other weights. Indexes are read, since they mostly say nothing.
  bool act_ordered(const OutWeight& out) {
    return std::ranges::any_of(out.pieces, [this](const Piece& piece) {
      const auto [known, added] = act_order_.try_emplace(piece.weight, false);
      if (added) known->second = has_act_order(source_, model_.table.weights()[piece.weight]);
      return known->second;
    });
  }

  // Counts those it holds up.
  bool held_up_by_order(const OutWeight& out) {
    const bool found = act_ordered(out);
    plan_.act_ordered += found ? 1 : 0;
    return found;
  }

  std::string_view order_of(const OutWeight& out) {
    return act_ordered(out) ? ", whose columns are grouped out of order (act-order)" : "";
  }

  // Codes can be moved row by row unless a scale covers several rows that would be torn apart.
  bool movable_rows(const OutWeight& out, const Weight& weight) const {
    const bool whole = std::all_of(out.pieces.begin(), out.pieces.end(), [](const Piece& p) {
      return p.row_begin == 0 && p.row_stride == 1 && p.out_begin == 0 && p.out_stride == 1;
    });
    return whole || weight.format.block_rows == 1;
  }

  // Matrices of a two-level format are joined only by decoding them: each has a second level of its own.
  static bool under_one_second_level(const OutWeight& out, const Weight& weight) {
    if (!weight.format.two_level) return true;
    return std::adjacent_find(out.pieces.begin(), out.pieces.end(), [](const Piece& a, const Piece& b) {
             return a.out_slice == b.out_slice && (a.weight != b.weight || a.slice != b.slice);
           }) == out.pieces.end();
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
    const bool foreign = !weight.opaque && !weight.format.is_dense() &&
                         (plan_.layout == nullptr || weight.convention != plan_.layout ||
                          !same_codes(weight.format, request_.format) || held_up_by_order(out));
    const bool gguf = source_.container() == Container::kGguf;
    if (!weight.opaque &&
        (foreign || reshaped || gguf || weight.row_order == RowOrder::kGgufRotaryPairs || out.vector_rows)) {
      Format target = parse_format(element_name(foreign || gguf ? plan_.model_dtype : weight.format.element));
      if (foreign)
        add_reason(out, fmt::format("decoded from {}{} to {}, since one output holds one scheme", weight.format.name,
                                    order_of(out), target.name));
      return route_dense(out, target);
    }
    route_raw(out, weight);
  }

  void route_raw(OutWeight& out, const Weight& weight) {
    if (out.action == Action::kQuantized) {
      out.action = Action::kKept;
      add_reason(out, "it has no elements");
    }
    out.route = Route::kRawCopy;
    out.pieces.resize(1);
    // Split expert stacks may make several outputs of one source; raw copies are one to one.
    for (const Part& part : weight.parts) {
      // Of understood weights only those get here whose index says nothing, and readers of the configuration that is
      // written expect none.
      if (part.kind != PartKind::kGroupIndex) out.raw_tensors.push_back(part.tensor);
    }
  }

  void route_dense(OutWeight& out, const Format& target) {
    const Weight& weight = first_source(out);
    out.route = Route::kDense;
    out.format = target;
    out.action = weight.format.is_dense() && weight.format.element == target.element ? Action::kKept : Action::kRecast;
    out.transposed = out.param.transposed_when_dense && out.shape.size() == 3;
  }

  const Checkpoint& source_;
  const Model& model_;
  const QuantizeRequest& request_;
  OutputPlan& plan_;
  std::unordered_map<std::string, uint32_t> fusions_;  // by key
  std::unordered_map<uint32_t, bool> act_order_;       // by weight
};

}  // namespace

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

// The type of the model's weights: what 16-bit scales and decoded weights are stored in.
Element model_dtype_of(const Checkpoint& source, const Model& model, const QuantizeRequest& request) {
  if (request.format.is_dense()) return request.format.element;
  std::map<Element, uint64_t> votes;
  for (const Weight& weight : model.table.weights()) {
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
  return best == Element::kF32 && source.container() == Container::kGguf ? Element::kBF16 : best;
}

void choose_routes(const Checkpoint& source, const Model& model, const QuantizeRequest& request, OutputPlan* plan) {
  Router(source, model, request, plan).run();
}

}  // namespace nibble
