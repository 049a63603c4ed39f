#include "nibble/certify/tasks/table_task.h"

#include "nibble/base/rng.h"

namespace nibble {
namespace {

// The token as a number from `first` on, if it is one of `count` tokens there.
std::optional<uint64_t> within(TokenId token, uint64_t first, uint64_t count) {
  const auto id = static_cast<uint64_t>(token);  // a negative one becomes larger than any
  return id >= first && id - first < count ? std::optional(id - first) : std::nullopt;
}

}  // namespace

uint64_t draw_symbol(const TaskOptions& options, TaskDraw what, uint64_t of, uint64_t index) {
  const uint64_t seed = what == TaskDraw::kTable ? options.table_seed : options.chain_seed;
  const uint64_t stream = random_bits(random_bits(seed, static_cast<uint64_t>(what)), of);
  return random_bits(stream, index) % options.symbols;
}

std::vector<TokenId> TableTask::start(uint64_t chain) const {
  std::vector<TokenId> tokens;
  if (options_.tables > 1) tokens.push_back(static_cast<TokenId>(options_.symbols + chain % options_.tables));
  for (uint64_t index = 0; index < 2; ++index) {
    tokens.push_back(static_cast<TokenId>(draw_symbol(options_, TaskDraw::kStart, chain, index)));
  }
  return tokens;
}

std::vector<TokenId> TableTask::input(uint64_t chain, uint64_t step) const {
  if (inputs_ == TaskInputs::kNone) return {};
  return {static_cast<TokenId>(draw_symbol(options_, TaskDraw::kInput, chain, step))};
}

std::optional<TokenId> TableTask::expected(std::span<const TokenId> context) const {
  const std::optional<TableStep> step = last_step(context);
  return step ? std::optional(static_cast<TokenId>(next(*step))) : std::nullopt;
}

std::optional<uint64_t> TableTask::context_key(std::span<const TokenId> context) const {
  const std::optional<TableStep> step = last_step(context);
  if (!step) return std::nullopt;
  return step->table * options_.symbols * options_.symbols + place_in_table(*step);
}

uint64_t TableTask::drawn_entry(const TableStep& step) const {
  return draw_symbol(options_, TaskDraw::kTable, step.table, place_in_table(step));
}

std::optional<TableStep> TableTask::last_step(std::span<const TokenId> context) const {
  const uint64_t named = options_.tables > 1 ? 1 : 0;
  if (context.size() < named + 2) return std::nullopt;
  // States and inputs alternate: an odd number ends in a state.
  if (inputs_ == TaskInputs::kBehindEachState && (context.size() - named) % 2 != 0) return std::nullopt;
  const auto table =
      named == 0 ? std::optional<uint64_t>(0) : within(context.front(), options_.symbols, options_.tables);
  const auto last = context.last(2);
  const auto a = within(last[0], 0, options_.symbols);
  const auto b = within(last[1], 0, options_.symbols);
  if (!table || !a || !b) return std::nullopt;
  return TableStep{*table, *a, *b};
}

}  // namespace nibble
