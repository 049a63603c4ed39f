// Chains that can be checked step by step: a model that was trained on a task writes on from a start, and every token
// is right or wrong by the task's own rule, given the tokens before it. Diverged from a reference is not wrong; this
// is.
//
// All tasks are a table next = table[a][b] over the symbols 0 … V - 1, of V · V entries. They differ in where a and b
// come from, and in the table:
//
// * table-walk: a and b are the last two tokens, the older one first; the table is drawn. No input, so the walk soon
//   runs in a cycle.
// * running-sum: a is the last sum, as it was written, b a fresh random input; the table is addition, (a + b) mod V,
//   whatever the seed, and so there is one.
// * state-machine: a is the last state, b a fresh random input; the table is drawn.
//
// With inputs the context is "state, input, state, input, …": the model writes states, inputs are given to it. Several
// tables: tokens V … V + tables - 1 name them, and every context begins with one. Chain c uses table c mod tables.
//
// Everything is a pure function of (seed, chain, step) by counter (base/rng.h), so that no run depends on order or
// batch. Models are trained on these numbers, which therefore may never change:
//
//   draw(seed, what, of, i) = random_bits(random_bits(random_bits(seed, what), of), i) mod V
//   table t       entry [a][b] is draw(table_seed, 0, t, a · V + b)
//   start of c    two tokens, draw(chain_seed, 1, c, 0) and draw(chain_seed, 1, c, 1)
//   input         behind the token of step s: draw(chain_seed, 2, c, s)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "nibble/tokenizer/tokenizer.h"

namespace nibble {

struct TaskOptions {
  uint64_t symbols = 64;    // V, at least 2
  uint64_t tables = 1;      // at least 1; tables · V · V is at most kMostTableEntries
  uint64_t table_seed = 0;  // the tables; the model was trained with it
  uint64_t chain_seed = 1;  // starts and inputs
};

constexpr uint64_t kMostTableEntries = uint64_t{1} << 26;

class Task {
 public:
  virtual ~Task() = default;
  virtual std::string_view name() const = 0;  // as in --task, without options
  virtual const TaskOptions& options() const = 0;
  uint64_t vocabulary() const;  // symbols and names of tables; with one table there are no names

  // What a chain begins with: the table's name where there are several, two symbols of a walk, or state and input.
  virtual std::vector<TokenId> start(uint64_t chain) const = 0;
  // What is given to the model behind the token of step `step` (0-based): an input, or nothing.
  virtual std::vector<TokenId> input(uint64_t chain, uint64_t step) const = 0;
  // The right token behind a context that start(), choices and input() made. Choices may be wrong ones, even tokens
  // that are no symbols: where the rule meets one, what is right is nullopt. So it is for a context that is too short,
  // and for one that ends in a state, behind which an input is given and not chosen.
  virtual std::optional<TokenId> expected(std::span<const TokenId> context) const = 0;
  // What `expected` looks at, as one number; two equal ones are the same context: table, a, b. nullopt where nothing is
  // expected.
  virtual std::optional<uint64_t> context_key(std::span<const TokenId> context) const = 0;
};

// The names of all tasks, and a task by its name: "table-walk", or with options "table-walk:symbols=64,tables=4,seed=7"
// (seed: of the tables), each at most once. Error for anything else, with the nearest valid names, and for options
// outside their limits, with the numbers.
std::vector<std::string_view> task_names();
std::unique_ptr<Task> make_task(std::string_view text, uint64_t chain_seed);

}  // namespace nibble
