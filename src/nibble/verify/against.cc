#include "nibble/verify/against.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>
#include <unordered_map>

#include "nibble/base/error.h"
#include "nibble/base/parallel.h"
#include "nibble/base/progress.h"
#include "nibble/checkpoint/act_order.h"
#include "nibble/numerics/scale_rule.h"
#include "nibble/quantize/unify_scales.h"
#include "nibble/verify/expected_error.h"
#include "nibble/verify/matrix_map.h"

namespace nibble {
namespace {

constexpr double kFactor = 1.5;
constexpr double kRoundedMargin = 0.02;
constexpr double kDenseMargin = 1e-6;
constexpr double kNearFactor = 1.1;

// What the limit is for.
double judged(const AgainstRow& row) { return row.off_record.value_or(row.rel_rmse); }

constexpr uint64_t kRunBytes = uint64_t{4} << 20;  // of float32, for either side
constexpr uint64_t kSampleRows = 64;

// Four runs of rows at even distances, each a multiple of the format's block rows, about kSampleRows together.
std::vector<std::pair<uint64_t, uint64_t>> sample_runs(const Format& format, uint64_t rows) {
  const uint64_t block = std::max<uint64_t>(format.block_rows, 1);
  if (rows <= std::max(kSampleRows, block)) return {{0, rows}};
  const uint64_t run = std::max<uint64_t>(kSampleRows / 4 / block * block, block);
  const uint64_t runs = std::max<uint64_t>(std::min<uint64_t>(4, kSampleRows / run), 1);
  std::vector<std::pair<uint64_t, uint64_t>> result;
  for (uint64_t i = 0; i < runs; ++i) {
    const uint64_t begin = i * (rows / runs) / block * block;
    result.emplace_back(begin, std::min(run, rows - begin));
  }
  return result;
}

// What the manifest has about one matrix.
struct Record {
  const SecondScaleChange* change = nullptr;  // of the second-level scale
  std::optional<Rounding> rounding;           // if it names a rule that gives `format`
};

using Runs = std::vector<std::pair<uint64_t, uint64_t>>;  // (first row, rows)

// One matrix and its partner: first the distance between them is measured, then, when the maxima of all matrices that
// share its second-level scale are known, what it should be.
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

  void measure() {
    row_.name = own_weight_.name + own_.part;
    row_.format = own_weight_.format.name;
    row_.layer = context_.model->params[own_.weight].layer;
    row_.weight = own_.weight;
    row_.rounded = !(own_weight_.format == base_weight_.format);
    if (own_.rows != base_.rows || own_.cols != base_.cols) {
      row_.problem = fmt::format("shape [{}, {}] here, [{}, {}] in BASE", own_.rows, own_.cols, base_.rows, base_.cols);
      return;
    }
    guarded([this] {
      // No output keeps columns grouped out of order: what had such was rounded again, into the same format or another.
      row_.rounded = row_.rounded ||
                     has_act_order(*context_.checkpoint, own_weight_) != has_act_order(*context_.base, base_weight_);
      compare(context_.options->quick ? sample() : Runs{{0, own_.rows}});
    });
  }

  // `amax`: of all that share a scale with this matrix, itself among them.
  void expect(float amax) {
    if (!row_.problem.empty() || is_unified()) return;
    guarded([this, amax] {
      // Where the rows that were compared are few, the error and what explains it are those of the same rows.
      expect_of(sample(), amax);
      if (!is_worse_than_explained(row_)) return;
      // A sample may lack the very rows that are not exact: whoever is worse by it is measured by all of them.
      const Runs all{{0, own_.rows}};
      if (context_.options->quick) compare(all);
      expect_of(all, amax);
    });
  }

  const AgainstRow& row() const { return row_; }
  const MatrixPlace& place() const { return own_; }
  float amax() const { return amax_; }
  // Its second-level scale was chosen for it alone, and changed later.
  bool has_own_amax() const { return recorded_ != nullptr; }

 private:
  template <typename Step>
  void guarded(const Step& step) {
    try {
      step();
    } catch (const Error& error) {
      row_.problem = error.what();
    }
  }

  Runs sample() const { return sample_runs(own_weight_.format, own_.rows); }
  // Nothing was rounded but second-level scales, by a record that tells how.
  bool is_unified() const { return recorded_ != nullptr && !row_.rounded && own_weight_.format.two_level; }

  void compare(const Runs& runs) {
    const uint64_t step = std::max<uint64_t>(
        std::min(rows_at_once(own_weight_, kRunBytes), std::max<uint64_t>(rows_at_once(base_weight_, kRunBytes), 1)),
        1);
    ErrorSums sums, change, off_record;
    for (const auto& [first, rows] : runs) {
      const uint64_t at_once = needs_whole() ? rows : step;
      for (uint64_t at = first; at < first + rows; at += at_once) {
        const uint64_t count = std::min(at_once, first + rows - at);
        const auto base = read_matrix_rows(*context_.base, base_weight_, base_, at, count);
        const auto own = read_matrix_rows(*context_.checkpoint, own_weight_, own_, at, count);
        sums.add(difference(base, own));
        if (is_unified()) {
          const auto changed = read_matrix_rows(*context_.base, base_weight_, base_, at, count,
                                                [this](EncodedMatrix& matrix) { apply_record(matrix); });
          change.add(difference(base, changed));
          off_record.add(difference(changed, own));
        }
        for (const float x : base) amax_ = std::max(amax_, std::fabs(x));
      }
    }
    row_.rel_rmse = sums.rel_rmse();
    row_.snr_db = sums.snr_db();
    if (!is_unified()) return;
    row_.expected_rel_rmse = change.rel_rmse();
    row_.change_rel_rmse = change.rel_rmse();
    row_.off_record = off_record.rel_rmse();
  }

