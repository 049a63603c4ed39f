#include "nibble/verify/weight_stats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>

#include "nibble/base/error.h"
#include "nibble/base/file.h"
#include "nibble/base/hash.h"
#include "nibble/base/parallel.h"
#include "nibble/base/progress.h"
#include "nibble/numerics/decode.h"
#include "nibble/verify/code_stats.h"
#include "nibble/verify/row_stats.h"
#include "nibble/verify/scale_stats.h"
#include "nibble/verify/scan_plan.h"

namespace nibble {
namespace {

void add_histogram(const std::vector<uint64_t>& from, std::vector<uint64_t>* to) {
  if (to->size() < from.size()) to->resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) (*to)[i] += from[i];
}

void keep_lowest(const std::optional<uint64_t>& from, std::optional<uint64_t>* to) {
  if (from && (!*to || *from < **to)) *to = from;
}

// Everything but what depends on the order of addition (sum_squares) or on the slice.
void merge(const WeightStats& from, WeightStats* to) {
  to->scanned = to->scanned || from.scanned;
  to->elements += from.elements;
  to->zeros += from.zeros;
  add_histogram(from.code_histogram, &to->code_histogram);
  add_histogram(from.block_max_histogram, &to->block_max_histogram);
  to->blocks += from.blocks;
  to->dead_blocks += from.dead_blocks;
  to->negative_short_blocks += from.negative_short_blocks;
  to->scales.merge(from.scales);
  to->input_scales.merge(from.input_scales);
  to->zero_points += from.zero_points;
  to->zero_point_sum += from.zero_point_sum;
  to->zero_point_min = std::min(to->zero_point_min, from.zero_point_min);
  to->zero_point_max = std::max(to->zero_point_max, from.zero_point_max);
  to->shifted_blocks += from.shifted_blocks;
  to->shift_sum += from.shift_sum;
  to->shift_squares += from.shift_squares;
  to->nonzero_mins += from.nonzero_mins;
  to->zero_classes.merge(from.zero_classes);
  to->extremes.merge(from.extremes);
  to->holes.merge(from.holes);
  to->nans += from.nans;
  to->infinities += from.infinities;
  keep_lowest(from.first_bad, &to->first_bad);
  to->amax = std::max(to->amax, from.amax);
}

class Scanner {
 public:
  Scanner(const Checkpoint& checkpoint, const WeightTable& table, const ScanOptions& options)
      : checkpoint_(checkpoint), weights_(table.weights()), pieces_(plan_scan(checkpoint, table, options)) {
    result_.weights.resize(weights_.size());
    result_.sha256.resize(checkpoint.files().size());
    squares_.resize(pieces_.size());
    for (uint32_t w = 0; w < weights_.size(); ++w) {
      const uint64_t slices = has_slices(weights_[w]) ? weights_[w].slices() : 1;
      if (slices > 1) live_slices_[w].assign(slices, kUnseen);
      if (!weights_[w].format.is_dense() && !weights_[w].opaque) flat_slices_[w].resize(slices);
    }
  }

  ScanResult run(const ScanOptions& options) {
    uint64_t total = 0;
    for (const ScanPiece& piece : pieces_) total += piece.bytes;
    {
      Progress progress("verify", total, options.quiet);
      parallel_for(pieces_.size(), options.threads, [&](uint64_t i) {
        work(i);
        progress.add(pieces_[i].bytes);
      });
    }
    finish(options.quick);
    return std::move(result_);
  }

 private:
  enum SliceState : uint8_t { kUnseen, kZero, kLive };

