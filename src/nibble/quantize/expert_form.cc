#include "nibble/quantize/expert_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/base/strings.h"

namespace nibble {
namespace {

bool is_expert_projection(Projection p) {
  return p == Projection::kGate || p == Projection::kUp || p == Projection::kDown || p == Projection::kGateUp;
}

// Expert weights and the biases that belong to them.
bool is_expert_part(const ParamKind& param) {
  const bool of_expert = param.expert >= 0 || param.fusion != Fusion::kNone;
  return param.layer >= 0 && is_expert_projection(param.projection) && of_expert &&
         (param.role == Role::kRoutedExpert || param.role == Role::kBias);
}

bool is_stack(const ParamKind& param) { return param.expert < 0; }

class Arranger {
 public:
  Arranger(const Model& model, const FormRequest& request) : model_(model), request_(request) {
    for (size_t i = 0; i < model.params.size(); ++i) {
      const ParamSpec& param = model.params[i];
      if (param.role == Role::kRoutedExpert && decision(i).selected) selected_layers_.insert(param.layer);
    }
  }

  std::vector<OutWeight> run() {
    outs_.reserve(model_.params.size());
    for (uint32_t i = 0; i < model_.params.size(); ++i) {
      const ParamSpec& param = model_.params[i];
      const ExpertForm form = is_expert_part(param) ? form_of_layer(param.layer) : ExpertForm::kAsSource;
      if (form == ExpertForm::kAsSource || already_in_form(param, form)) {
        outs_.push_back(same(i));
      } else if (form == ExpertForm::kPerExpert) {
        split(i);
      } else {
        fuse(i);
      }
    }
    check_fused_complete();
    mark_transposed();
    outs_.shrink_to_fit();
    return std::move(outs_);
  }

 private:
  const Decision& decision(size_t weight) const { return (*request_.decisions)[weight]; }
  const Weight& weight(size_t i) const { return model_.table.weights()[i]; }

  ExpertForm form_of_layer(int32_t layer) const {
    return selected_layers_.contains(layer) ? request_.form : request_.kept_form;
  }

  static bool already_in_form(const ParamSpec& param, ExpertForm form) {
    if (form == ExpertForm::kPerExpert) return !is_stack(param);
    return param.fusion == Fusion::kInterleaved || (is_stack(param) && param.projection == Projection::kDown);
  }

  OutWeight base(uint32_t i) const {
    OutWeight out;
    out.param = model_.params[i];
    out.name = weight(i).name;
    out.shape = weight(i).shape;
    out.reason = decision(i).reason;
    out.action = decision(i).selected ? Action::kQuantized : decision(i).known ? Action::kKept : Action::kCopied;
    return out;
  }

  OutWeight same(uint32_t i) const {
    OutWeight out = base(i);
    // Without elements a shape may claim any number of slices, or none.
    const uint64_t slices = weight(i).elements() == 0 ? 1 : weight(i).slices();
    for (uint64_t s = 0; s < slices; ++s) out.pieces.push_back({i, s, 0, 1, weight(i).rows(), s, 0, 1});
    return out;
  }

  // How rows of `projection` lie in a slice of source weight i: first row and stride.
  std::pair<uint64_t, uint64_t> rows_in(uint32_t i, Projection projection, uint64_t expert_rows) const {
    const ParamSpec& param = model_.params[i];
    if (param.projection != Projection::kGateUp) return {0, 1};
    const bool up = projection == Projection::kUp;
    if (param.fusion == Fusion::kInterleaved) return {up ? 1 : 0, 2};
    return {up ? expert_rows : 0, 1};
  }

  // Rows of one expert in a stack: the last dimension but one of a weight, the last one of a bias.
  uint64_t stack_rows(uint32_t i) const {
    const auto& shape = weight(i).shape;
    const size_t needed = model_.params[i].role == Role::kBias ? 2 : 3;
    if (shape.size() != needed) {
      throw Error("an expert stack has an unexpected rank")
          .tensor(weight(i).name)
          .value("rank", shape.size())
          .value("expected", needed)
          .way_out("run `nibble verify` on the source");
    }
    return shape[1];
  }

  void split(uint32_t i) {
    const ParamSpec& param = model_.params[i];
    const bool bias = param.role == Role::kBias;
    const bool pair = param.projection == Projection::kGateUp;
    const uint64_t all_rows = stack_rows(i);
    const uint64_t rows = pair ? all_rows / 2 : all_rows;
    for (uint64_t e = 0; e < weight(i).shape[0]; ++e) {
      const ExpertNames names = per_expert_names(model_.spec, param.layer, e);
      const std::vector<Projection> projections =
          pair ? std::vector{Projection::kGate, Projection::kUp} : std::vector{param.projection};
      for (const Projection projection : projections) {
        OutWeight out = base(i);
        const std::string& name = projection == Projection::kGate ? names.gate
                                  : projection == Projection::kUp ? names.up
                                                                  : names.down;
        out.name = bias ? bias_name(name) : name;
        out.param.projection = projection;
        out.param.expert = static_cast<int32_t>(e);
        out.param.fusion = Fusion::kNone;
        out.param.transposed_when_dense = false;
        out.vector_rows = bias;
        out.shape = bias ? std::vector{rows} : std::vector{rows, weight(i).shape[2]};
        const auto [first, stride] = rows_in(i, projection, rows);
        out.pieces = {{i, e, first, stride, rows, 0, 0, 1}};
        outs_.push_back(std::move(out));
      }
    }
  }

