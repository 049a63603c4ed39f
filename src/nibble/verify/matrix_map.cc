#include "nibble/verify/matrix_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "nibble/numerics/decode.h"

namespace nibble {
namespace {

const char* projection_label(Projection projection) {
  switch (projection) {
    case Projection::kGate: return "gate";
    case Projection::kUp: return "up";
    case Projection::kDown: return "down";
    default: return nullptr;
  }
}

std::string expert_key(int32_t layer, uint64_t expert, Projection projection) {
  return fmt::format("layer {} expert {} {}", layer, expert, projection_label(projection));
}

bool fuses_two(const ParamSpec& param) {
  return param.projection == Projection::kGateUp &&
         (param.fusion == Fusion::kGateThenUp || param.fusion == Fusion::kInterleaved);
}

}  // namespace

MatrixMap::MatrixMap(const Model& model) {
  for (uint32_t w = 0; w < model.table.weights().size(); ++w) add_weight(w, model.table.weights()[w], model.params[w]);
}

// A vector for one expert, or a row for each of a stack; gate and up may share it.
void MatrixMap::add_expert_biases(uint32_t w, const Weight& weight, const ParamSpec& param) {
  MatrixPlace place;
  place.weight = w;
  place.rows = 1;
  const bool two = fuses_two(param) && weight.cols() % 2 == 0;
  const bool interleaved = param.fusion == Fusion::kInterleaved;
  for (place.row_begin = 0; place.row_begin < weight.rows(); ++place.row_begin) {
    const uint64_t expert = param.expert >= 0 ? static_cast<uint64_t>(param.expert) : place.row_begin;
    for (const Projection half : {Projection::kGate, Projection::kUp}) {
      MatrixPlace part = place;
      part.cols = two ? weight.cols() / 2 : weight.cols();
      part.col_step = two && interleaved ? 2 : 1;
      part.col_begin = !two || half == Projection::kGate ? 0 : interleaved ? 1 : part.cols;
      const Projection projection = two ? half : param.projection;
      if (param.expert < 0) part.part = fmt::format("[{}] {}", expert, projection_label(projection));
      add(expert_key(param.layer, expert, projection) + " bias", part);
      if (!two) break;
    }
  }
}

void MatrixMap::add_weight(uint32_t w, const Weight& weight, const ParamSpec& param) {
  if (weight.opaque) return;
  const bool one_expert = param.expert >= 0 && weight.shape.size() == 1;
  const bool stacked_biases = param.expert < 0 && weight.shape.size() == 2 && param.fusion != Fusion::kNone;
  if (param.role == Role::kBias && param.layer >= 0 && weight.format.is_dense() && (one_expert || stacked_biases) &&
      (fuses_two(param) || projection_label(param.projection) != nullptr))
    return add_expert_biases(w, weight, param);
  MatrixPlace place;
  place.weight = w;
  place.rows = weight.rows();
  place.cols = weight.cols();
  const uint64_t slices = weight.slices();
  const bool stack = weight.shape.size() == 3;
  const bool expert_weight = param.role == Role::kRoutedExpert && param.layer >= 0 && (stack || param.expert >= 0);
  for (place.slice = 0; place.slice < slices; ++place.slice) {
    const uint64_t expert = stack ? place.slice : static_cast<uint64_t>(std::max(param.expert, 0));
    if (expert_weight && fuses_two(param) && weight.rows() % 2 == 0) {
      const bool interleaved = param.fusion == Fusion::kInterleaved;
      for (const Projection half : {Projection::kGate, Projection::kUp}) {
        MatrixPlace part = place;
        part.rows = weight.rows() / 2;
        part.row_step = interleaved ? 2 : 1;
        part.row_begin = half == Projection::kGate ? 0 : (interleaved ? 1 : part.rows);
        part.part = fmt::format("[{}] {}", expert, projection_label(half));
        add(expert_key(param.layer, expert, half), part);
      }
      continue;
    }
    MatrixPlace whole = place;
    if (slices > 1) whole.part = fmt::format("[{}]", place.slice);
    if (expert_weight && projection_label(param.projection) != nullptr) {
      add(expert_key(param.layer, expert, param.projection), whole);
    } else {
      add(weight.name + whole.part, whole);
    }
  }
}

void MatrixMap::add(std::string key, MatrixPlace place) {
  by_key_.try_emplace(key, places_.size());
  keys_.push_back(std::move(key));
  places_.push_back(std::move(place));
}

const MatrixPlace* MatrixMap::find(const std::string& key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : &places_[found->second];
}

std::vector<float> read_matrix_rows(const Checkpoint& checkpoint, const Weight& weight, const MatrixPlace& place,
                                    uint64_t begin, uint64_t count, const std::function<void(EncodedMatrix&)>& change) {
  if (count == 0) return {};
  const uint64_t first = place.row_begin + begin * place.row_step;
  const uint64_t stored = (count - 1) * place.row_step + 1;
  EncodedMatrix encoded = read_rows(checkpoint, weight, place.slice, first, stored);
  if (change) change(encoded);
  std::vector<float> rows(encoded.rows * encoded.cols);
  decode(encoded, rows);
  if (place.cols != weight.cols()) {
    std::vector<float> columns(count * place.cols);
    for (uint64_t i = 0; i < columns.size(); ++i)
      columns[i] =
          rows[i / place.cols * place.row_step * weight.cols() + place.col_begin + i % place.cols * place.col_step];
    return columns;
  }
  if (place.row_step == 1) return rows;
  const auto cols = static_cast<std::ptrdiff_t>(place.cols);
  for (uint64_t r = 1; r < count; ++r) {
    const auto from = rows.begin() + static_cast<std::ptrdiff_t>(r * place.row_step) * cols;
    std::copy(from, from + cols, rows.begin() + static_cast<std::ptrdiff_t>(r) * cols);
  }
  rows.resize(count * place.cols);
  return rows;
}

uint64_t rows_at_once(const Weight& weight, uint64_t bytes) {
  const bool apart = weight.row_order == RowOrder::kPlain && weight.convention->rows_contiguous(weight);
  if (!apart) return std::max<uint64_t>(weight.rows(), 1);
  return std::max<uint64_t>(bytes / sizeof(float) / std::max<uint64_t>(weight.cols(), 1), 1);
}

}  // namespace nibble
