// What will be written, in full, before anything is: every output weight with its source rows, its stored parts and
// their places in the shards. The plan depends on the source's headers, its indexes of groups (act-order) and the
// request alone, so every thread, worker and resumed run has the same one, and bytes can be written in any order.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/base/text_pool.h"
#include "nibble/checkpoint/convention.h"
#include "nibble/models/model.h"
#include "nibble/quantize/policy.h"
#include "nibble/quantize/request.h"

namespace nibble {

// Rows of an output slice that come from a source weight: output row out_begin + i * out_stride is source row
// row_begin + i * row_stride, for i < rows.
struct Piece {
  uint32_t weight = 0;  // index into model.table.weights()
  uint64_t slice = 0, row_begin = 0, row_stride = 1, rows = 0;
  uint64_t out_slice = 0, out_begin = 0, out_stride = 1;
};

enum class Route : uint8_t {
  kRawCopy,  // the stored tensors, byte for byte
  kDense,    // dense in, dense out: gathered rows, converted where the type differs; low-bit sources are decoded
  kMove,     // same codes and scales in another convention (or expert form)
  kRecast,   // exact cast between formats
  kEncode,   // rounded
};

struct OutWeight {
  std::string name;
  ParamKind param;
  Action action = Action::kCopied;
  Route route = Route::kRawCopy;
  std::string_view reason;  // in OutputPlan::reasons
  Format format;
  std::vector<uint64_t> shape;  // logical (…, N, K)
  bool transposed = false;      // dense stacks that the family stores (E, K, N)
  bool vector_rows = false;     // expert biases: each element is a row of one column (slices x rows x 1)
  std::vector<Piece> pieces;    // by out_slice, then out_begin; kRawCopy: one, naming the weight
  const Convention* convention = nullptr;
  std::vector<uint64_t> part_offsets;  // of the stored tensors (parts_of), absolute in the shard
  std::vector<uint32_t> raw_tensors;   // kRawCopy: source tensor of each part
  uint32_t shard = 0;
  uint32_t fusion = 0;     // equal and not 0: share one second-level scale, slice by slice
  bool one_scale = false;  // all slices share it as well

  uint64_t slices() const;
  uint64_t rows() const;
  uint64_t cols() const;
  WriteRequest request(Element model_dtype) const;
};

// The first weight of the source that goes into it.
const Weight& first_source(const Model& model, const OutWeight& out);

// Outputs that are made together because they share source tensors or a second-level scale.
struct Unit {
  std::vector<uint32_t> outs;  // ascending
  uint64_t bytes_in = 0, bytes_out = 0;
  uint64_t header_bytes = 0;  // that its tensors take in the shard's header, at most
};

struct OutShard {
  std::string file_name;
  uint64_t file_bytes = 0;
  std::vector<Unit> units;  // by first output; the file holds their bytes in this order
  uint64_t bytes_in = 0;
};

struct OutputPlan {
  const Convention* layout = nullptr;  // null for dense targets
  Element model_dtype = Element::kBF16;
  TextPool reasons;
  std::vector<OutWeight> outs;
  std::vector<OutShard> shards;
  std::map<std::string, std::string> metadata;  // of every shard's header
  uint64_t bytes_in = 0, bytes_out = 0;
  uint64_t act_ordered = 0;        // outputs that could be taken over as they are, but for that
  std::vector<std::string> notes;  // "2 tensors unknown to the family, copied: …"
};

// Errors: a selected weight that the format cannot hold (tensor, K, group, legal groups), a layout that cannot hold the
// format, a source that cannot be decoded.
OutputPlan plan_output(const Checkpoint& source, const Model& model, const QuantizeRequest& request);

// The stored tensors of an output, and the header and places of a shard's: made when asked for, since together they are
// larger than the rest of the plan.
std::vector<PartDecl> parts_of(const OutputPlan& plan, const OutWeight& out, const Checkpoint& source);
SafetensorsLayout shard_layout(const OutputPlan& plan, const OutShard& shard, const Checkpoint& source);

}  // namespace nibble
