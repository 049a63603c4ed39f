#include "nibble/verify/scan_plan.h"

#include <algorithm>
#include <tuple>

#include "nibble/base/rng.h"
#include "nibble/verify/scale_stats.h"

namespace nibble {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{4} << 20;
constexpr uint64_t kSampleBytes = uint64_t{64} << 10;
constexpr uint64_t kSampledWeights = 2000;
constexpr uint64_t kSampleSeed = 0x6e6962;  // any constant: the sample must be the same every time

// Of `total` things, every one if there are at most kSampledWeights, else that many at even distances.
bool in_sample(uint64_t index, uint64_t total) {
  if (total <= kSampledWeights) return true;
  return index * kSampledWeights / total != (index + 1) * kSampledWeights / total;
}

class Planner {
 public:
  Planner(const Checkpoint& checkpoint, const WeightTable& table, const ScanOptions& options)
      : checkpoint_(checkpoint), table_(table), options_(options) {}

  std::vector<ScanPiece> plan() {
    for (const Weight& weight : table_.weights()) ++(weight.format.is_dense() ? dense_total_ : quantized_total_);
    for (uint32_t w = 0; w < table_.weights().size(); ++w) add_weight(w);
    for (uint32_t f = 0; f < options_.hash_files.size(); ++f) {
      if (options_.hash_files[f]) pieces_.push_back(hash_piece(f));
    }
    // A file is hashed beside its first pieces: then its bytes come from the disk once and from the cache once.
    std::stable_sort(pieces_.begin(), pieces_.end(), [](const ScanPiece& a, const ScanPiece& b) {
      return std::tie(a.file, a.position, a.kind) < std::tie(b.file, b.position, b.kind);
    });
    return std::move(pieces_);
  }

 private:
  const StoredTensor& stored(const Part& part) const { return checkpoint_.tensors()[part.tensor]; }

  ScanPiece hash_piece(uint32_t file) const {
    ScanPiece piece;
    piece.kind = ScanKind::kHash;
    piece.file = file;
    piece.bytes = checkpoint_.files()[file].bytes;
    return piece;
  }

  void add_weight(uint32_t w) {
    const Weight& weight = table_.weights()[w];
    if (weight.parts.empty()) return;
    if (weight.format.is_dense()) {
      const bool wanted = !options_.quick || in_sample(dense_seen_, dense_total_);
      ++dense_seen_;
      if (wanted) add_dense(w, weight);
      return;
    }
    const bool wanted = !options_.quick || in_sample(quantized_seen_, quantized_total_);
    ++quantized_seen_;
    if (wanted) add_rows(w, weight);
    for (const Part& part : weight.parts) {
      const bool input = part.kind == PartKind::kInputScale;
      if (input || (scales_apart(weight) && is_scale(part))) add_scales_of(w, weight, part);
    }
  }

  static bool is_scale(const Part& part) {
    return part.kind == PartKind::kScales || part.kind == PartKind::kSecondScale;
  }

  // Rows come with their scales. A quick scan reads few rows but all scales, alone, where they have tensors of their
  // own of a type that says how to read them.
  bool scales_apart(const Weight& weight) const {
    if (!options_.quick || weight.part(PartKind::kScales) == nullptr) return false;
    return std::all_of(weight.parts.begin(), weight.parts.end(), [&](const Part& part) {
      return !is_scale(part) || stored_scale_type(stored(part).dtype, weight.format);
    });
  }

  void add_dense(uint32_t w, const Weight& weight) {
    const Part& part = weight.parts.front();
    const StoredTensor& tensor = stored(part);
    const uint64_t slices = has_slices(weight) ? weight.slices() : 1;
    const uint64_t slice_bytes = tensor.bytes / slices;
    const uint64_t limit = options_.quick ? std::min(slice_bytes, kSampleBytes) : slice_bytes;
    for (uint64_t slice = 0; slice < (options_.quick ? 1 : slices); ++slice) {
      for (uint64_t at = 0; at < limit; at += kPieceBytes) {
        const uint64_t count = std::min(kPieceBytes, limit - at);
        add_bytes(ScanKind::kBytes, w, part, slice, slice * slice_bytes + at, count);
      }
    }
  }

