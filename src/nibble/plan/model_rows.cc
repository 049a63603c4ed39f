#include "nibble/plan/model_rows.h"

#include <utility>

#include "nibble/base/checked_math.h"
#include "nibble/base/error.h"

namespace nibble {
namespace {

constexpr std::string_view kReleased = "released";

uint64_t checked_sum(uint64_t a, uint64_t b) {
  const auto sum = checked_add(a, b);
  if (!sum)
    throw Error("the weights take more bytes than 64 bits count")
        .way_out("take config.json from the same release as the weights");
  return *sum;
}

// The format that most of the routed experts (or of everything, without any) have.
Format main_format(const ModelSpec& spec, const std::vector<WeightItem>& items) {
  const Role role = spec.experts != 0 ? Role::kRoutedExpert : Role::kDenseMlp;
  const WeightItem* largest = &items.front();
  for (const WeightItem& item : items) {
    const bool better = item.param.role == role && (largest->param.role != role || item.bytes > largest->bytes);
    if (better) largest = &item;
  }
  return largest->format;
}

}  // namespace

FormatSize size_of(const ModelSpec& spec, const std::vector<WeightItem>& items) {
  FormatSize size;
  const bool tied = ties_head(items);
  for (const WeightItem& item : items) {
    size.weight_bytes = checked_sum(size.weight_bytes, item.bytes);
    if (!item.format.is_dense()) {
      const uint64_t codes = item.format.code_row_bytes(item.cols()) * item.rows() * item.matrices();
      size.value_bytes += codes;
      size.scale_bytes += item.bytes - std::min(item.bytes, codes);
    }
    // Of an encoder that a file holds beside the text model nothing is read for a token, of tables a few rows; of the
    // embedding all if it is the head.
    const Role role = item.param.role;
    if (role == Role::kUnknown || role == Role::kMtp || item.is_copy()) continue;
    if (role == Role::kEmbedding && (!tied || item.param.layer >= 0)) continue;
    const bool routed = item.is_stack() && spec.experts != 0;
    size.active_bytes += routed ? item.bytes / spec.experts * spec.experts_per_token : item.bytes;
  }
  return size;
}

std::vector<ModelRow> model_rows(const Subject& subject, const std::vector<std::string>& formats) {
  std::vector<ModelRow> rows;
  for (const std::string& name : formats) {
    ModelRow made;
    made.row.format = name;
    try {
      if (name == kReleased) {
        if (subject.released.empty())
          throw Error("the release's own format is the model's 16 bits").value("format", name).way_out("--format bf16");
        made.items = subject.released;
        made.format = main_format(subject.spec, made.items);
        made.row.title = subject.released_title;
      } else {
        made.format = parse_writable_format(name);
        made.row.title = name;
        made.items = weigh_target(subject, made.format);
      }
      made.row.size = size_of(subject.spec, made.items);
    } catch (const Error& error) {
      if (formats.size() == 1) throw;
      made.items.clear();
      made.row.refused = error.what();
    }
    rows.push_back(std::move(made));
  }
  return rows;
}

}  // namespace nibble
