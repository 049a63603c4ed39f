// In which order the two codes of a byte stand is nowhere stored. With BASE it is proved: values read in the right
// order correlate with the base's. Without one it can be proved only where columns are known apart: column norms of the
// weight follow (or oppose) those of something unquantized on the same channels, a norm, a router, the embedding.
//
// Swapping the codes of every byte keeps the mean of a pair of columns and flips the sign of its difference. So the
// correlation of pair means gives the sign of the relation, that of pair differences the order: equal signs, right
// order. A difference within a pair knows nothing of how sizes change over the channels, and means do: where large and
// small channels lie in regions of their own, all of them may follow one relation and neighbours the opposite one. The
// sign is therefore that of differences of neighbouring pairs, which see as little of regions, and that of the means
// has to agree. Where it does not, or nothing is significant, the files cannot decide it, and one note says so.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>

#include "nibble/base/error.h"
#include "nibble/verify/matrix_map.h"
#include "nibble/verify/rule_helpers.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "nibble-order";
constexpr uint64_t kRows = 32;

bool has_two_codes_a_byte(const Weight& weight) {
  return !weight.opaque && !weight.format.is_dense() && element_bits(weight.format.element) == 4 &&
         weight.cols() % 2 == 0;
}

// ---- with BASE

// The column that a writer of that order puts where we read column `at`; the pattern repeats every `period` columns.
struct Order {
  const char* name;
  uint64_t period;
  uint64_t (*column)(uint64_t at);
};

constexpr std::array<uint64_t, 8> kInterleaved = {0, 2, 4, 6, 1, 3, 5, 7};
constexpr std::array<uint64_t, 8> kDeinterleaved = {0, 4, 1, 5, 2, 6, 3, 7};
constexpr auto kOrders = std::to_array<Order>({
    {"high nibble first", 2, [](uint64_t at) { return at ^ 1; }},
    {"halves of 16 columns in low and high nibbles", 16, [](uint64_t at) { return at / 2 + (at % 2) * 8; }},
    {"halves of 32 columns in low and high nibbles", 32, [](uint64_t at) { return at / 2 + (at % 2) * 16; }},
    {"neighbours in one byte, where 16 columns in halves are meant", 16,
     [](uint64_t at) { return at < 8 ? 2 * at : 2 * (at - 8) + 1; }},
    {"neighbours in one byte, where 32 columns in halves are meant", 32,
     [](uint64_t at) { return at < 16 ? 2 * at : 2 * (at - 16) + 1; }},
    {"eight columns interleaved as 0, 2, 4, 6, 1, 3, 5, 7", 8, [](uint64_t at) { return kInterleaved[at]; }},
    {"eight columns interleaved as 0, 4, 1, 5, 2, 6, 3, 7", 8, [](uint64_t at) { return kDeinterleaved[at]; }},
});

double correlation(const std::vector<float>& own, const std::vector<float>& base, uint64_t cols, const Order* order) {
  double xy = 0;
  double xx = 0;
  double yy = 0;
  for (size_t row = 0; row < own.size(); row += cols) {
    for (uint64_t c = 0; c < cols; ++c) {
      const uint64_t from = order == nullptr ? c : c / order->period * order->period + order->column(c % order->period);
      const auto x = static_cast<double>(own[row + c]);
      const auto y = static_cast<double>(base[row + from]);
      xy += x * y;
      xx += x * x;
      yy += y * y;
    }
  }
  return xx == 0 || yy == 0 ? 0 : xy / std::sqrt(xx * yy);
}

bool applies(const Order& order, const Weight& weight) {
  const uint64_t block = weight.format.block_cols;
  return weight.cols() % order.period == 0 && (block == 0 || block % order.period == 0);
}