  static std::string bias_name(const std::string& weight_name) {
    constexpr std::string_view kTail = ".weight";
    NIBBLE_CHECK(ends_with(weight_name, kTail));
    return weight_name.substr(0, weight_name.size() - kTail.size()) + ".bias";
  }

  void fuse(uint32_t i) {
    const ParamSpec& param = model_.params[i];
    const bool bias = param.role == Role::kBias;
    const Projection target = param.projection == Projection::kDown ? Projection::kDown : Projection::kGateUp;
    const uint64_t rows = is_stack(param)
                              ? (param.projection == Projection::kGateUp ? stack_rows(i) / 2 : stack_rows(i))
                              : (bias ? weight(i).shape[0] : weight(i).rows());
    OutWeight& out = fused(i, target, rows);
    if ((out.action == Action::kQuantized) != decision(i).selected && !bias) {
      throw Error("an expert stack must be quantized whole or not at all in this layout")
          .tensor(weight(i).name)
          .value("stack", out.name)
          .way_out("select or keep whole layers")
          .way_out("--layout compressed-tensors");
    }
    const uint64_t first_slice = is_stack(param) ? 0 : static_cast<uint64_t>(param.expert);
    const uint64_t slices = is_stack(param) ? weight(i).shape[0] : 1;
    for (uint64_t s = 0; s < slices; ++s) {
      const auto add = [&](Projection projection) {
        const auto [first, stride] = rows_in(i, projection, rows);
        const bool pair = target == Projection::kGateUp;
        out.pieces.push_back({i, is_stack(param) ? s : 0, first, stride, rows, first_slice + s,
                              pair && projection == Projection::kUp ? 1u : 0u, pair ? 2u : 1u});
      };
      if (param.projection == Projection::kGateUp) {
        add(Projection::kGate);
        add(Projection::kUp);
      } else {
        add(param.projection);
      }
    }
  }

  // The output stack that source weight i goes into, made at its first use.
  OutWeight& fused(uint32_t i, Projection target, uint64_t expert_rows) {
    const ParamSpec& param = model_.params[i];
    const bool bias = param.role == Role::kBias;
    const auto [it, added] = fused_.try_emplace({param.layer, target, bias}, outs_.size());
    if (!added) return outs_[it->second];
    OutWeight out = base(i);
    out.name = fused_name(model_.spec, param.layer, target) + (bias ? "_bias" : "");
    out.param.projection = target;
    out.param.expert = -1;
    out.param.fusion = target == Projection::kGateUp ? Fusion::kInterleaved : Fusion::kStackedExperts;
    out.vector_rows = bias;
    const uint64_t rows = target == Projection::kGateUp ? 2 * expert_rows : expert_rows;
    out.shape = {model_.spec.experts, rows};
    if (!bias) out.shape.push_back(weight(i).cols());
    outs_.push_back(std::move(out));
    return outs_.back();
  }

  void check_fused_complete() {
    for (const auto& [key, index] : fused_) {
      OutWeight& out = outs_[index];
      std::sort(out.pieces.begin(), out.pieces.end(), [](const Piece& a, const Piece& b) {
        return std::tie(a.out_slice, a.out_begin) < std::tie(b.out_slice, b.out_begin);
      });
      uint64_t rows = 0;
      for (const Piece& piece : out.pieces) rows += piece.rows;
      const uint64_t wanted = out.shape[0] * out.shape[1];
      if (rows != wanted) {
        throw Error("experts are missing for a fused stack")
            .tensor(out.name)
            .value("rows_found", rows)
            .value("rows_needed", wanted)
            .way_out("run `nibble verify` on the source")
            .way_out("--layout compressed-tensors");
      }
    }
  }

  // A stack that comes from another form (single experts, GGUF) is written as the family's own dense stacks are.
  void mark_transposed() {
    const ExpertNaming& naming = model_.spec.expert_naming;
    if (naming.native != Fusion::kInterleaved || !naming.transposed) return;
    for (OutWeight& out : outs_) {
      if (form_of_layer(out.param.layer) != ExpertForm::kFusedInterleaved) continue;
      const bool stack = is_expert_part(out.param) && is_stack(out.param) && out.param.role == Role::kRoutedExpert &&
                         (out.param.fusion == Fusion::kInterleaved || out.param.projection == Projection::kDown);
      if (stack && out.shape.size() == 3) out.param.transposed_when_dense = true;
    }
  }

  const Model& model_;
  const FormRequest& request_;
  std::set<int32_t> selected_layers_;
  std::vector<OutWeight> outs_;
  std::map<std::tuple<int32_t, Projection, bool>, size_t> fused_;
};

}  // namespace

std::vector<OutWeight> arrange_outputs(const Model& model, const FormRequest& request) {
  return Arranger(model, request).run();
}

}  // namespace nibble
