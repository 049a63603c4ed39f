#include "nibble/quantize/source_rows.h"

#include <algorithm>
#include <cstring>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/numerics/decode.h"
#include "nibble/quantize/source_scales.h"

namespace nibble {
namespace {

constexpr uint64_t kHashChunk = uint64_t{1} << 20;

// Rows of `matrix` picked by first, stride and count, as an encoded matrix of their own. Scales must cover single rows.
void copy_rows(const EncodedMatrix& from, uint64_t first, uint64_t stride, uint64_t count, EncodedMatrix* to,
               uint64_t to_first, uint64_t to_stride) {
  const uint64_t code_bytes = from.format.code_row_bytes(from.cols);
  const uint64_t scales = from.format.scale_cols(from.cols);
  const uint64_t scale_bytes = scales * from.format.scale_bytes();
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t source = first + i * stride;
    const uint64_t target = to_first + i * to_stride;
    std::memcpy(to->codes.data() + target * code_bytes, from.codes.data() + source * code_bytes, code_bytes);
    if (scale_bytes > 0)
      std::memcpy(to->scales.data() + target * scale_bytes, from.scales.data() + source * scale_bytes, scale_bytes);
    if (!from.zeros.empty())
      std::copy_n(from.zeros.data() + source * scales, scales, to->zeros.data() + target * scales);
    if (!from.mins.empty()) std::copy_n(from.mins.data() + source * scales, scales, to->mins.data() + target * scales);
  }
}

}  // namespace

EncodedView cut_rows(const EncodedMatrix& matrix, uint64_t begin, uint64_t count) {
  EncodedView view = matrix.view();
  const uint64_t block = matrix.format.block_rows;
  const uint64_t phase_row = matrix.row_phase + begin;
  const uint64_t scale_row = block == 0 ? 0 : phase_row / block;
  const uint64_t scales = matrix.format.scale_cols(matrix.cols);
  view.rows = count;
  view.row_phase = block == 0 ? 0 : phase_row % block;
  view.codes += begin * matrix.format.code_row_bytes(matrix.cols);
  if (view.scales != nullptr) view.scales += scale_row * scales * matrix.format.scale_bytes();
  if (view.zeros != nullptr) view.zeros += scale_row * scales;
  if (view.mins != nullptr) view.mins += scale_row * scales;
  return view;
}

std::span<const Piece> pieces_of(const OutWeight& out, uint64_t slice) {
  const auto [first, last] = std::equal_range(out.pieces.begin(), out.pieces.end(), Piece{0, 0, 0, 0, 0, slice, 0, 0},
                                              [](const Piece& a, const Piece& b) { return a.out_slice < b.out_slice; });
  return {&*first, static_cast<size_t>(last - first)};
}

SourceRows::SourceRows(const Checkpoint& source, const Model& model, uint64_t keep_bytes)
    : source_(source), model_(model), keep_bytes_(keep_bytes) {}

void SourceRows::forget() {
  kept_.clear();
  kept_bytes_ = 0;
}

const EncodedMatrix& SourceRows::matrix(uint32_t weight, uint64_t slice) {
  const auto found = kept_.find({weight, slice});
  if (found != kept_.end()) return found->second;
  const Weight& source = model_.table.weights()[weight];
  EncodedMatrix loaded;
  if (source.format.is_dense() && source.row_order == RowOrder::kPlain && source.parts.size() == 1) {
    // Dense rows are read here rather than by the convention so that they are hashed as they pass.
    loaded = EncodedMatrix::make_unfilled(source.format, source.rows(), source.cols());
    read_hashed(source_.tensors()[source.parts[0].tensor], source.parts[0].tensor, slice * loaded.codes.size(),
                loaded.codes);
  } else {
    loaded = read_rows(source_, source, slice, 0, source.rows());
    if (!source.format.is_dense()) refuse_unusable(source_, source, slice, loaded);
  }
  if (kept_bytes_ + loaded.bytes() > keep_bytes_) forget();
  kept_bytes_ += loaded.bytes();
  return kept_.emplace(std::pair{weight, slice}, std::move(loaded)).first->second;
}