void check_place(const VerifyContext& context, const MatrixPlace& own, const MatrixPlace& base, Findings* findings) {
  const Weight& weight = context.model->table.weights()[own.weight];
  const uint64_t rows = std::min(kRows, own.rows);
  const auto mine = read_matrix_rows(*context.checkpoint, weight, own, 0, rows);
  const auto theirs = read_matrix_rows(*context.base, context.base_model->table.weights()[base.weight], base, 0, rows);
  const double as_read = correlation(mine, theirs, own.cols, nullptr);
  const Order* best = nullptr;
  double best_value = as_read;
  for (const Order& order : kOrders) {
    if (!applies(order, weight)) continue;
    const double value = correlation(mine, theirs, own.cols, &order);
    if (value > best_value) best = &order, best_value = value;
  }
  if (best == nullptr || best_value < 0.7 || best_value - as_read < 0.3) return;
  findings->push_back(part_finding(
      context, own.weight, PartKind::kCodes, Severity::kError, kName,
      fmt::format(
          "the codes are packed in another order ({}): correlation with BASE {:.3f} in that order, {:.3f} as read. "
          "Repack them, or declare the layout they were written in",
          best->name, best_value, as_read),
      {{"order", best->name},
       {"correlation", fmt::format("{:.4f}", best_value)},
       {"correlation_as_read", fmt::format("{:.4f}", as_read)}}));
}

// Matrices that are near the base are in the right order: only what is far from it is looked at.
void check_with_base(const VerifyContext& context, Findings* findings) {
  constexpr size_t kMost = 256;
  constexpr double kFar = 0.5;
  const MatrixMap own(*context.model);
  const MatrixMap base(*context.base_model);
  std::map<std::string, double> far;
  for (const AgainstRow& row : *context.against) {
    if (row.problem.empty() && !(row.rel_rmse <= kFar)) far.emplace(row.name, row.rel_rmse);
  }
  size_t looked_at = 0;
  for (size_t i = 0; i < own.places().size() && looked_at < kMost; ++i) {
    const MatrixPlace& place = own.places()[i];
    const Weight& weight = context.model->table.weights()[place.weight];
    const MatrixPlace* partner = base.find(own.key(i));
    if (partner == nullptr || !has_two_codes_a_byte(weight) || !far.contains(weight.name + place.part)) continue;
    if (partner->rows != place.rows || partner->cols != place.cols) continue;
    ++looked_at;
    check_place(context, place, *partner, findings);
  }
}

// ---- without BASE

// z values of correlations between logarithms of column norms: positive and negative by sign.
struct PairTest {
  double means = 0;        // of pairs
  double steps = 0;        // from the mean of a pair to that of its neighbour, each pair in one step
  double differences = 0;  // within pairs

  // How sure the sign of the relation is; 0 if two ways to see it disagree.
  double sign() const {
    if (means * steps <= 0) return 0;
    return std::copysign(std::min(std::fabs(means), std::fabs(steps)), means);
  }
};

struct PairNorms {
  std::vector<double> means, steps, differences;

  explicit PairNorms(const std::vector<double>& logs) {
    for (size_t c = 0; c + 1 < logs.size(); c += 2) {
      means.push_back(logs[c] + logs[c + 1]);
      differences.push_back(logs[c] - logs[c + 1]);
    }
    for (size_t p = 0; p + 1 < means.size(); p += 2) steps.push_back(means[p + 1] - means[p]);
  }
};

PairTest pair_test(const PairNorms& own, const PairNorms& other) {
  return {correlation_z(own.means, other.means), correlation_z(own.steps, other.steps),
          correlation_z(own.differences, other.differences)};
}

void add_squares(const std::vector<float>& rows, std::vector<double>* squares) {
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto x = static_cast<double>(rows[i]);
    if (std::isfinite(x)) (*squares)[i % squares->size()] += x * x;
  }
}

std::vector<double> log_norms(const std::vector<double>& squares) {
  std::vector<double> logs;
  logs.reserve(squares.size());
  for (const double square : squares) logs.push_back(std::log(square + 1e-30));
  return logs;
}

bool reads_hidden(Projection projection) {
  switch (projection) {
    case Projection::kGate:
    case Projection::kUp:
    case Projection::kGateUp:
    case Projection::kQ:
    case Projection::kK:
    case Projection::kV:
    case Projection::kQkv:
    case Projection::kQa:
    case Projection::kKva: return true;
    default: return false;
  }
}

// One layer's quantized matrices that read the hidden state, and what is unquantized on the same channels.
struct Layer {
  std::vector<size_t> packed, references;
};

class ChannelTest {
 public:
  ChannelTest(const VerifyContext& context, Findings* findings) : context_(context), findings_(findings) {}