  // A BASE with another second-level scale is not what was changed, and stays as it is.
  void apply_record(EncodedMatrix& rows) const {
    if (rows.tensor_scale.value == recorded_->from) rescale(rows, {rows.tensor_scale.level, recorded_->to});
  }

  bool needs_whole() const {
    return rows_at_once(own_weight_, 0) == own_weight_.rows() || rows_at_once(base_weight_, 0) == base_weight_.rows();
  }

  void expect_of(const Runs& runs, float shared_amax) {
    row_.shared_scale = false;
    expect_from(runs, amax_);
    if (shared_amax <= amax_ || !is_worse_than_explained(row_)) return;
    row_.shared_scale = true;
    expect_from(runs, shared_amax);
  }

  void expect_from(const Runs& runs, float amax) {
    const Format& format = own_weight_.format;
    std::vector<float> rows;
    uint64_t count = 0;
    for (const auto& [begin, run] : runs) {
      const auto part = read_matrix_rows(*context_.base, base_weight_, base_, begin, run);
      rows.insert(rows.end(), part.begin(), part.end());
      count += run;
    }
    const auto errors = [&](Rounding rounding) {
      // A library has but one way to store it.
      if (rounding.bit_exact == BitExact::kNone) rounding.level = context_.scan->weights[own_.weight].level;
      return expected_errors(format, rows, count, amax, recorded_, rounding, base_weight_.format.element);
    };
    std::optional<Expected> found = rounding_ ? errors(*rounding_) : std::nullopt;
    const bool as_recorded = found.has_value();
    if (!found) found = errors({});
    const Expected expected = found.value_or(Expected{family_of(format).typical_rel_rmse(format), 0});
    row_.expected_rel_rmse = expected.rel_rmse;
    row_.default_rel_rmse = std::nullopt;
    if (recorded_ != nullptr) row_.change_rel_rmse = expected.change;
    if (found && !format.is_dense()) row_.rule = (as_recorded ? *rounding_ : Rounding{}).name(format);
    row_.near_a_rule = is_near(expected.rel_rmse);
    if (as_recorded || format.is_dense() || row_.near_a_rule) return;
    // Somebody else's rule, and nothing says which.
    const bool worse = is_worse_than_explained(row_);
    for (const Rounding& other : roundings_of(format)) {
      const auto error = errors(other);
      if (!error) continue;
      row_.near_a_rule = row_.near_a_rule || is_near(error->rel_rmse);
      if (!worse || error->rel_rmse <= row_.expected_rel_rmse) continue;
      row_.default_rel_rmse = expected.rel_rmse;
      row_.expected_rel_rmse = error->rel_rmse;
      row_.rule = other.name(format);
    }
  }

  bool is_near(double error) const { return row_.rel_rmse <= kNearFactor * error + kDenseMargin; }

  const VerifyContext& context_;
  const MatrixPlace& own_;
  const MatrixPlace& base_;
  const SecondScaleChange* recorded_;
  const std::optional<Rounding> rounding_;
  const Weight& own_weight_;
  const Weight& base_weight_;
  AgainstRow row_;
  float amax_ = 0;
};

// The largest value of all matrices that share a scale with one: parts of one stored matrix do, and those of one layer
// that have the same second-level scale. Rules choose that scale by the maximum of all it is for.
class SharedMaxima {
 public:
  SharedMaxima(const VerifyContext& context, const std::vector<Comparison>& all) : context_(context) {
    for (const Comparison& one : all) {
      if (one.has_own_amax()) continue;
      float& amax = maxima_.try_emplace(key_of(one), 0.0f).first->second;
      amax = std::max(amax, one.amax());
    }
  }

  float of(const Comparison& one) const { return one.has_own_amax() ? one.amax() : maxima_.at(key_of(one)); }

 private:
  // (layer, bits of the scale, false), or (weight, slice, true).
  using Key = std::tuple<int64_t, uint64_t, bool>;

  Key key_of(const Comparison& one) const {
    const MatrixPlace& place = one.place();
    const WeightStats& stats = context_.scan->weights[place.weight];
    if (!context_.model->table.weights()[place.weight].format.two_level || stats.second.empty())
      return {place.weight, place.slice, true};
    const float second = stats.second[std::min<size_t>(place.slice, stats.second.size() - 1)];
    return {one.row().layer, std::bit_cast<uint32_t>(second), false};
  }

  const VerifyContext& context_;
  std::map<Key, float> maxima_;
};

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
      return Rounding{.rule = named, .bit_exact = by_library ? library_ : BitExact::kNone};
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  BitExact library_ = BitExact::kNone;
  std::unordered_map<std::string_view, const RecordedTensor*> by_name_;
};

}  // namespace

double explained_error(const AgainstRow& row) {
  if (!row.rounded) return kDenseMargin;
  if (row.shared_scale) return kNearFactor * row.expected_rel_rmse + kDenseMargin;
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
  std::vector<Comparison> all;
  all.reserve(pairs.size());
  for (const auto& [index, partner] : pairs) {
    const MatrixPlace& place = own.places()[index];
    const Weight& weight = context.model->table.weights()[place.weight];
    all.emplace_back(context, place, *partner, records.find(weight, place.slice));
  }
  Progress progress("compare", bytes, context.options->quiet);
  parallel_for(all.size(), context.options->threads, [&](uint64_t i) {
    all[i].measure();
    progress.add(all[i].place().rows * all[i].place().cols);
  });
  const SharedMaxima maxima(context, all);
  parallel_for(all.size(), context.options->threads, [&](uint64_t i) { all[i].expect(maxima.of(all[i])); });
  std::vector<AgainstRow> rows;
  rows.reserve(all.size());
  for (const Comparison& one : all) rows.push_back(one.row());
  return rows;
}

}  // namespace nibble
