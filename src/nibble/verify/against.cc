#include "nibble/verify/against.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nibble/base/error.h"
#include "nibble/base/parallel.h"
#include "nibble/base/progress.h"
#include "nibble/numerics/decode.h"
#include "nibble/numerics/scale_rule.h"

namespace nibble {
namespace {

constexpr uint64_t kRunBytes = uint64_t{4} << 20;  // of float32, for either side
constexpr uint64_t kQuickRows = 64;
constexpr uint64_t kExpectedRows = 64;

DenseView view_of(const std::vector<float>& rows, uint64_t count, uint64_t cols) {
  return {reinterpret_cast<const std::byte*>(rows.data()), Element::kF32, count, cols, cols * sizeof(float)};
}

ErrorSums difference(const std::vector<float>& base, const std::vector<float>& other) {
  ErrorSums sums;
  for (size_t i = 0; i < base.size(); ++i) {
    const double x = static_cast<double>(base[i]);
    const double d = x - static_cast<double>(other[i]);
    sums.signal += x * x;
    sums.noise += d * d;
  }
  sums.count = base.size();
  return sums;
}

// Four runs of rows at even distances, each a multiple of the format's block rows, about kExpectedRows together.
std::vector<std::pair<uint64_t, uint64_t>> sample_runs(const Format& format, uint64_t rows) {
  const uint64_t block = std::max<uint64_t>(format.block_rows, 1);
  if (rows <= std::max(kExpectedRows, block)) return {{0, rows}};
  const uint64_t run = std::max<uint64_t>(kExpectedRows / 4 / block * block, block);
  const uint64_t runs = std::max<uint64_t>(std::min<uint64_t>(4, kExpectedRows / run), 1);
  std::vector<std::pair<uint64_t, uint64_t>> result;
  for (uint64_t i = 0; i < runs; ++i) {
    const uint64_t begin = i * (rows / runs) / block * block;
    result.emplace_back(begin, std::min(run, rows - begin));
  }
  return result;
}

class Comparison {
 public:
  Comparison(const VerifyContext& context, const MatrixPlace& own, const MatrixPlace& base)
      : context_(context),
        own_(own),
        base_(base),
        own_weight_(context.model->table.weights()[own.weight]),
        base_weight_(context.base_model->table.weights()[base.weight]) {}

  AgainstRow run() {
    AgainstRow row;
    row.name = own_weight_.name + own_.part;
    row.format = own_weight_.format.name;
    row.layer = context_.model->params[own_.weight].layer;
    row.weight = own_.weight;
    row.rounded = !(own_weight_.format == base_weight_.format);
    if (own_.rows != base_.rows || own_.cols != base_.cols) {
      row.problem = fmt::format("shape [{}, {}] here, [{}, {}] in BASE", own_.rows, own_.cols, base_.rows, base_.cols);
      return row;
    }
    try {
      compare(&row);
    } catch (const Error& error) {
      row.problem = error.what();
    }
    return row;
  }

 private:
  void compare(AgainstRow* row) {
    const uint64_t step = std::max<uint64_t>(
        std::min(rows_at_once(own_weight_, kRunBytes), std::max<uint64_t>(rows_at_once(base_weight_, kRunBytes), 1)),
        1);
    const uint64_t at_once = needs_whole() ? own_.rows : step;
    ErrorSums sums;
    float amax = 0;
    for (uint64_t at = 0; at < own_.rows; at += at_once) {
      const uint64_t count =
          std::min(context_.options->quick ? std::min(kQuickRows, at_once) : at_once, own_.rows - at);
      const auto base = read_matrix_rows(*context_.base, base_weight_, base_, at, count);
      const auto own = read_matrix_rows(*context_.checkpoint, own_weight_, own_, at, count);
      sums.add(difference(base, own));
      for (const float x : base) amax = std::max(amax, std::fabs(x));
      if (context_.options->quick) break;
    }
    row->rel_rmse = sums.rel_rmse();
    row->snr_db = sums.snr_db();
    row->expected_rel_rmse = expected(amax);
  }

  bool needs_whole() const {
    return rows_at_once(own_weight_, 0) == own_weight_.rows() || rows_at_once(base_weight_, 0) == base_weight_.rows();
  }

  double expected(float amax) {
    const Format& format = own_weight_.format;
    std::vector<float> rows;
    uint64_t count = 0;
    for (const auto& [begin, run] : sample_runs(format, own_.rows)) {
      const auto part = read_matrix_rows(*context_.base, base_weight_, base_, begin, run);
      rows.insert(rows.end(), part.begin(), part.end());
      count += run;
    }
    const auto sums = expected_errors(format, rows, count, amax);
    return sums ? sums->rel_rmse() : family_of(format).typical_rel_rmse(format);
  }

  const VerifyContext& context_;
  const MatrixPlace& own_;
  const MatrixPlace& base_;
  const Weight& own_weight_;
  const Weight& base_weight_;
};

}  // namespace

std::optional<ErrorSums> expected_errors(const Format& format, const std::vector<float>& rows, uint64_t count,
                                         float amax) {
  const uint64_t cols = count == 0 ? 0 : rows.size() / count;
  const DenseView view = view_of(rows, count, cols);
  std::vector<float> decoded(rows.size());
  if (format.is_dense()) {
    EncodedMatrix dense = EncodedMatrix::make(format, count, cols);
    convert(view, format.element, dense.codes.data());
    decode(dense, decoded);
    return difference(rows, decoded);
  }
  if (family_of(format).default_rule.empty() || check_shape(format, count, cols)) return std::nullopt;
  const Quantizer quantizer({format, default_rule(format)});
  EncodedMatrix matrix = EncodedMatrix::make(format, count, cols);
  matrix.tensor_scale = quantizer.tensor_scale(amax);
  MutableEncodedView out = matrix.mutable_view();
  if (quantizer.encode(view, matrix.tensor_scale, out, nullptr)) return std::nullopt;
  decode(matrix, decoded);
  return difference(rows, decoded);
}

std::vector<AgainstRow> compare_with_base(const VerifyContext& context) {
  const MatrixMap own(*context.model);
  const MatrixMap base(*context.base_model);
  std::vector<std::pair<size_t, const MatrixPlace*>> pairs;
  uint64_t bytes = 0;
  for (size_t i = 0; i < own.places().size(); ++i) {
    const MatrixPlace* partner = base.find(own.key(i));
    if (partner == nullptr) continue;
    pairs.emplace_back(i, partner);
    bytes += own.places()[i].rows * own.places()[i].cols;
  }
  std::vector<AgainstRow> rows(pairs.size());
  Progress progress("compare", bytes, context.options->quiet);
  parallel_for(pairs.size(), context.options->threads, [&](uint64_t i) {
    const MatrixPlace& place = own.places()[pairs[i].first];
    rows[i] = Comparison(context, place, *pairs[i].second).run();
    progress.add(place.rows * place.cols);
  });
  return rows;
}

}  // namespace nibble
