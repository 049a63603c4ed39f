#include "nibble/checkpoint/conventions/modelopt_stacks.h"

#include <algorithm>
#include <cstring>

#include "nibble/base/check.h"
#include "nibble/checkpoint/conventions/part_reader.h"
#include "nibble/checkpoint/conventions/rows.h"
#include "nibble/checkpoint/conventions/stored_formats.h"

namespace nibble {
namespace {

constexpr uint64_t kGroup = 16;

// (height, width) bytes to (width, height), in tiles that stay in the cache.
void transpose(const std::byte* in, uint64_t height, uint64_t width, std::byte* out) {
  constexpr uint64_t kTile = 64;
  for (uint64_t y0 = 0; y0 < height; y0 += kTile) {
    for (uint64_t x0 = 0; x0 < width; x0 += kTile) {
      for (uint64_t y = y0; y < std::min(height, y0 + kTile); ++y) {
        for (uint64_t x = x0; x < std::min(width, x0 + kTile); ++x) out[x * height + y] = in[y * width + x];
      }
    }
  }
}

// Slice `slice` of a part (E, depth, N) as (N, depth).
std::vector<std::byte> read_slice(const Checkpoint& checkpoint, const StoredTensor& tensor, uint64_t slice,
                                  uint64_t depth, uint64_t rows) {
  std::vector<std::byte> stored(depth * rows), out(depth * rows);
  checkpoint.read(tensor, slice * stored.size(), stored);
  transpose(stored.data(), depth, rows, out.data());
  return out;
}

PartRun transposed_run(uint32_t part, uint64_t slice, const std::byte* rows_first, uint64_t rows, uint64_t depth) {
  PartRun run{part, slice * rows * depth, std::vector<std::byte>(rows * depth), {}};
  transpose(rows_first, rows, depth, run.bytes.data());
  return run;
}

}  // namespace

bool is_transposed_stack(const StoredTensor& codes, const StoredTensor& scale) {
  if (codes.shape.size() != 3 || scale.shape.size() != 3 || codes.dtype != Dtype::kU8) return false;
  if (scale.dtype != Dtype::kF8E4M3 || codes.shape[0] != scale.shape[0]) return false;
  const bool transposed = codes.shape[2] == scale.shape[2] && codes.shape[1] == scale.shape[1] * (kGroup / 2);
  const bool plain = codes.shape[1] == scale.shape[1] && codes.shape[2] == scale.shape[2] * (kGroup / 2);
  return transposed && !plain;
}

bool claim_transposed_stack(Claim* claim, const Fp4Names& names, std::string weight_name, uint32_t variant) {
  const StoredTensor& codes = *claim->get(names.codes);
  const StoredTensor* second = claim->get(names.second);
  if (second == nullptr) return claim->lacks(names.scale, names.second);
  const uint64_t count = element_count(*second);
  if (second->dtype != Dtype::kF32 || (count != 1 && count != codes.shape[0])) {
    return claim->bad_shape(names.second, "", "a second-level scale must be F32, one for the stack or for each matrix",
                            {{"matrices", std::to_string(codes.shape[0])}, {"scales", std::to_string(count)}});
  }
  claim->add(std::move(weight_name), nvfp4_format(), {codes.shape[0], codes.shape[2], codes.shape[1] * 2}, variant);
  claim->attach(PartKind::kCodes, names.codes);
  claim->attach(PartKind::kScales, names.scale);
  claim->attach(PartKind::kSecondScale, names.second);
  claim->attach(PartKind::kInputScale, names.input_scale);
  return true;
}

EncodedMatrix read_transposed_stack(const Checkpoint& checkpoint, const Weight& weight, uint64_t slice,
                                    uint64_t row_begin, uint64_t rows) {
  NIBBLE_CHECK(slice < weight.slices() && row_begin + rows <= weight.rows());
  EncodedMatrix out = EncodedMatrix::make(weight.format, rows, weight.cols());
  const auto copy = [&](PartKind kind, uint64_t row_bytes, std::span<std::byte> to) {
    const auto all = read_slice(checkpoint, *stored_part(checkpoint, weight, kind), slice, row_bytes, weight.rows());
    if (!to.empty()) std::memcpy(to.data(), all.data() + row_begin * row_bytes, rows * row_bytes);
  };
  copy(PartKind::kCodes, weight.format.code_row_bytes(weight.cols()), out.codes);
  copy(PartKind::kScales, weight.format.scale_cols(weight.cols()), out.scales);
  const StoredTensor& second = *stored_part(checkpoint, weight, PartKind::kSecondScale);
  out.tensor_scale = {SecondLevel::kMultiply, read_float(checkpoint, second, slice)};
  return out;
}

std::vector<PartDecl> declare_transposed_stack(const WriteRequest& request, const Fp4Names& names) {
  const RequestShape shape = request_shape(request);
  const auto part = [&](PartKind kind, std::string_view suffix, Dtype dtype, std::vector<uint64_t> stored) {
    return PartDecl{kind, {join_name(request.name, suffix), dtype, std::move(stored)}};
  };
  return {part(PartKind::kCodes, names.codes, Dtype::kU8,
               stacked(request, {request.format.code_row_bytes(shape.cols), shape.rows})),
          part(PartKind::kScales, names.scale, Dtype::kF8E4M3,
               stacked(request, {request.format.scale_cols(shape.cols), shape.rows})),
          part(PartKind::kSecondScale, names.second, Dtype::kF32, {})};
}

std::vector<PartRun> emit_transposed_stack(const WriteRequest& request, uint64_t slice, const EncodedView& rows) {
  NIBBLE_CHECK(rows.rows == request_shape(request).rows);
  std::vector<PartRun> runs{transposed_run(0, slice, rows.codes, rows.rows, request.format.code_row_bytes(rows.cols)),
                            transposed_run(1, slice, rows.scales, rows.rows, request.format.scale_cols(rows.cols))};
  // One for the stack: every slice has the same.
  if (slice == 0) runs.push_back(second_run(2, 0, rows, SecondLevel::kMultiply));
  return runs;
}

}  // namespace nibble
