#include "nibble/engine/bench/pass_row.h"

#include <fmt/format.h>

#include "nibble/base/error.h"
#include "nibble/engine/generate.h"
#include "nibble/ledger/attention_cost.h"
#include "nibble/ledger/kv_cache.h"

namespace nibble {

OpWork prefill_attention(const ModelSpec& spec, CacheElement cache, uint64_t tokens) {
  OpWork work;
  work.f32_flops = prefill_attention_flops(spec, tokens).sum();
  work.bytes = static_cast<double>(KvCache(spec).bytes(tokens, cache_element_bytes(cache)));
  return work;
}

OpWork decode_attention(const ModelSpec& spec, CacheElement cache, uint64_t context) {
  OpWork work;
  work.f32_flops = decode_attention_flops(spec, context).sum();
  work.bytes = static_cast<double>(cache_bytes_read(spec, cache, context, context + 1));
  return work;
}

void check_positions(const ModelSpec& spec, uint64_t tokens) {
  if (spec.max_positions == 0 || tokens <= spec.max_positions) return;
  throw Error("more tokens than the model has positions")
      .value("tokens", tokens)
      .value("positions", spec.max_positions)
      .way_out(fmt::format("--tokens, and --context with --decode, of at most {}", spec.max_positions));
}

}  // namespace nibble