  void add_rows(uint32_t w, const Weight& weight) {
    const uint64_t rows = weight.rows();
    const uint64_t row_bytes = std::max<uint64_t>(1, weight.format.code_row_bytes(weight.cols()));
    // Cuts on multiples of 128 are cuts on block rows for every format whose blocks are of 128, 64, 32 … rows.
    const uint64_t unit = std::max<uint64_t>(weight.format.block_rows, 1);
    const uint64_t want = (options_.quick ? kSampleBytes : kPieceBytes) / row_bytes;
    uint64_t step = std::max(want / unit * unit, unit);
    const bool apart = weight.convention->rows_contiguous(weight);
    if (!apart) step = std::max<uint64_t>(rows, 1);
    if (options_.quick && !apart && rows * row_bytes > kPieceBytes) return;
    const uint64_t slices = weight.slices();
    if (options_.quick) {
      const uint64_t cuts = step >= rows ? 1 : rows / step;
      const uint64_t slice = slices > 1 ? random_bits(kSampleSeed, uint64_t{2} * w) % slices : 0;
      const uint64_t begin = random_bits(kSampleSeed, uint64_t{2} * w + 1) % cuts * step;
      return add_row_piece(w, weight, slice, begin, std::min(step, rows - begin), row_bytes);
    }
    for (uint64_t slice = 0; slice < slices; ++slice) {
      for (uint64_t at = 0; at < rows; at += step)
        add_row_piece(w, weight, slice, at, std::min(step, rows - at), row_bytes);
    }
  }

  void add_row_piece(uint32_t w, const Weight& weight, uint64_t slice, uint64_t begin, uint64_t count,
                     uint64_t row_bytes) {
    const StoredTensor& tensor = stored(weight.parts.front());
    ScanPiece piece;
    piece.kind = ScanKind::kRows;
    piece.partial = count < weight.rows() * weight.slices() && options_.quick;
    piece.scales_apart = scales_apart(weight);
    piece.weight = w;
    piece.file = tensor.file;
    piece.position = tensor.offset + (slice * weight.rows() + begin) * row_bytes;
    piece.slice = slice;
    piece.begin = begin;
    piece.count = count;
    piece.bytes = count * row_bytes + weight.format.scale_rows(count) * weight.format.scale_cols(weight.cols()) *
                                          weight.format.scale_bytes();
    pieces_.push_back(piece);
  }

  void add_scales_of(uint32_t w, const Weight& weight, const Part& part) {
    const StoredTensor& tensor = stored(part);
    if (!stored_scale_type(tensor.dtype, weight.format)) return;
    for (uint64_t at = 0; at < tensor.bytes; at += kPieceBytes)
      add_bytes(ScanKind::kScales, w, part, 0, at, std::min(kPieceBytes, tensor.bytes - at));
  }

  void add_bytes(ScanKind kind, uint32_t w, const Part& part, uint64_t slice, uint64_t begin, uint64_t count) {
    const StoredTensor& tensor = stored(part);
    ScanPiece piece;
    piece.kind = kind;
    piece.part = part.kind;
    piece.partial = count < tensor.bytes && options_.quick && kind == ScanKind::kBytes;
    piece.weight = w;
    piece.tensor = part.tensor;
    piece.file = tensor.file;
    piece.position = tensor.offset + begin;
    piece.slice = slice;
    piece.begin = begin;
    piece.count = count;
    piece.bytes = count;
    pieces_.push_back(piece);
  }

  const Checkpoint& checkpoint_;
  const WeightTable& table_;
  const ScanOptions& options_;
  uint64_t dense_total_ = 0, quantized_total_ = 0, dense_seen_ = 0, quantized_seen_ = 0;
  std::vector<ScanPiece> pieces_;
};

}  // namespace

bool has_slices(const Weight& weight) {
  constexpr uint64_t kSmallestMatrix = 64;
  return weight.shape.size() == 3 && weight.rows() * weight.cols() >= kSmallestMatrix;
}

std::vector<ScanPiece> plan_scan(const Checkpoint& checkpoint, const WeightTable& table, const ScanOptions& options) {
  return Planner(checkpoint, table, options).plan();
}

}  // namespace nibble
