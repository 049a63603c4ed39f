#include "nibble/ledger/weights.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "nibble/base/checked_math.h"
#include "nibble/base/error.h"
#include "nibble/models/policy.h"

namespace nibble {
namespace {

uint64_t checked(std::optional<uint64_t> number, const ParamSpec& param) {
  if (number) return *number;
  throw Error("a parameter is larger than 64 bits count")
      .tensor(param.name)
      .way_out("take config.json from the same release as the weights");
}

Format dense_format(Element element) {
  Format format;
  format.name = element_name(element);
  format.element = element;
  return format;
}

void check_block(const WeightItem& item) {
  const auto problem = check_shape(item.format, item.rows(), item.cols());
  if (!problem) return;
  Error error("a weight's shape and the format do not go together: " + problem->reason);
  error.tensor(item.param.name).value("format", item.format.name);
  for (const uint64_t group : problem->legal_groups) error.value("legal_group", group);
  throw std::move(error.way_out("choose another group size or format"));
}

}  // namespace

// Of three dimensions only stacks and convolutions are left, and those are no projection of an MLP.
bool WeightItem::is_matrix_stack() const {
  if (param.shape.size() != 3) return false;
  if (is_stack()) return true;
  return param.projection == Projection::kGate || param.projection == Projection::kUp ||
         param.projection == Projection::kGateUp || param.projection == Projection::kDown;
}

uint64_t WeightItem::rows() const {
  const auto& shape = param.shape;
  const size_t lead = is_matrix_stack() || is_stack() ? 1 : 0;
  return shape.size() >= lead + 2 ? shape[lead] : 1;
}

uint64_t WeightItem::cols() const {
  const auto& shape = param.shape;
  const size_t lead = is_matrix_stack() || is_stack() ? 1 : 0;
  if (shape.size() <= lead) return 1;
  uint64_t cols = 1;
  for (size_t i = shape.size() >= lead + 2 ? lead + 1 : lead; i < shape.size(); ++i)
    cols = checked(checked_mul(cols, shape[i]), param);
  return cols;
}

bool ties_head(const std::vector<WeightItem>& items) {
  return std::none_of(items.begin(), items.end(), [](const WeightItem& item) {
    return item.param.role == Role::kHead && item.param.layer < 0 && !item.is_copy();
  });
}

std::vector<WeightItem> weigh(const ModelSpec& spec, std::vector<ParamSpec> params, const FormatOf& format_of) {
  std::vector<WeightItem> items;
  items.reserve(params.size());
  const Format dense = dense_format(spec.dtype);
  for (ParamSpec& param : params) {
    if (!param.counted) continue;
    WeightItem item;
    item.param = std::move(param);
    const bool matrix =
        item.is_matrix_stack() || (item.param.shape.size() == 2 && !item.is_stack());  // convolutions are no matrices
    const auto format = matrix && keep16(item.param) != Keep16::kAlways ? format_of(item.param) : std::nullopt;
    item.format = format.value_or(dense);
    if (format) check_block(item);
    item.elements = checked(checked_product(item.param.shape), item.param);
    const auto one = item.format.stored_bytes(item.rows(), item.cols());
    item.bytes =
        checked(one ? checked_mul(*one, item.is_stack() ? item.experts() : item.matrices()) : std::nullopt, item.param);
    items.push_back(std::move(item));
  }
  return items;
}

std::vector<WeightItem> weigh_checkpoint(const Checkpoint& checkpoint, const Model& model) {
  // Experts of one projection, layer and format become one stack: mixed ones stay apart.
  using Key = std::tuple<int32_t, Role, Projection, std::string, std::vector<uint64_t>>;
  std::map<Key, size_t> stacks;
  std::vector<WeightItem> items;
  uint64_t rest = 0;  // of tensors that belong to no weight
  for (const StoredTensor& tensor : checkpoint.tensors()) rest += tensor.bytes;
  for (size_t i = 0; i < model.params.size(); ++i) {
    const Weight& weight = model.table.weights()[i];
    const ParamSpec& param = model.params[i];
    const uint64_t bytes = weight.stored_bytes(checkpoint);
    rest -= std::min(rest, bytes);
    if (param.expert >= 0) {
      const auto [found, added] = stacks.try_emplace(
          {param.layer, param.role, param.projection, weight.format.name, param.shape}, items.size());
      if (!added) {
        WeightItem& stack = items[found->second];
        ++stack.param.shape[0];
        stack.bytes += bytes;
        stack.elements += weight.elements();
        continue;
      }
    }
    WeightItem item{param, weight.format, bytes, weight.elements()};
    item.param.shape = weight.shape;
    if (param.expert >= 0) {
      item.param.fusion = Fusion::kStackedExperts;
      item.param.shape.insert(item.param.shape.begin(), 1);
    }
    items.push_back(std::move(item));
  }
  if (rest != 0) {
    WeightItem others;
    others.param.name = "tensors that belong to no weight";
    others.param.shape = {rest};
    others.format = dense_format(Element::kInt8);
    others.bytes = others.elements = rest;
    items.push_back(std::move(others));
  }
  return items;
}

}  // namespace nibble
