#include "nibble/verify/against.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "nibble/base/error.h"
#include "nibble/base/parallel.h"
#include "nibble/base/progress.h"
#include "nibble/numerics/decode.h"
#include "nibble/numerics/scale_rule.h"
#include "nibble/quantize/unify_scales.h"

namespace nibble {
namespace {

constexpr double kFactor = 1.5;
constexpr double kRoundedMargin = 0.02;
constexpr double kDenseMargin = 1e-6;

// What the limit is for.
double judged(const AgainstRow& row) { return row.off_record.value_or(row.rel_rmse); }

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

// Every way in which weights may have come into `format`. A search is never worse than its rule.
std::vector<Rounding> roundings_of(const Format& format) {
  std::vector<Rounding> roundings;
  for (const ScaleRule* rule : scale_rules()) {
    if (rule->applies(format)) roundings.push_back({{rule, false}, BitExact::kNone});
  }
  for (const BitExact library : kBitExactLibraries) {
    const std::string_view rule = bit_exact_rule(library, format);
    if (!rule.empty()) roundings.push_back({parse_rule(rule, format), library});
  }
  return roundings;
}

// What the manifest has about one matrix.
struct Record {
  const SecondScaleChange* change = nullptr;  // of the second-level scale
  std::optional<Rounding> rounding;           // if it names a rule that gives `format`
};

class Comparison {
 public:
  Comparison(const VerifyContext& context, const MatrixPlace& own, const MatrixPlace& base, const Record& record)
      : context_(context),
        own_(own),
        base_(base),
        recorded_(record.change),
        rounding_(record.rounding),
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
    const bool unified = recorded_ != nullptr && !row->rounded && own_weight_.format.two_level;
    ErrorSums sums, change, off_record;
    float amax = 0;
    for (uint64_t at = 0; at < own_.rows; at += at_once) {
      const uint64_t count =
          std::min(context_.options->quick ? std::min(kQuickRows, at_once) : at_once, own_.rows - at);
      const auto base = read_matrix_rows(*context_.base, base_weight_, base_, at, count);
      const auto own = read_matrix_rows(*context_.checkpoint, own_weight_, own_, at, count);
      sums.add(difference(base, own));
      if (unified) {
        const auto changed = read_matrix_rows(*context_.base, base_weight_, base_, at, count,
                                              [this](EncodedMatrix& rows) { apply_record(rows); });
        change.add(difference(base, changed));
        off_record.add(difference(changed, own));
      }
      for (const float x : base) amax = std::max(amax, std::fabs(x));
      if (context_.options->quick) break;
    }
    row->rel_rmse = sums.rel_rmse();
    row->snr_db = sums.snr_db();
    if (unified) {
      row->expected_rel_rmse = change.rel_rmse();
      row->change_rel_rmse = change.rel_rmse();
      row->off_record = off_record.rel_rmse();
      return;
    }
    expect(amax, row);
  }

  // A BASE with another second-level scale is not what was changed, and stays as it is.
  void apply_record(EncodedMatrix& rows) const {
    if (rows.tensor_scale.value == recorded_->from) rescale(rows, {rows.tensor_scale.level, recorded_->to});
  }

  bool needs_whole() const {
    return rows_at_once(own_weight_, 0) == own_weight_.rows() || rows_at_once(base_weight_, 0) == base_weight_.rows();
  }

  // A sample may lack the very rows that are not exact: whoever is worse by it is measured by all of them.
  void expect(float amax, AgainstRow* row) const {
    expect_from(sample_runs(own_weight_.format, own_.rows), amax, row);
    if (!context_.options->quick && is_worse_than_explained(*row)) expect_from({{0, own_.rows}}, amax, row);
  }

  void expect_from(const std::vector<std::pair<uint64_t, uint64_t>>& runs, float amax, AgainstRow* row) const {
    const Format& format = own_weight_.format;
    std::vector<float> rows;
    uint64_t count = 0;
    for (const auto& [begin, run] : runs) {
      const auto part = read_matrix_rows(*context_.base, base_weight_, base_, begin, run);
      rows.insert(rows.end(), part.begin(), part.end());
      count += run;
    }
    const auto errors = [&](const Rounding& rounding) {
      return expected_errors(format, rows, count, amax, recorded_, rounding, base_weight_.format.element);
    };
    std::optional<Expected> found = rounding_ ? errors(*rounding_) : std::nullopt;
    const bool as_recorded = found.has_value();
    if (!found) found = errors({});
    const Expected expected = found.value_or(Expected{family_of(format).typical_rel_rmse(format), 0});
    row->expected_rel_rmse = expected.rel_rmse;
    row->default_rel_rmse = std::nullopt;
    if (recorded_ != nullptr) row->change_rel_rmse = expected.change;
    if (found && !format.is_dense()) row->rule = (as_recorded ? *rounding_ : Rounding{}).name(format);
    if (as_recorded || format.is_dense() || !is_worse_than_explained(*row)) return;
    // Somebody else's rule, and nothing says which.
    for (const Rounding& other : roundings_of(format)) {
      const auto error = errors(other);
      if (!error || error->rel_rmse <= row->expected_rel_rmse) continue;
      row->default_rel_rmse = expected.rel_rmse;
      row->expected_rel_rmse = error->rel_rmse;
      row->rule = other.name(format);
    }
  }

