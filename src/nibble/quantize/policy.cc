#include "nibble/quantize/policy.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "nibble/base/error.h"
#include "nibble/quantize/selector.h"

namespace nibble {
namespace {

std::vector<std::unique_ptr<RE2>> compile(const std::vector<std::string>& patterns) {
  std::vector<std::unique_ptr<RE2>> compiled;
  for (const auto& pattern : patterns) {
    compiled.push_back(std::make_unique<RE2>(pattern, RE2::Quiet));
    if (!compiled.back()->ok()) {
      throw Error("not a regular expression (RE2 syntax)")
          .value("pattern", pattern)
          .value("reason", compiled.back()->error())
          .way_out("correct it; look-around and back-references are not supported");
    }
  }
  return compiled;
}

// Dense experts stacked in one tensor may be (E, out, in) or (E, in, out): without a family nobody can know.
const Weight* ambiguous_stack(const Model& model) {
  for (size_t i = 0; i < model.params.size(); ++i) {
    const Weight& weight = model.table.weights()[i];
    if (model.params[i].role == Role::kUnknown && weight.shape.size() >= 3 && weight.format.is_dense() &&
        !weight.opaque)
      return &weight;
  }
  return nullptr;
}

Error ambiguity_error(const std::string& message, const Model& model, const Weight& weight) {
  const auto& s = weight.shape;
  const std::string experts = fmt::format("{}", fmt::join(s.begin(), s.end() - 2, " x "));
  const uint64_t rows = s[s.size() - 2];
  const uint64_t cols = s.back();
  return Error(message)
      .tensor(weight.name)
      .value("family", model.family_name)
      .value("shape", fmt::format("[{}]", fmt::join(s, ", ")))
      .value("reading_1", fmt::format("{} experts of {} outputs x {} inputs", experts, rows, cols))
      .value("reading_2", fmt::format("{} experts of {} inputs x {} outputs", experts, rows, cols))
      .way_out("split the stack into 2-D weights [out, in], one per expert")
      .way_out("use a family that nibble knows (`nibble inspect` lists what it found)");
}

void refuse_unknown_family(const Model& model) {
  const Weight* stack = ambiguous_stack(model);
  const bool named = model.family_name != "unknown";
  const std::string message =
      fmt::format("{}: what its tensors are for cannot be told",
                  named ? fmt::format("the model family {} is unknown", model.family_name)
                        : std::string("no configuration says which model this is, its family is unknown"));
  if (stack != nullptr) throw ambiguity_error(message, model, *stack);
  throw Error(message)
      .value("family", model.family_name)
      .way_out("select 2-D weights by name: --generic REGEX")
      .way_out("add the family: CONTRIBUTING.md, one page");
}

std::vector<Selector> default_selectors(const Model& model, const QuantizeRequest& request) {
  if (!request.include.empty()) return parse_selectors(request.include);
  const bool moe = std::any_of(model.params.begin(), model.params.end(),
                               [](const ParamSpec& p) { return p.role == Role::kRoutedExpert; });
  return {parse_selector(std::string(role_name(moe ? Role::kRoutedExpert : Role::kDenseMlp)))};
}

// Why a weight can never be quantized, or "".
std::string unquantizable(const Weight& weight, const ParamSpec& param) {
  if (weight.opaque) return fmt::format("{} data is copied", weight.format.name);
  if (weight.shape.size() < 2) return "vectors and scalars stay as they are";
  if (param.role == Role::kNorm || param.role == Role::kBias)
    return fmt::format("role {} stays as it is", role_name(param.role));
  return "";
}

// A decision before its reason is shared.
struct Verdict {
  bool selected = false, known = true;
  std::string reason;
};

Verdict decide_dense(const Weight& weight, const ParamSpec& param, bool from_gguf, const Format& target) {
  const bool known = param.role != Role::kUnknown;
  if (weight.opaque) return {false, known, fmt::format("{} data is copied", weight.format.name)};
  if (!weight.format.is_dense()) return {true, known, fmt::format("{} is decoded", weight.format.name)};
  if (weight.format.element == target.element) return {false, known, "already in this type"};
  // GGUF keeps vectors in float32 for its own kernels' sake; Hugging Face folders have one type.
  if (from_gguf || weight.shape.size() >= 2) return {true, known, fmt::format("{} is converted", weight.format.name)};
  return {false, known, "vectors and scalars keep their type"};
}

// The words of one request, asked weight by weight.
class Selection {
 public:
  Selection(const Model& model, const QuantizeRequest& request)
      : model_(model),
        request_(request),
        keep_(parse_selectors(request.keep)),
        generic_(compile(request.generic)),
        generic_matched_(generic_.size(), false) {
    if (request.generic.empty() || !request.include.empty()) include_ = default_selectors(model, request);
  }

