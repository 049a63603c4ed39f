// Reads the source rows of output weights and hashes every stored tensor on the way.
//
// One SourceRows serves one unit on one thread. A dense weight read front to back is hashed as it passes; what was not
// read so is hashed in a pass of its own at the end (finish_hashes). Matrices that are needed as a whole (low-bit
// sources, transposed or interleaved rows) are kept until the next one is asked for; memory is one such matrix plus the
// caller's chunk.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nibble/base/buffer.h"
#include "nibble/base/hash.h"
#include "nibble/checkpoint/weight_table.h"
#include "nibble/quantize/output_plan.h"

namespace nibble {

class SourceRows {
 public:
  // `keep_bytes`: matrices up to this size in all are kept in memory for a second pass.
  SourceRows(const Checkpoint& source, const Model& model, uint64_t keep_bytes);

  // Rows [begin, begin + count) of slice `slice` of `out` as dense rows: raw where all sources are dense of one type,
  // decoded to float32 otherwise. Valid until the next call.
  DenseView dense(const OutWeight& out, uint64_t slice, uint64_t begin, uint64_t count);
  // The whole slice in its stored format, rows gathered in output order (formats whose scales cover one row each, or
  // whole matrices in order). Error if matrices under different second levels would have to become one.
  EncodedMatrix encoded(const OutWeight& out, uint64_t slice);
  // Reads a matrix into memory, so that later calls for its rows need no second read.
  void hold(uint32_t weight, uint64_t slice) { matrix(weight, slice); }
  // A stored tensor as it is, front to back.
  void copy_tensor(uint32_t index, uint64_t chunk_bytes,
                   const std::function<void(uint64_t offset, std::span<const std::byte>)>& sink);
  // Forgets kept matrices (between steps that cannot share them).
  void forget();
  // True if dense() of this slice streams from the file without holding the matrix.
  bool streams(const OutWeight& out, uint64_t slice) const;

  // XXH3-128 of every stored tensor of the unit's source weights, by tensor index.
  std::map<uint32_t, std::string> finish_hashes(const std::vector<uint32_t>& weights);

 private:
  struct Running {
    Xxh3 hash;
    uint64_t next = 0;  // bytes hashed so far
  };
  const EncodedMatrix& matrix(uint32_t weight, uint64_t slice);
  void read_hashed(const StoredTensor& tensor, uint32_t index, uint64_t offset, std::span<std::byte> out);
  DenseView stream(const OutWeight& out, const Piece& piece, uint64_t begin, uint64_t count);
  DenseView vector_rows(const OutWeight& out, uint64_t slice, uint64_t begin, uint64_t count);
  [[noreturn]] void refuse_to_join(const OutWeight& out, const Piece& piece, const EncodedMatrix& matrix,
                                   const EncodedMatrix& first) const;
  DenseView gather(const OutWeight& out, uint64_t slice, uint64_t begin, uint64_t count);

  const Checkpoint& source_;
  const Model& model_;
  uint64_t keep_bytes_, kept_bytes_ = 0;
  std::map<std::pair<uint32_t, uint64_t>, EncodedMatrix> kept_;
  std::map<uint32_t, Running> running_;
  Buffer buffer_;
};

// Rows [begin, begin + count) of an encoded matrix as a view. `begin` may lie inside a block of rows.
EncodedView cut_rows(const EncodedMatrix& matrix, uint64_t begin, uint64_t count);

// Pieces of one slice of `out`.
std::span<const Piece> pieces_of(const OutWeight& out, uint64_t slice);

}  // namespace nibble
