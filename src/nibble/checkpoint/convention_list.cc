// The conventions, in the order in which they look at a module. Rows and nothing else; a row is a function of
// conventions/.
#include "nibble/checkpoint/convention.h"

#define NIBBLE_CONVENTIONS(ROW) \
  ROW(gguf_blocks)              \
  ROW(gpt_oss)                  \
  ROW(gptq)                     \
  ROW(awq)                      \
  ROW(modelopt)                 \
  ROW(deepseek_v4)              \
  ROW(deepseek)                 \
  ROW(compressed_tensors)       \
  ROW(dense)

namespace nibble {

#define ROW(convention) const Convention& convention();
NIBBLE_CONVENTIONS(ROW)
#undef ROW

std::span<const Convention* const> conventions() {
#define ROW(convention) &convention(),
  static const Convention* const list[] = {NIBBLE_CONVENTIONS(ROW)};
#undef ROW
  return list;
}

}  // namespace nibble
