#include "nibble/verify/declared_scheme.h"

#include <re2/re2.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nibble/base/checked_math.h"
#include "nibble/base/strings.h"
#include "nibble/checkpoint/conventions/compressed_tensors_config.h"
#include "nibble/checkpoint/conventions/stored_formats.h"

namespace nibble {
namespace {

// A setting as text; "" if it is absent or of another kind.
std::string text(const Json& object, const char* key) {
  const Json* found = json_member(object, key);
  if (found == nullptr) return {};
  if (found->is_string()) return found->get<std::string>();
  return found->is_boolean() || found->is_number_integer() ? found->dump() : std::string();
}

void add_targets(const Json& group, std::set<std::string>* targets) {
  const Json* list = json_member(group, "targets");
  if (list == nullptr || !list->is_array()) {
    targets->insert("?");
    return;
  }
  for (const Json& target : *list) targets->insert(target.is_string() ? target.get<std::string>() : "?");
}

void add_group(const Json& group, const Json& weights, const std::string& shared_format, DeclaredScheme* scheme) {
  ++scheme->groups;
  const std::string own = text(group, "format");
  scheme->formats.insert(own.empty() ? shared_format : own);
  scheme->types.insert(text(weights, "type"));
  scheme->bits.insert(text(weights, "num_bits"));
  scheme->strategies.insert(text(weights, "strategy"));
  scheme->symmetric.insert(text(weights, "symmetric"));
  const Json* size = json_member(weights, "group_size");
  scheme->group_sizes.insert(size != nullptr && size->is_number_integer() ? size->get<int64_t>() : 0);
  add_targets(group, &scheme->targets);
}

// Classes of modules that hold no matrices of linear layers.
bool is_other_class(std::string_view target) {
  return starts_with(target, "Conv") || starts_with(target, "Embedding") || ends_with(target, "Norm");
}

// What programs agree upon: the part of a name from the layers on.
std::string_view common_part(std::string_view name) {
  const size_t at = name.find("layers.");
  return at == std::string_view::npos ? name : name.substr(at);
}

bool is_inside(std::string_view name, std::string_view container) {
  return !container.empty() && name.size() > container.size() && starts_with(name, container) &&
         name[container.size()] == '.';
}

// The module, something that it is a part of, or a part of the stack that is stored as one.
bool meet(std::string_view target, std::string_view module) {
  target = common_part(target);
  module = common_part(module);
  const size_t dot = module.rfind('.');
  const std::string_view parent = dot == std::string_view::npos ? std::string_view() : module.substr(0, dot);
  return target == module || is_inside(module, target) || is_inside(target, parent);
}

}  // namespace

const Json* quantization_settings(const Checkpoint& checkpoint) {
  const Json& config = checkpoint.config();
  for (const char* key : {"quantization_config", "compression_config"}) {
    if (const Json* found = json_member(config, key)) return found;
  }
  const Json* inner = json_member(config, "text_config");
  return inner == nullptr ? nullptr : json_member(*inner, "quantization_config");
}

bool is_quantized_by(const Weight& weight, std::string_view method) {
  if (weight.opaque || weight.format.is_dense()) return false;
  const auto methods = weight.convention->methods();
  return std::ranges::find(methods, method) != methods.end();
}

bool reads_alike(const Format& declared, const Weight& weight) {
  const Format& stored = weight.format;
  const bool both_float = is_float_scale(declared.scale) && is_float_scale(stored.scale);
  return declared.element == stored.element && (declared.scale == stored.scale || both_float) &&
         declared.two_level == stored.two_level &&
         declared.scale_rows(weight.rows()) == stored.scale_rows(weight.rows()) &&
         declared.scale_cols(weight.cols()) == stored.scale_cols(weight.cols());
}

DeclaredScheme declared_scheme(const Json& settings) {
  DeclaredScheme scheme;
  const Json* groups = json_member(settings, "config_groups");
  if (groups == nullptr || !groups->is_object()) {
    scheme.understood = groups == nullptr && json_member(settings, "quantization_config") == nullptr;
    return scheme;
  }
  const std::string shared = text(settings, "format");
  for (const Json& group : *groups) {
    const Json* weights = group.is_object() ? json_member(group, "weights") : nullptr;
    if (!group.is_object() || (weights != nullptr && !weights->is_object())) {
      scheme = {};
      scheme.understood = false;
      return scheme;
    }
    if (weights != nullptr) add_group(group, *weights, shared, &scheme);
  }
  for (auto* open : {&scheme.formats, &scheme.types, &scheme.bits, &scheme.strategies, &scheme.symmetric}) {
    if (open->contains("")) open->clear();
  }
  if (scheme.group_sizes.contains(0)) scheme.group_sizes.clear();
  scheme.no_targets = scheme.groups != 0 && scheme.targets.empty();
  return scheme;
}

std::set<std::string> formats_of(const Checkpoint& checkpoint, const Weight& weight) {
  const Dtype codes = checkpoint.tensors()[weight.parts.front().tensor].dtype;
  if (codes == Dtype::kI8) return {"int-quantized", "naive-quantized"};
  const char* name = compressed_tensors_format(weight.format);
  if (codes == Dtype::kI32) name = "pack-quantized";
  if (name == nullptr) return {};
  // The older name for one element a byte.
  const bool bytes = element_bits(weight.format.element) == 8 && codes != Dtype::kI32;
  if (bytes && weight.format.scale != ScaleType::kE8M0) return {name, "naive-quantized"};
  return {name};
}

std::set<std::string> strategies_of(const Weight& weight, const std::set<int64_t>& group_sizes,
                                    const BlockSizes& blocks) {
  const Format& format = weight.format;
  if (format.two_level) return {"tensor_group"};
  std::set<std::string> strategies;
  const bool one_a_row = format.block_rows == 1 && format.scale_cols(weight.cols()) == 1;
  if (format.block_rows > 1 || has_blocks(weight, blocks)) strategies.insert("block");
  if (format.block_rows == 1 && format.block_cols > 0) strategies.insert("group");
  if (format.block_rows == 0) strategies.insert("tensor");
  if (one_a_row) strategies.insert("channel");
  const bool short_rows = group_sizes.empty() || std::ranges::any_of(group_sizes, [&](int64_t size) {
                            return size < 0 || static_cast<uint64_t>(size) >= weight.cols();
                          });
  if (one_a_row && short_rows) strategies.insert("group");
  if (format.scale_rows(weight.rows()) * format.scale_cols(weight.cols()) == 1) {
    strategies.insert({"tensor", "block"});
    if (weight.rows() == 1) strategies.insert({"channel", "group"});
  }
  return strategies;
}

bool has_blocks(const Weight& weight, const BlockSizes& blocks) {
  const uint64_t rows = weight.format.scale_rows(weight.rows());
  const uint64_t cols = weight.format.scale_cols(weight.cols());
  return std::ranges::any_of(blocks, [&](const auto& block) {
    return rows == ceil_div(weight.rows(), block.first) && cols == ceil_div(weight.cols(), block.second);
  });
}

struct Targets::Expressions {
  std::vector<std::unique_ptr<re2::RE2>> list;
};

Targets::Targets(const std::set<std::string>& targets)
    : targets_(targets), expressions_(std::make_unique<Expressions>()) {
  re2::RE2::Options options(re2::RE2::Quiet);
  options.set_max_mem(1 << 20);
  for (const std::string& target : targets) {
    if (starts_with(target, "re:")) expressions_->list.push_back(std::make_unique<re2::RE2>(target.substr(3), options));
  }
}

Targets::~Targets() = default;

bool Targets::may_mean(std::string_view module) const {
  for (const auto& expression : expressions_->list) {
    // Python's engine knows more than RE2.
    if (!expression->ok() || re2::RE2::PartialMatch({module.data(), module.size()}, *expression)) return true;
  }
  return std::ranges::any_of(targets_, [&](const std::string& target) {
    if (starts_with(target, "re:")) return false;
    return target.find('.') == std::string::npos ? !is_other_class(target) : meet(target, module);
  });
}

}  // namespace nibble
