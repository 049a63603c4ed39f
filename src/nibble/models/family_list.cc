// The model families, one row each. Rows and nothing else.
#include "nibble/models/family.h"

#define NIBBLE_FAMILIES(ROW) \
  ROW(gpt_oss)               \
  ROW(deepseek_v3)           \
  ROW(kimi_k25)              \
  ROW(kimi_k3)               \
  ROW(deepseek_v4)           \
  ROW(deepseek_v41)          \
  ROW(qwen3_moe)             \
  ROW(qwen3_next)            \
  ROW(qwen3_5_moe)           \
  ROW(qwen4_exp)             \
  ROW(glm5_next)             \
  ROW(bailing_moe)           \
  ROW(bailing_hybrid)        \
  ROW(nemotron_h)            \
  ROW(glm4_moe)              \
  ROW(glm4_moe_lite)         \
  ROW(glm_moe_dsa)           \
  ROW(hy_v3)                 \
  ROW(hy_v4)                 \
  ROW(minimax_m2)            \
  ROW(mistral4)              \
  ROW(mistral_large_3)       \
  ROW(mixtral)               \
  ROW(llama)                 \
  ROW(minimax_m3)            \
  ROW(llama4)                \
  ROW(mimo_v2)               \
  ROW(inkling)               \
  ROW(step3p7)               \
  ROW(gemma4)

namespace nibble {

namespace model_families {
#define ROW(family) const Family& family();
NIBBLE_FAMILIES(ROW)
#undef ROW
}  // namespace model_families

std::span<const Family* const> families() {
#define ROW(family) &model_families::family(),
  static const Family* const list[] = {NIBBLE_FAMILIES(ROW)};
#undef ROW
  return list;
}

}  // namespace nibble