  void work(uint64_t index) {
    const ScanPiece& piece = pieces_[index];
    try {
      if (piece.kind == ScanKind::kHash) return hash(piece);
      WeightStats part;
      std::optional<TensorScale> second;
      if (piece.kind == ScanKind::kRows) {
        second = read_rows_of(piece, &part);
      } else {
        read_bytes_of(piece, &part);
      }
      squares_[index] = part.sum_squares;
      const std::scoped_lock lock(locks_[piece.weight % locks_.size()]);
      merge_piece(piece, part, second);
    } catch (const Error& error) {
      fail(index, finding_of(error, "unreadable"));
    } catch (const std::exception& error) {  // out of memory for a shape that no file backs
      const StoredTensor& tensor = checkpoint_.tensors()[weights_[piece.weight].parts.front().tensor];
      fail(index, {Severity::kError,
                   "unreadable",
                   checkpoint_.file_of(tensor),
                   tensor.name,
                   std::string("the tensor cannot be read: ") + error.what(),
                   {}});
    }
  }

  void hash(const ScanPiece& piece) {
    result_.sha256[piece.file] = sha256_of_file(checkpoint_.folder() / checkpoint_.files()[piece.file].name);
  }

  std::optional<TensorScale> read_rows_of(const ScanPiece& piece, WeightStats* part) const {
    const Weight& weight = weights_[piece.weight];
    const EncodedMatrix rows = weight.convention->read(checkpoint_, weight, piece.slice, piece.begin, piece.count);
    add_rows(rows, {piece.slice, piece.begin, weight.rows()}, part);
    if (piece.scales_apart) part->scales = ScaleStats{};
    return rows.tensor_scale;
  }

  void read_bytes_of(const ScanPiece& piece, WeightStats* part) const {
    const Weight& weight = weights_[piece.weight];
    const StoredTensor& tensor = checkpoint_.tensors()[piece.tensor];
    std::vector<std::byte> bytes(piece.count);
    checkpoint_.read(tensor, piece.begin, bytes);
    if (piece.kind == ScanKind::kScales) {
      const ScaleType type = *stored_scale_type(tensor.dtype, weight.format);
      add_scales(bytes, type, piece.begin / scale_type_bytes(type), scales_for(piece.part, part));
      if (piece.part == PartKind::kSecondScale) {
        for (uint64_t at = 0; at < bytes.size(); at += scale_type_bytes(type))
          part->second.push_back(scale_value(type, bytes.data() + at));
      }
      return;
    }
    part->scanned = true;
    if (weight.opaque) return;
    const DenseSums sums = dense_sums(bytes, weight.format.element);
    part->elements = sums.elements;
    part->zeros = sums.zeros;
    part->nans = sums.nans;
    part->infinities = sums.infinities;
    if (sums.first_bad) part->first_bad = *sums.first_bad + piece.begin * 8 / element_bits(weight.format.element);
    part->amax = sums.amax;
    part->sum_squares = sums.sum_squares;
    const uint64_t bits = element_bits(weight.format.element);
    add_zero_runs(bytes, bits, piece.begin * 8 / bits, &part->holes);
  }

  static ScaleStats* scales_for(PartKind part, WeightStats* stats) {
    if (part == PartKind::kScales) return &stats->scales;
    if (part == PartKind::kInputScale) return &stats->input_scales;
    static thread_local ScaleStats unused;  // second level: kept value by value; pre-scales: not judged
    return &unused;
  }

  void merge_piece(const ScanPiece& piece, const WeightStats& part, const std::optional<TensorScale>& second) {
    WeightStats& stats = result_.weights[piece.weight];
    merge(part, &stats);
    stats.sampled = stats.sampled || piece.partial;
    if (piece.part == PartKind::kSecondScale) stats.second = part.second;
    if (second && second->level != SecondLevel::kNone) {
      stats.level = second->level;
      if (!piece.scales_apart) {
        if (stats.second.size() <= piece.slice) stats.second.resize(piece.slice + 1, 1);
        stats.second[piece.slice] = second->value;
      }
    }
    if (piece.kind == ScanKind::kRows) {
      std::vector<FlatState>& states = flat_slices_.at(piece.weight);
      states[states.size() == 1 ? 0 : piece.slice].add(part.flat);
    }
    const auto slices = live_slices_.find(piece.weight);
    if (slices == live_slices_.end() || !part.scanned || weights_[piece.weight].opaque) return;
    const bool zero = part.zeros == part.elements;
    uint8_t& state = slices->second[piece.slice];
    state = state == kLive || !zero ? kLive : kZero;
  }

