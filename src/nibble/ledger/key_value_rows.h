// Which rows of a weight are keys and values. Tensor parallelism deals out heads; where a layer has fewer key/value
// heads than there are GPUs, they are copied, whether they stand in matrices of their own or in one with the queries.
#pragma once

#include <cstdint>

#include "nibble/models/family.h"
#include "nibble/models/model_spec.h"

namespace nibble {

struct KeyValueRows {
  uint64_t heads = 0;  // that the rows below belong to; 0: there are none
  uint64_t keys = 0, values = 0;
  friend auto operator<=>(const KeyValueRows&, const KeyValueRows&) = default;
};

// Of linear attention only a single key head is copied, with its queries: of several every GPU needs those of its own
// heads.
KeyValueRows key_value_rows(const ModelSpec& spec, const ParamSpec& param);

// Key/value heads are copied where there are fewer of them than parts: how many different parts there are.
uint64_t key_value_parts(uint64_t kv_heads, uint64_t tp);

}  // namespace nibble
