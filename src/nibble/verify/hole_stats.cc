#include "nibble/verify/hole_stats.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "nibble/numerics/decode.h"
#include "nibble/verify/code_stats.h"

namespace nibble {
namespace {

bool all_equal(std::span<const std::byte> bytes) {
  return bytes.size() < 2 || std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

// A stored scale with its zero point.
uint64_t key_of(const EncodedMatrix& m, uint64_t scale) {
  uint64_t key = 0;
  const uint64_t size = m.format.scale_bytes();
  if (m.scales.size() >= (scale + 1) * size) std::memcpy(&key, m.scales.data() + scale * size, size);
  if (scale < m.zeros.size()) key |= static_cast<uint64_t>(m.zeros[scale]) << 32;
  return key;
}

// Most blocks differ in their first bytes.
bool is_constant(const std::byte* codes, uint64_t bytes) {
  return bytes > 1 && codes[0] == codes[1] && all_equal({codes, bytes});
}

// Zero, or codes so small that no scale was made from them.
bool may_be_unwritten(const Format& format, std::byte byte) {
  if (byte == std::byte{0}) return true;
  if (format.zero != ZeroPoint::kNone) return false;
  const std::vector<float> values = code_values(format);
  float most = 0;
  for (const float value : values) most = std::isfinite(value) ? std::max(most, std::fabs(value)) : most;
  const auto code = static_cast<uint8_t>(byte);
  const auto is_small = [&](size_t c) { return values[c] != 0 && std::fabs(values[c]) < most / 4; };
  return values.size() == 256 ? is_small(code) : is_small(code & 15) && is_small(code >> 4);
}

}  // namespace

void FewKeys::add(uint64_t key) {
  const auto end = keys_.begin() + static_cast<std::ptrdiff_t>(count_);
  if (count_ < keys_.size() && std::find(keys_.begin(), end, key) == end) keys_[count_++] = key;
}

void FewKeys::add(const FewKeys& other) {
  for (uint64_t i = 0; i < other.count_; ++i) add(other.keys_[i]);
}

void ElementRun::keep_longest(const ElementRun& other) {
  if (other.count > count || (other.count == count && other.first < first)) *this = other;
}

void HoleStats::merge(const HoleStats& other) {
  blocks += other.blocks;
  constant += other.constant;
  scales.add(other.scales);
  if (other.first && (!first || *other.first < *first)) first = other.first;
  longest.keep_longest(other.longest);
  zero_bytes.keep_longest(other.zero_bytes);
  run_elements += other.run_elements;
}

// One word in every kShortestRun bytes is looked at: no run of twice that length escapes, and of shorter ones nothing
// depends.
void add_zero_runs(std::span<const std::byte> bytes, uint64_t bits, uint64_t first, HoleStats* stats) {
  const auto is_zero = [&](uint64_t at) { return bytes[at] == std::byte{0}; };
  for (uint64_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += kShortestRun) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    if (word != 0) continue;
    uint64_t begin = at, end = at + sizeof(word);
    while (begin > 0 && is_zero(begin - 1)) --begin;
    while (end < bytes.size() && is_zero(end)) ++end;
    const ElementRun run{first + begin * 8 / bits, (end - begin) * 8 / bits};
    if (end - begin >= kShortestRun) {
      stats->zero_bytes.keep_longest(run);
      stats->run_elements += run.count;
    }
    at += (end - at) / kShortestRun * kShortestRun;  // the next word is behind it
  }
}

HoleFinder::HoleFinder(const EncodedMatrix& rows, uint64_t first, HoleStats* stats)
    : m_(rows), first_(first), stats_(stats) {
  const Format& format = rows.format;
  block_cols_ = format.block_cols == 0 ? rows.cols : format.block_cols;
  blocks_ = format.scale_cols(rows.cols);
  // Rows of blocks of several rows have no scale of their own; where minima are added a zero code means these.
  applies_ = format.block_rows == 1 && format.zero != ZeroPoint::kMin && scale_type_bytes(format.scale) != 0;
  of_zero_byte_ = code_magnitude(code_shape(format), element_bits(format.element), 0);
  // Powers of two are few, and so are their values among real weights; nothing underflows to a second one.
  if (format.scale == ScaleType::kE8M0) need_ = 2;
}

bool HoleFinder::is_hole(const std::byte* codes, uint64_t bytes, uint8_t maximum) const {
  if (maximum == 0 && m_.format.zero == ZeroPoint::kNone) return true;
  return codes[0] == std::byte{0} && all_equal({codes, bytes});
}

void HoleFinder::row(uint64_t row, std::span<const uint8_t> maxima) {
  if (!applies_) return;
  const uint64_t bits = element_bits(m_.format.element), row_bytes = m_.format.code_row_bytes(m_.cols);
  const uint64_t block_bytes = block_cols_ * bits / 8;
  for (uint64_t b = 0; b < maxima.size(); ++b) {
    const bool maybe = maxima[b] == 0 || maxima[b] == of_zero_byte_;
    const uint64_t begin = std::min(b * block_bytes, row_bytes), bytes = std::min(block_bytes, row_bytes - begin);
    const std::byte* codes = m_.codes.data() + row * row_bytes + begin;
    if (maybe && is_hole(codes, bytes, maxima[b])) {
      add(row, b);
      continue;
    }
    if (run_.count != 0) end_run();
    if (is_constant(codes, bytes)) ++stats_->constant;
  }
}

void HoleFinder::add(uint64_t row, uint64_t block) {
  const uint64_t scale = row * blocks_ + block;
  if (scale_value(m_.format.scale, m_.scales.data() + scale * m_.format.scale_bytes()) == 0) return end_run();
  const uint64_t key = key_of(m_, scale);
  const uint64_t element = first_ + row * m_.cols + block * block_cols_;
  if (run_.count == 0) run_.first = element;
  if (!stats_->first) stats_->first = element;
  run_.count += std::min(block_cols_, m_.cols - block * block_cols_);
  run_scales_.add(key);
  stats_->scales.add(key);
  ++stats_->blocks;
}

void HoleFinder::end_run() {
  if (run_scales_.count() >= need_) stats_->longest.keep_longest(run_);
  run_ = {};
  run_scales_ = {};
}

std::optional<FlatCodes> flat_codes(const EncodedMatrix& rows) {
  if (rows.codes.empty() || !all_equal({rows.codes.data(), rows.codes.size()})) return std::nullopt;
  if (!may_be_unwritten(rows.format, rows.codes[0])) return std::nullopt;
  const uint64_t cols = rows.format.scale_cols(rows.cols);
  const uint64_t scale_rows = rows.format.block_rows == 0 ? 1 : rows.format.scale_rows(rows.rows);
  FlatCodes flat{rows.codes[0], key_of(rows, 0), false, cols <= 1};
  for (uint64_t r = 0; r < scale_rows && !flat.differ; ++r) {
    const uint64_t first = flat.row_scales ? flat.key : key_of(rows, r * cols);
    for (uint64_t c = 0; c < cols; ++c) flat.differ = flat.differ || key_of(rows, r * cols + c) != first;
  }
  return flat;
}

void FlatState::add(const std::optional<FlatCodes>& piece) {
  if (!piece) {
    flat_ = false;
  } else if (!seen_) {
    first_ = *piece;
  } else {
    flat_ = flat_ && piece->byte == first_.byte;
    differ_ = differ_ || (piece->row_scales && piece->key != first_.key);
  }
  differ_ = differ_ || (piece && piece->differ);
  seen_ = true;
}

}  // namespace nibble