  const VerifyContext& context_;
  const MatrixPlace& own_;
  const MatrixPlace& base_;
  const SecondScaleChange* recorded_;
  const std::optional<Rounding> rounding_;
  const Weight& own_weight_;
  const Weight& base_weight_;
};

// Multiplies the second-level scale as the record has it. The larger one of a pair is kept, whichever way it is stored.
void enlarge_second_level(const SecondScaleChange& recorded, EncodedMatrix* matrix) {
  const float ratio = recorded.from / recorded.to;
  const float factor = ratio < 1 ? 1 / ratio : ratio;
  TensorScale larger = matrix->tensor_scale;
  larger.value = larger.level == SecondLevel::kDivide ? larger.value / factor : larger.value * factor;
  rescale(*matrix, larger);
}

// What the manifest records, by weight and slice.
class Records {
 public:
  explicit Records(const StoredManifest* manifest) {
    if (manifest == nullptr) return;
    library_ = parse_library(manifest->bit_exact_with).value_or(BitExact::kNone);
    for (const RecordedTensor& tensor : manifest->tensors) {
      if (!tensor.second_scales.empty() || !tensor.rule.empty()) by_name_.emplace(tensor.name, &tensor);
    }
  }

  Record find(const Weight& weight, uint64_t slice) const {
    Record record;
    const auto found = by_name_.find(weight.name);
    if (found == by_name_.end()) return record;
    const RecordedTensor& tensor = *found->second;
    const auto& changes = tensor.second_scales;
    const auto change = std::find_if(changes.begin(), changes.end(), [&](const auto& c) { return c.slice == slice; });
    if (change != changes.end()) record.change = &*change;
    record.rounding = rounding(tensor.rule, weight.format);
    return record;
  }

 private:
  // A rule that is unknown or of another format records nothing.
  std::optional<Rounding> rounding(const std::string& rule, const Format& format) const {
    if (rule.empty() || format.is_dense()) return std::nullopt;
    try {
      NamedRule named = parse_rule(rule, format);
      const bool by_library = library_ != BitExact::kNone && bit_exact_rule(library_, format) == rule;
      named.mse = false;  // a search is never worse
      return Rounding{named, by_library ? library_ : BitExact::kNone};
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  BitExact library_ = BitExact::kNone;
  std::unordered_map<std::string_view, const RecordedTensor*> by_name_;
};

}  // namespace

std::string Rounding::name(const Format& format) const {
  std::string text = rule.rule == nullptr ? default_rule(format).name() : rule.name();
  if (bit_exact != BitExact::kNone) text += fmt::format(", bit-exact with {}", library_name(bit_exact));
  return text;
}

std::optional<Expected> expected_errors(const Format& format, const std::vector<float>& rows, uint64_t count,
                                        float amax, const SecondScaleChange* recorded, const Rounding& rounding,
                                        Element type) {
  const uint64_t cols = count == 0 ? 0 : rows.size() / count;
  DenseView view = view_of(rows, count, cols);
  std::vector<float> decoded(rows.size());
  if (format.is_dense()) {
    EncodedMatrix dense = EncodedMatrix::make(format, count, cols);
    convert(view, format.element, dense.codes.data());
    decode(dense, decoded);
    return Expected{difference(rows, decoded).rel_rmse(), 0};
  }
  if (family_of(format).default_rule.empty() || check_shape(format, count, cols)) return std::nullopt;
  const Quantizer quantizer({.format = format,
                             .rule = rounding.rule.rule == nullptr ? default_rule(format) : rounding.rule,
                             .bit_exact = rounding.bit_exact});
  // A library's arithmetic is that of the weight's type, which is BF16 where the base is quantized itself.
  if (type != Element::kF32 && type != Element::kF16) type = Element::kBF16;
  std::vector<std::byte> narrowed;
  if (rounding.bit_exact != BitExact::kNone && type != Element::kF32) {
    const uint64_t row_bytes = cols * element_bits(type) / 8;
    narrowed.resize(count * row_bytes);
    convert(view, type, narrowed.data());
    view = {narrowed.data(), type, count, cols, row_bytes};
  }
  EncodedMatrix matrix = EncodedMatrix::make(format, count, cols);
  matrix.tensor_scale = quantizer.tensor_scale(amax, type);
  MutableEncodedView out = matrix.mutable_view();
  if (quantizer.encode(view, matrix.tensor_scale, out, nullptr)) return std::nullopt;
  decode(matrix, decoded);
  if (recorded == nullptr || !format.two_level) return Expected{difference(rows, decoded).rel_rmse(), 0};
  enlarge_second_level(*recorded, &matrix);
  std::vector<float> changed(rows.size());
  decode(matrix, changed);
  return Expected{difference(rows, changed).rel_rmse(), difference(decoded, changed).rel_rmse()};
}

double explained_error(const AgainstRow& row) {
  if (!row.rounded) return kDenseMargin;
  // A margin for rules would hide everything where the format itself adds next to nothing.
  return kFactor * row.expected_rel_rmse + std::min(kRoundedMargin, row.expected_rel_rmse + kDenseMargin);
}

bool is_worse_than_explained(const AgainstRow& row) {
  // Written so that a NaN is worse.
  return !row.problem.empty() || !(judged(row) <= explained_error(row));
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
  const Records records(context.manifest);
  std::vector<AgainstRow> rows(pairs.size());
  Progress progress("compare", bytes, context.options->quiet);
  parallel_for(pairs.size(), context.options->threads, [&](uint64_t i) {
    const MatrixPlace& place = own.places()[pairs[i].first];
    const Weight& weight = context.model->table.weights()[place.weight];
    rows[i] = Comparison(context, place, *pairs[i].second, records.find(weight, place.slice)).run();
    progress.add(place.rows * place.cols);
  });
  return rows;
}

}  // namespace nibble