void SourceRows::read_hashed(const StoredTensor& tensor, uint32_t index, uint64_t offset, std::span<std::byte> out) {
  source_.read(tensor, offset, out);
  Running& running = running_[index];
  if (running.next == offset) {
    running.hash.update(out);
    running.next += out.size();
  }
}

void SourceRows::copy_tensor(uint32_t index, uint64_t chunk_bytes,
                             const std::function<void(uint64_t, std::span<const std::byte>)>& sink) {
  const StoredTensor& tensor = source_.tensors()[index];
  for (uint64_t offset = 0; offset < tensor.bytes; offset += chunk_bytes) {
    const auto chunk = buffer_.get(std::min(chunk_bytes, tensor.bytes - offset));
    read_hashed(tensor, index, offset, chunk);
    sink(offset, chunk);
  }
}

bool SourceRows::streams(const OutWeight& out, uint64_t slice) const {
  const auto pieces = pieces_of(out, slice);
  if (pieces.size() != 1 || out.vector_rows) return false;
  const Piece& piece = pieces[0];
  const Weight& weight = model_.table.weights()[piece.weight];
  const bool in_order = piece.row_stride == 1 && piece.out_begin == 0 && piece.out_stride == 1;
  return in_order && weight.format.is_dense() && weight.row_order == RowOrder::kPlain && weight.parts.size() == 1 &&
         kept_.find({piece.weight, piece.slice}) == kept_.end();
}

DenseView SourceRows::stream(const OutWeight& out, const Piece& piece, uint64_t begin, uint64_t count) {
  const Weight& weight = model_.table.weights()[piece.weight];
  const uint64_t row_bytes = weight.format.code_row_bytes(out.cols());
  const auto rows = buffer_.get(count * row_bytes);
  const uint64_t offset = (piece.slice * weight.rows() + piece.row_begin + begin) * row_bytes;
  read_hashed(source_.tensors()[weight.parts[0].tensor], weight.parts[0].tensor, offset, rows);
  return {rows.data(), weight.format.element, count, out.cols(), row_bytes};
}

DenseView SourceRows::vector_rows(const OutWeight& out, uint64_t slice, uint64_t begin, uint64_t count) {
  const auto pieces = pieces_of(out, slice);
  const Weight& first = model_.table.weights()[pieces[0].weight];
  const uint64_t size = element_bits(first.format.element) / 8;
  const auto gathered = buffer_.get(count * size);
  for (const Piece& piece : pieces) {
    const Weight& weight = model_.table.weights()[piece.weight];
    NIBBLE_CHECK(weight.format.element == first.format.element && weight.format.is_dense());
    const uint64_t per_slice = weight.shape.back();
    const EncodedMatrix& all = matrix(piece.weight, 0);
    for (uint64_t i = 0; i < piece.rows; ++i) {
      const uint64_t row = piece.out_begin + i * piece.out_stride;
      if (row < begin || row >= begin + count) continue;
      const uint64_t element =
          (weight.shape.size() == 2 ? piece.slice * per_slice : 0) + piece.row_begin + i * piece.row_stride;
      std::memcpy(gathered.data() + (row - begin) * size, all.codes.data() + element * size, size);
    }
  }
  return {gathered.data(), first.format.element, count, 1, size};
}

