// A part of a matrix that was never written, or that was lost: zero bytes where codes should be (hole_stats.h). With
// BASE it is proved, because BASE has other values there. Without, blocks of zeros whose scales differ are a warning;
// so is one long run of zeros in a matrix that has few elsewhere, unless other matrices have theirs in the same place:
// then they were padded or pruned. Rows of a vocabulary that nobody uses are zero in many models.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "nibble/base/error.h"
#include "nibble/verify/code_stats.h"
#include "nibble/verify/matrix_map.h"
#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "code-hole";
constexpr uint64_t kPage = 4096;  // bytes

struct Hole {
  size_t weight = 0;
  ElementRun run;          // all of it is lost
  uint64_t elements = 0;   // with what is lost elsewhere
  bool by_scales = false;  // seen by scales that differ, and not by its length alone
};

// Blocks with scales of their own.
std::optional<Hole> hole_by_scales(const VerifyContext& context, size_t w) {
  const Format& format = context.model->table.weights()[w].format;
  const WeightStats& stats = context.scan->weights[w];
  const HoleStats& holes = stats.holes;
  // Of a matrix of constant blocks these are some, or all.
  if (2 * holes.constant >= stats.blocks - std::min(stats.blocks, holes.blocks)) return std::nullopt;
  const uint64_t cols = context.model->table.weights()[w].cols();
  const uint64_t block = format.block_cols == 0 ? cols : std::min(format.block_cols, cols);
  if (holes.longest.count >= 4 * block && holes.longest.count * element_bits(format.element) / 8 >= kShortestRun)
    return Hole{w, holes.longest, holes.longest.count, true};
  // Where rows are not stored one behind the other a hole is a few columns of each.
  if (holes.scales.count() >= 3 && holes.blocks >= 8 && holes.blocks * 64 >= stats.blocks)
    return Hole{w, {*holes.first, block}, holes.blocks * block, true};
  return std::nullopt;
}

bool may_have_zero_rows(const ParamSpec& param) {
  return param.role == Role::kEmbedding || param.role == Role::kHead || param.role == Role::kNorm ||
         param.role == Role::kBias || param.role == Role::kUnknown;
}

// One run of zeros that is long, in a matrix that is not sparse.
std::optional<Hole> hole_by_length(const VerifyContext& context, size_t w) {
  const Weight& weight = context.model->table.weights()[w];
  const WeightStats& stats = context.scan->weights[w];
  const bool own_scales = !weight.format.is_dense() && weight.format.block_rows == 1;
  // In GGUF a block's scale is stored with its codes, and lost with them.
  if (own_scales && context.checkpoint->container() != Container::kGguf) return std::nullopt;
  if (weight.shape.size() < 2 || may_have_zero_rows(context.model->params[w])) return std::nullopt;
  const ElementRun& run = stats.holes.zero_bytes;
  const uint64_t bytes = run.count * element_bits(weight.format.element) / 8;
  const uint64_t slice = weight.rows() * weight.cols();
  const bool is_long = (run.count >= 2 * weight.cols() && bytes >= kPage) || run.count * 8 >= slice;
  if (!is_long || run.count < weight.cols() || bytes < kShortestRun || run.count >= slice) return std::nullopt;
  const uint64_t zeros = stats.zeros - std::min(stats.zeros, run.count);
  const bool others = stats.holes.run_elements > 2 * run.count;
  if (others || 2 * zeros > stats.elements - std::min(stats.elements, run.count)) return std::nullopt;
  return Hole{w, run, run.count, false};
}

// Is what stands in the hole BASE's? Its values may have been too small for the format.
class BaseCheck {
 public:
  explicit BaseCheck(const VerifyContext& context) : context_(context) {
    if (context.base == nullptr) return;
    own_.emplace(*context.model);
    base_.emplace(*context.base_model);
  }

  // nullopt: there is no BASE, or none of this matrix.
  std::optional<bool> agrees(const Hole& hole) const {
    if (!own_) return std::nullopt;
    const Weight& weight = context_.model->table.weights()[hole.weight];
    // A row in the middle of the run, and its columns that are part of it.
    const uint64_t row = (hole.run.first + hole.run.count / 2) / weight.cols();
    const uint64_t slice = row / weight.rows(), begin = row * weight.cols();
    const auto& places = own_->places();
    auto place = std::ranges::lower_bound(places, hole.weight, {}, &MatrixPlace::weight);
    for (; place != places.end() && place->weight == hole.weight; ++place) {
      const auto own_row = row_in(*place, row % weight.rows());
      if (place->slice != slice || place->cols != weight.cols() || !own_row) continue;
      const MatrixPlace* partner = base_->find(own_->key(static_cast<size_t>(place - places.begin())));
      if (partner == nullptr || partner->rows != place->rows || partner->cols != place->cols) continue;
      return agree(*place, *partner, *own_row, std::max(hole.run.first, begin) - begin,
                   std::min(hole.run.first + hole.run.count, begin + weight.cols()) - begin);
    }
    return std::nullopt;
  }

