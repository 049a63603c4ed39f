#include "nibble/checkpoint/act_order.h"

#include "nibble/checkpoint/conventions/part_reader.h"

namespace nibble {

bool has_act_order(const Checkpoint& checkpoint, const Weight& weight) {
  const Part* index = weight.part(PartKind::kGroupIndex);
  if (index == nullptr) return false;
  return !read_group_index(checkpoint, checkpoint.tensors()[index->tensor], weight.format.scale_cols(weight.cols()),
                           weight.format.block_cols)
              .empty();
}

}  // namespace nibble
