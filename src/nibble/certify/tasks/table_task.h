// What tasks over a table share: draws, starts, inputs, and which table, a and b a context ends in. A task adds its
// name and its rule for one entry.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "nibble/certify/tasks/task.h"

namespace nibble {

// What a random number is for: equal seeds for tables and chains give unrelated numbers. The values are promised
// (task.h).
enum class TaskDraw : uint64_t { kTable = 0, kStart = 1, kInput = 2, kTraining = 3 };

// task.h's draw(), a symbol: the remainder's bias is below 2^-50 for the most symbols that there may be.
uint64_t draw_symbol(const TaskOptions& options, TaskDraw what, uint64_t of, uint64_t index);

// The place of an entry.
struct TableStep {
  uint64_t table = 0, a = 0, b = 0;
};

enum class TaskInputs : uint8_t {
  kNone,             // a and b are the last two tokens
  kBehindEachState,  // a is the last state, b the input behind it
};

class TableTask : public Task {
 public:
  // `name` must outlive the task.
  TableTask(std::string_view name, TaskInputs inputs, const TaskOptions& options)
      : name_(name), inputs_(inputs), options_(options) {}

  std::string_view name() const override { return name_; }
  const TaskOptions& options() const override { return options_; }
  std::vector<TokenId> start(uint64_t chain) const override;
  std::vector<TokenId> input(uint64_t chain, uint64_t step) const override;
  std::optional<TokenId> expected(std::span<const TokenId> context) const override;
  std::optional<uint64_t> context_key(std::span<const TokenId> context) const override;

 protected:
  // An entry of the tables that table_seed draws: by counter, so that none is stored.
  uint64_t drawn_entry(const TableStep& step) const;

 private:
  virtual uint64_t next(const TableStep& step) const = 0;  // a symbol

  std::optional<TableStep> last_step(std::span<const TokenId> context) const;
  // a · V + b, the order in which entries of a table are drawn.
  uint64_t place_in_table(const TableStep& step) const { return step.a * options_.symbols + step.b; }

  std::string_view name_;
  TaskInputs inputs_;
  TaskOptions options_;
};

}  // namespace nibble