DenseView SourceRows::gather(const OutWeight& out, uint64_t slice, uint64_t begin, uint64_t count) {
  const auto pieces = pieces_of(out, slice);
  const auto dense_type = [this](const Piece& p) {
    const Format& format = model_.table.weights()[p.weight].format;
    return format.is_dense() ? format.element : Element::kF32;
  };
  Element element = dense_type(pieces[0]);
  for (const Piece& piece : pieces) {
    if (dense_type(piece) != element) element = Element::kF32;
  }
  const uint64_t cols = out.cols();
  const uint64_t row_bytes = cols * element_bits(element) / 8;
  if (pieces.size() == 1 && pieces[0].row_stride == 1 && pieces[0].out_begin == 0 && pieces[0].out_stride == 1) {
    const EncodedMatrix& held = matrix(pieces[0].weight, pieces[0].slice);
    if (held.format.is_dense())
      return {held.codes.data() + (pieces[0].row_begin + begin) * row_bytes, element, count, cols, row_bytes};
  }
  const auto gathered = buffer_.get(count * row_bytes);
  std::vector<float> decoded(cols);
  for (const Piece& piece : pieces) {
    const EncodedMatrix& from = matrix(piece.weight, piece.slice);
    // First i whose output row is not before `begin`.
    uint64_t i = piece.out_begin >= begin ? 0 : (begin - piece.out_begin + piece.out_stride - 1) / piece.out_stride;
    for (; i < piece.rows; ++i) {
      const uint64_t row = piece.out_begin + i * piece.out_stride;
      if (row >= begin + count) break;
      std::byte* to = gathered.data() + (row - begin) * row_bytes;
      const uint64_t source_row = piece.row_begin + i * piece.row_stride;
      if (from.format.is_dense() && from.format.element == element) {
        std::memcpy(to, from.codes.data() + source_row * row_bytes, row_bytes);
      } else if (from.format.is_dense()) {
        const uint64_t from_bytes = from.format.code_row_bytes(cols);
        convert({from.codes.data() + source_row * from_bytes, from.format.element, 1, cols, from_bytes}, element, to);
      } else {
        decode(cut_rows(from, source_row, 1), decoded.data(), cols);
        std::memcpy(to, decoded.data(), row_bytes);
      }
    }
  }
  return {gathered.data(), element, count, cols, row_bytes};
}

DenseView SourceRows::dense(const OutWeight& out, uint64_t slice, uint64_t begin, uint64_t count) {
  if (out.vector_rows) return vector_rows(out, slice, begin, count);
  if (streams(out, slice)) return stream(out, pieces_of(out, slice)[0], begin, count);
  return gather(out, slice, begin, count);
}

// Gate and up under second levels of their own cannot be rows of one matrix.
void SourceRows::refuse_to_join(const OutWeight& out, const Piece& piece, const EncodedMatrix& matrix,
                                const EncodedMatrix& first) const {
  const Weight& weight = model_.table.weights()[piece.weight];
  throw Error("this layout joins these matrices in one, and they have different second-level scales")
      .file(source_.file_of(source_.tensors()[weight.parts.front().tensor]))
      .tensor(weight.name)
      .value("joined", out.name)
      .value("slice", piece.out_slice)
      .value("second_level_scale", matrix.tensor_scale.value)
      .value("of_the_first", first.tensor_scale.value)
      .way_out("two runs: --unify-scales --layout compressed-tensors, and from what that makes this layout")
      .way_out("--layout compressed-tensors, which keeps them apart");
}

EncodedMatrix SourceRows::encoded(const OutWeight& out, uint64_t slice) {
  const auto pieces = pieces_of(out, slice);
  const EncodedMatrix& first = matrix(pieces[0].weight, pieces[0].slice);
  if (pieces.size() == 1 && pieces[0].row_begin == 0 && pieces[0].row_stride == 1 && pieces[0].rows == first.rows)
    return first;
  EncodedMatrix gathered = EncodedMatrix::make(first.format, out.rows(), out.cols());
  gathered.tensor_scale = first.tensor_scale;
  gathered.column_group = first.column_group;
  for (const Piece& piece : pieces) {
    const EncodedMatrix& from = matrix(piece.weight, piece.slice);
    NIBBLE_CHECK(from.format.block_rows == 1);
    if (from.tensor_scale != gathered.tensor_scale) refuse_to_join(out, piece, from, gathered);
    copy_rows(from, piece.row_begin, piece.row_stride, piece.rows, &gathered, piece.out_begin, piece.out_stride);
  }
  return gathered;
}

std::map<uint32_t, std::string> SourceRows::finish_hashes(const std::vector<uint32_t>& weights) {
  std::map<uint32_t, std::string> hashes;
  for (const uint32_t weight : weights) {
    for (const Part& part : model_.table.weights()[weight].parts) {
      const StoredTensor& tensor = source_.tensors()[part.tensor];
      Running& running = running_[part.tensor];
      while (running.next < tensor.bytes) {
        const auto piece = buffer_.get(std::min(kHashChunk, tensor.bytes - running.next));
        read_hashed(tensor, part.tensor, running.next, piece);
      }
      hashes[part.tensor] = running.hash.hex();
    }
  }
  return hashes;
}

}  // namespace nibble