  Verdict decide(const Weight& weight, const ParamSpec& param) {
    const bool known = param.role != Role::kUnknown;
    const std::string never = unquantizable(weight, param);
    const Selector* included = first_match(include_, weight, param, never);
    const Selector* kept = first_match(keep_, weight, param, never);
    const std::string by_generic = generic_match(weight);
    if (!never.empty()) return {false, known, never};
    if (kept != nullptr) return {false, known, fmt::format("kept by --keep {}", kept->text)};
    if (included != nullptr)
      return {true, known,
              request_.include.empty() ? fmt::format("role {} is quantized by default", role_name(param.role))
                                       : fmt::format("selected by --include {}", included->text)};
    if (!by_generic.empty()) {
      if (!known && weight.shape.size() > 2 && weight.format.is_dense())
        throw ambiguity_error(fmt::format("--generic {} selects a stack whose orientation nobody stated", by_generic),
                              model_, weight);
      return {true, known, fmt::format("selected by --generic {}", by_generic)};
    }
    if (!known) return {false, known, "unknown to the family, copied"};
    return {false, known, fmt::format("role {} is kept by default", role_name(param.role))};
  }

  void refuse_words_without_effect() const {
    refuse_unmatched(include_, request_.include.empty() ? "the default selection" : "--include");
    if (!request_.include.empty()) refuse_ineffective(include_, "--include");
    refuse_unmatched(keep_, "--keep");
    for (size_t g = 0; g < generic_.size(); ++g) {
      if (!generic_matched_[g])
        throw Error(fmt::format("--generic {} matches nothing in this checkpoint", request_.generic[g]))
            .value("pattern", request_.generic[g])
            .way_out("`nibble inspect` lists the names");
    }
  }

 private:
  // The last pattern that finds the name, or "".
  std::string generic_match(const Weight& weight) {
    std::string found;
    for (size_t g = 0; g < generic_.size(); ++g) {
      if (!RE2::PartialMatch(weight.name, *generic_[g])) continue;
      generic_matched_[g] = true;
      found = request_.generic[g];
    }
    return found;
  }

  const Model& model_;
  const QuantizeRequest& request_;
  std::vector<Selector> include_, keep_;
  std::vector<std::unique_ptr<RE2>> generic_;
  std::vector<bool> generic_matched_;
};

}  // namespace

std::string_view action_name(Action action) {
  switch (action) {
    case Action::kQuantized: return "quantized";
    case Action::kRecast: return "recast";
    case Action::kKept: return "kept";
    case Action::kCopied: return "copied";
  }
  return "copied";
}

void check_words(const QuantizeRequest& request) {
  parse_selectors(request.include);
  parse_selectors(request.keep);
  compile(request.generic);
}

std::vector<Decision> decide(const Model& model, const QuantizeRequest& request, TextPool* reasons) {
  const auto& weights = model.table.weights();
  std::vector<Decision> decisions(weights.size());
  const auto shared = [reasons](Verdict verdict) {
    return Decision{verdict.selected, verdict.known, reasons->keep(std::move(verdict.reason))};
  };
  if (request.format.is_dense() && request.include.empty() && request.keep.empty() && request.generic.empty()) {
    for (size_t i = 0; i < weights.size(); ++i)
      decisions[i] = shared(decide_dense(weights[i], model.params[i], model.from_gguf, request.format));
    return decisions;
  }
  if (model.family == nullptr && request.generic.empty()) refuse_unknown_family(model);
  Selection selection(model, request);
  for (size_t i = 0; i < weights.size(); ++i) decisions[i] = shared(selection.decide(weights[i], model.params[i]));
  selection.refuse_words_without_effect();
  const auto selected = [](const Decision& decision) { return decision.selected; };
  if (request.keep.empty() || std::ranges::any_of(decisions, selected)) return decisions;
  throw Error("--keep leaves nothing to quantize: it wins over --include and --generic")
      .value("keep", fmt::format("{}", fmt::join(request.keep, " ")))
      .way_out("keep less, or --include more")
      .way_out("use the source as it is");
}

}  // namespace nibble
