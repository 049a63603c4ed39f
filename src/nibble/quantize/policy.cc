#include "nibble/quantize/policy.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <set>

#include "nibble/base/error.h"
#include "nibble/base/strings.h"

namespace nibble {
namespace {

constexpr std::string_view kNamePrefix = "name:";
constexpr std::string_view kAllLinears = "all_linears";

// One --include or --keep word: a role, all_linears, or name:GLOB.
struct Selector {
  std::string text;
  std::set<Role> roles;
  bool linears_only = false;
  std::string glob;
  mutable bool matched = false;

  bool matches(const Weight& weight, const ParamSpec& param) const;
};

std::string_view module_of(std::string_view name) {
  constexpr std::string_view kTail = ".weight";
  return ends_with(name, kTail) ? name.substr(0, name.size() - kTail.size()) : name;
}

bool Selector::matches(const Weight& weight, const ParamSpec& param) const {
  const bool hit = glob.empty() ? roles.contains(param.role) && (!linears_only || weight.shape.size() >= 2)
                                : glob_match(glob, weight.name) || glob_match(glob, module_of(weight.name));
  matched = matched || hit;
  return hit;
}

Selector parse_selector(const std::string& text) {
  Selector selector;
  selector.text = text;
  if (starts_with(text, kNamePrefix)) {
    selector.glob = text.substr(kNamePrefix.size());
    if (selector.glob.empty()) throw Error("an empty name pattern").value("pattern", text).way_out("write name:GLOB");
    return selector;
  }
  if (text == kAllLinears) {
    selector.roles = {Role::kRoutedExpert, Role::kSharedExpert, Role::kDenseMlp, Role::kAttention};
    selector.linears_only = true;
    return selector;
  }
  if (const auto role = parse_role(text)) {
    selector.roles = {*role};
    return selector;
  }
  std::vector<std::string> names{std::string(kAllLinears)};
  for (const Role role : all_roles()) names.emplace_back(role_name(role));
  throw Error("not a role, all_linears or name:GLOB")
      .value("pattern", text)
      .way_out(fmt::format("did you mean {}?", nearest_name(text, names)))
      .way_out(fmt::format("the roles are {}", fmt::join(names, " ")));
}

std::vector<Selector> parse_selectors(const std::vector<std::string>& texts) {
  std::vector<Selector> selectors;
  selectors.reserve(texts.size());
  for (const auto& text : texts) selectors.push_back(parse_selector(text));
  return selectors;
}

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

void refuse_unmatched(const std::vector<Selector>& selectors, std::string_view option) {
  for (const auto& selector : selectors) {
    if (selector.matched) continue;
    throw Error(fmt::format("{} {} matches nothing in this checkpoint", option, selector.text))
        .value("pattern", selector.text)
        .way_out("`nibble inspect` lists roles and names")
        .way_out("leave it out");
  }
}

const Selector* first_match(const std::vector<Selector>& selectors, const Weight& weight, const ParamSpec& param) {
  const Selector* found = nullptr;
  // All are asked, not only up to the first hit: each must know whether it ever matched.
  for (const auto& selector : selectors) {
    if (selector.matches(weight, param) && found == nullptr) found = &selector;
  }
  return found;
}

// Why a weight can never be quantized, or "".
std::string unquantizable(const Weight& weight, const ParamSpec& param) {
  if (weight.opaque) return fmt::format("{} data is copied", weight.format.name);
  if (weight.shape.size() < 2) return "vectors and scalars stay as they are";
  if (param.role == Role::kNorm || param.role == Role::kBias)
    return fmt::format("role {} stays as it is", role_name(param.role));
  return "";
}

Decision decide_dense(const Weight& weight, const ParamSpec& param, bool from_gguf, const Format& target) {
  const bool known = param.role != Role::kUnknown;
  if (weight.opaque) return {false, known, fmt::format("{} data is copied", weight.format.name)};
  if (!weight.format.is_dense()) return {true, known, fmt::format("{} is decoded", weight.format.name)};
  if (weight.format.element == target.element) return {false, known, "already in this type"};
  // GGUF keeps vectors in float32 for its own kernels' sake; Hugging Face folders have one type.
  if (from_gguf || weight.shape.size() >= 2) return {true, known, fmt::format("{} is converted", weight.format.name)};
  return {false, known, "vectors and scalars keep their type"};
}

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

std::vector<Decision> decide(const Model& model, const QuantizeRequest& request) {
  const auto& weights = model.table.weights();
  std::vector<Decision> decisions(weights.size());
  const bool from_gguf = model.from_gguf;
  if (request.format.is_dense() && request.include.empty() && request.keep.empty() && request.generic.empty()) {
    for (size_t i = 0; i < weights.size(); ++i)
      decisions[i] = decide_dense(weights[i], model.params[i], from_gguf, request.format);
    return decisions;
  }
  if (model.family == nullptr && request.generic.empty()) refuse_unknown_family(model);
  const auto generic = compile(request.generic);
  std::vector<bool> generic_matched(generic.size(), false);
  const auto include =
      request.generic.empty() || !request.include.empty() ? default_selectors(model, request) : std::vector<Selector>{};
  const auto keep = parse_selectors(request.keep);
  for (size_t i = 0; i < weights.size(); ++i) {
    const Weight& weight = weights[i];
    const ParamSpec& param = model.params[i];
    Decision& decision = decisions[i];
    decision.known = param.role != Role::kUnknown;
    const Selector* included = first_match(include, weight, param);
    const Selector* kept = first_match(keep, weight, param);
    std::string by_generic;
    for (size_t g = 0; g < generic.size(); ++g) {
      if (!RE2::PartialMatch(weight.name, *generic[g])) continue;
      generic_matched[g] = true;
      by_generic = request.generic[g];
    }
    const std::string never = unquantizable(weight, param);
    if (!never.empty()) {
      decision.reason = never;
    } else if (kept != nullptr) {
      decision.reason = fmt::format("kept by --keep {}", kept->text);
    } else if (included != nullptr) {
      decision.selected = true;
      decision.reason = request.include.empty() ? fmt::format("role {} is quantized by default", role_name(param.role))
                                                : fmt::format("selected by --include {}", included->text);
    } else if (!by_generic.empty()) {
      if (!decision.known && weight.shape.size() > 2 && weight.format.is_dense()) {
        throw ambiguity_error(fmt::format("--generic {} selects a stack whose orientation nobody stated", by_generic),
                              model, weight);
      }
      decision.selected = true;
      decision.reason = fmt::format("selected by --generic {}", by_generic);
    } else if (decision.known) {
      decision.reason = fmt::format("role {} is kept by default", role_name(param.role));
    } else {
      decision.reason = "unknown to the family, copied";
    }
  }
  refuse_unmatched(include, request.include.empty() ? "the default selection" : "--include");
  refuse_unmatched(keep, "--keep");
  for (size_t g = 0; g < generic.size(); ++g) {
    if (!generic_matched[g])
      throw Error(fmt::format("--generic {} matches nothing in this checkpoint", request.generic[g]))
          .value("pattern", request.generic[g])
          .way_out("`nibble inspect` lists the names");
  }
  return decisions;
}

}  // namespace nibble