  void run() {
    collect();
    double sum = 0;
    double tested = 0;
    bool told = false;
    const Layer* first = nullptr;
    const size_t step = std::max<size_t>(layers_.size() / kLayers, 1);
    size_t index = 0;
    for (const auto& [layer, members] : layers_) {
      if (index++ % step != 0 || members.packed.empty()) continue;
      const double z = test(members);
      if (z == 0) continue;
      sum += z;
      ++tested;
      if (first == nullptr) first = &members;
      if (z < -kSure) {
        report(layer, members, z);
        told = true;
      }
    }
    const double pooled = tested == 0 ? 0 : sum / std::sqrt(tested);
    if (told || pooled > kSure || !any_packed_) return;
    if (pooled < -kSure) return report(-1, *first, pooled);
    findings_->push_back(
        {Severity::kNote,
         std::string(kName),
         context_.checkpoint->path().string(),
         "",
         "the order of the two codes in a byte cannot be decided from these files (column norms do not "
         "follow those of norms, routers or embeddings): compare with `--against BASE`",
         {{"z", short_number(pooled)}}});
  }

 private:
  static constexpr size_t kLayers = 16;
  static constexpr double kSure = 6;

  void collect() {
    const auto& weights = context_.model->table.weights();
    const uint64_t hidden = context_.model->spec.hidden;
    for (size_t w = 0; w < weights.size(); ++w) {
      const ParamSpec& param = context_.model->params[w];
      if (has_two_codes_a_byte(weights[w])) {
        if (is_proved(context_, w)) continue;
        any_packed_ = true;
      }
      if (hidden == 0 || weights[w].cols() != hidden || weights[w].opaque) continue;
      if (has_two_codes_a_byte(weights[w]) && reads_hidden(param.projection)) {
        layers_[param.layer].packed.push_back(w);
      } else if (weights[w].format.is_dense() && (param.role == Role::kNorm || param.role == Role::kRouter)) {
        layers_[param.layer].references.push_back(w);
      } else if (weights[w].format.is_dense() && param.role == Role::kEmbedding) {
        shared_.push_back(w);
      }
    }
  }

  std::vector<double> norms_of(size_t w, uint64_t rows) const {
    const Weight& weight = context_.model->table.weights()[w];
    std::vector<double> squares(weight.cols());
    if (weight.rows() == 0) return squares;
    const uint64_t count = std::min(rows, weight.rows());
    add_squares(read_rows_f32(*context_.checkpoint, weight, 0, 0, count), &squares);
    return squares;
  }

  // Signed z: positive for the order as read. 0: not significant.
  double test(const Layer& layer) {
    constexpr size_t kMatrices = 8;
    constexpr double kSigned = 4;  // surely not zero, so that the sign can be trusted
    std::vector<double> squares(context_.model->spec.hidden);
    const size_t step = std::max<size_t>(layer.packed.size() / kMatrices, 1);
    for (size_t i = 0; i < layer.packed.size(); i += step) {
      const auto part = norms_of(layer.packed[i], kRows);
      for (size_t c = 0; c < squares.size(); ++c) squares[c] += part[c];
    }
    const PairNorms own(log_norms(squares));
    PairTest best;
    std::vector<size_t> references = layer.references;
    references.insert(references.end(), shared_.begin(), shared_.end());
    for (const size_t reference : references) {
      const PairTest result = pair_test(own, PairNorms(log_norms(norms_of(reference, 1024))));
      if (std::fabs(result.sign()) > std::fabs(best.sign())) best = result;
    }
    return std::fabs(best.sign()) < kSigned ? 0 : std::copysign(1.0, best.sign()) * best.differences;
  }

  void report(int32_t layer, const Layer& members, double z) {
    findings_->push_back(part_finding(
        context_, members.packed.front(), PartKind::kCodes, Severity::kError, kName,
        fmt::format(
            "{}: the two codes of a byte are swapped: column norms follow those of the unquantized tensors on the "
            "same channels only if they are exchanged in pairs (z {:.1f}). Swap them, or declare the layout they "
            "were written in",
            layer_text(layer), z),
        {{"layer", std::to_string(layer)}, {"z", short_number(z)}}));
  }

  const VerifyContext& context_;
  Findings* findings_;
  std::map<int32_t, Layer> layers_;
  std::vector<size_t> shared_;
  bool any_packed_ = false;
};

void check(const VerifyContext& context, Findings* findings) {
  if (context.base != nullptr) return check_with_base(context, findings);
  ChannelTest(context, findings).run();
}

}  // namespace

extern const Rule kNibbleOrder = {kName, "the order of the two codes in a byte", check};

}  // namespace nibble