 private:
  // The matrix' row that is stored row `stored` of its slice.
  static std::optional<uint64_t> row_in(const MatrixPlace& place, uint64_t stored) {
    if (stored < place.row_begin || (stored - place.row_begin) % place.row_step != 0) return std::nullopt;
    const uint64_t row = (stored - place.row_begin) / place.row_step;
    return row < place.rows ? std::optional(row) : std::nullopt;
  }

  // The least that a code can make of the largest scale.
  double step_of(size_t w) const {
    const Format& format = context_.model->table.weights()[w].format;
    const WeightStats& stats = context_.scan->weights[w];
    if (format.is_dense()) return 0;
    double least = std::numeric_limits<double>::infinity();
    for (const float value : code_values(format)) {
      if (value > 0) least = std::min(least, static_cast<double>(value));
    }
    double second = stats.second.empty() ? 1 : 0;
    for (const float value : stats.second) {
      const double wide = static_cast<double>(value);
      second = std::max(second, stats.level == SecondLevel::kDivide ? 1 / wide : wide);
    }
    return least * stats.scales.max * second;
  }

  std::optional<bool> agree(const MatrixPlace& own, const MatrixPlace& base, uint64_t row, uint64_t begin,
                            uint64_t end) const {
    try {
      const auto mine =
          read_matrix_rows(*context_.checkpoint, context_.model->table.weights()[own.weight], own, row, 1);
      const auto theirs =
          read_matrix_rows(*context_.base, context_.base_model->table.weights()[base.weight], base, row, 1);
      double most = 0;
      for (uint64_t c = begin; c < end; ++c)
        most = std::max(most, std::fabs(static_cast<double>(mine[c]) - static_cast<double>(theirs[c])));
      return most <= step_of(own.weight);
    } catch (const Error&) {
      return std::nullopt;  // a finding already
    }
  }

  const VerifyContext& context_;
  std::optional<MatrixMap> own_, base_;
};

class HoleCheck {
 public:
  HoleCheck(const VerifyContext& context, Findings* findings)
      : context_(context), findings_(findings), base_(context) {}

  void run() {
    std::map<std::pair<uint64_t, uint64_t>, uint64_t> places;
    std::vector<Hole> holes = collect();
    for (const Hole& hole : holes) ++places[{hole.run.first, hole.run.count}];
    uint64_t padded = 0;
    size_t first_padded = 0;
    for (const Hole& hole : holes) {
      const auto agrees = base_.agrees(hole);
      if (agrees == true) continue;
      const bool everywhere = places[{hole.run.first, hole.run.count}] >= 3;
      if (!agrees && !hole.by_scales && everywhere) {
        if (padded++ == 0) first_padded = hole.weight;
      } else {
        report(hole, agrees.has_value());
      }
    }
    if (padded != 0) note(first_padded, padded);
  }

 private:
  std::vector<Hole> collect() const {
    std::vector<Hole> holes;
    const auto& weights = context_.model->table.weights();
    for (size_t w = 0; w < weights.size(); ++w) {
      const WeightStats& stats = context_.scan->weights[w];
      const Proof proof = (*context_.proofs)[w];
      // A quick scan has seen too little; of a whole matrix another rule speaks.
      if (weights[w].opaque || stats.sampled || stats.zeros == stats.elements || stats.flat_slices != 0 ||
          proof == Proof::kRecorded)
        continue;
      auto hole = weights[w].format.is_dense() ? std::nullopt : hole_by_scales(context_, w);
      if (!hole) hole = hole_by_length(context_, w);
      if (hole) holes.push_back(*hole);
    }
    return holes;
  }

  void report(const Hole& hole, bool proved) {
    const Weight& weight = context_.model->table.weights()[hole.weight];
    const std::string share = percent_text(hole.elements, weight.elements());
    const std::string evidence = proved           ? "and BASE has other values there"
                                 : hole.by_scales ? "although the blocks have scales that differ"
                                                  : "and few are zero elsewhere";
    findings_->push_back(part_finding(
        context_, hole.weight, PartKind::kCodes, proved ? Severity::kError : Severity::kWarning, kName,
        fmt::format(
            "{} elements ({}) from element {} on are zero bytes, {}: this part was never written, or is lost. "
            "{}",
            hole.elements, share, hole.run.first, evidence,
            proved ? "Fetch the file again, or make it again from its source" : "Compare with the source (--against)"),
        {{"elements", std::to_string(hole.elements)},
         {"first", std::to_string(hole.run.first)},
         {"of", std::to_string(weight.elements())}}));
  }

  void note(size_t weight, uint64_t count) {
    findings_->push_back(weight_finding(
        context_, weight, Severity::kNote, kName,
        fmt::format("{} matrices (this is the first) have a long run of zeros in the same place: they were padded or "
                    "pruned, or the same part of each is lost. `nibble verify --against BASE` tells which",
                    count),
        {{"weights", std::to_string(count)}}));
  }

  const VerifyContext& context_;
  Findings* findings_;
  BaseCheck base_;
};

void check(const VerifyContext& context, Findings* findings) { HoleCheck(context, findings).run(); }

}  // namespace

extern const Rule kCodeHole = {kName, "parts of matrices that are zero bytes where codes should be", check};

}  // namespace nibble