  void fail(uint64_t index, Finding finding) {
    const std::scoped_lock lock(failures_lock_);
    failures_.emplace(index, std::move(finding));
  }

  void finish(bool quick);
  void learn_levels();

  const Checkpoint& checkpoint_;
  const std::vector<Weight>& weights_;
  const std::vector<ScanPiece> pieces_;
  ScanResult result_;
  std::vector<double> squares_;  // by piece: added up in order at the end
  std::map<uint32_t, std::vector<uint8_t>> live_slices_;
  std::map<uint32_t, std::vector<FlatState>> flat_slices_;
  std::array<std::mutex, 64> locks_;
  std::mutex failures_lock_;
  std::map<uint64_t, Finding> failures_;  // by piece
};

void Scanner::finish(bool quick) {
  for (size_t i = 0; i < pieces_.size(); ++i) {
    result_.weights[pieces_[i].weight].sum_squares += squares_[i];
    if (pieces_[i].kind != ScanKind::kHash) result_.bytes += pieces_[i].bytes;  // the same bytes once more
  }
  for (auto& [index, finding] : failures_) {
    if (pieces_[index].kind != ScanKind::kHash) result_.weights[pieces_[index].weight].failed = true;
    result_.findings.push_back(std::move(finding));
  }
  for (const auto& [w, slices] : live_slices_) {
    WeightStats& stats = result_.weights[w];
    for (uint64_t s = 0; s < slices.size(); ++s) {
      if (slices[s] != kZero) continue;
      ++stats.zero_slices;
      if (!stats.first_zero_slice) stats.first_zero_slice = s;
    }
  }
  for (const auto& [w, slices] : flat_slices_) {
    WeightStats& stats = result_.weights[w];
    for (uint64_t s = 0; s < slices.size(); ++s) {
      if (!slices[s].is_unwritten()) continue;
      if (stats.flat_slices++ == 0) stats.first_flat_slice = s, stats.flat_byte = slices[s].byte();
    }
  }
  if (!quick) return;
  for (WeightStats& stats : result_.weights) stats.sampled = stats.sampled || !stats.scanned;
  learn_levels();
}

// A quick scan reads second-level scales alone; which way they enter is known to the convention, which tells it with
// the first rows that anybody reads.
void Scanner::learn_levels() {
  std::map<const Convention*, SecondLevel> levels;
  for (uint32_t w = 0; w < weights_.size(); ++w) {
    if (result_.weights[w].level != SecondLevel::kNone) levels[weights_[w].convention] = result_.weights[w].level;
  }
  for (uint32_t w = 0; w < weights_.size(); ++w) {
    WeightStats& stats = result_.weights[w];
    if (stats.second.empty() || stats.level != SecondLevel::kNone) continue;
    const auto [known, missing] = levels.try_emplace(weights_[w].convention, SecondLevel::kNone);
    if (missing) {
      try {
        known->second = weights_[w].convention->read(checkpoint_, weights_[w], 0, 0, 1).tensor_scale.level;
      } catch (const Error& error) {
        result_.findings.push_back(finding_of(error, "unreadable"));
      }
    }
    stats.level = known->second;
  }
}

}  // namespace

double WeightStats::dense_rms() const {
  const uint64_t finite = elements - nans - infinities;
  return finite == 0 ? 0 : std::sqrt(sum_squares / static_cast<double>(finite));
}

ScanResult scan_weights(const Checkpoint& checkpoint, const WeightTable& table, const ScanOptions& options) {
  return Scanner(checkpoint, table, options).run(options);
}

}  // namespace nibble
