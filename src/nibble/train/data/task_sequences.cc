#include <fmt/format.h>

#include <limits>
#include <utility>

#include "nibble/certify/tasks/task_data.h"
#include "nibble/train/data/train_data.h"

namespace nibble {
namespace {

// Held-out sequences have the numbers from here on: training never comes so far.
constexpr uint64_t kHeldOut = uint64_t{1} << 62;

class TaskSequences final : public TrainData {
 public:
  TaskSequences(std::unique_ptr<Task> task, uint64_t length) : task_(std::move(task)), length_(length) {}

  uint64_t length() const override { return length_; }
  uint64_t vocabulary() const override { return task_->vocabulary(); }
  std::string summary() const override {
    const TaskOptions& options = task_->options();
    return fmt::format("{}, {} symbols, {} table{}, sequences of {} tokens", task_->name(), options.symbols,
                       options.tables, options.tables == 1 ? "" : "s", length_);
  }
  void append(uint64_t number, SequenceBatch* batch) const override {
    const std::vector<TokenId> tokens = training_sequence(*task_, number, length_);
    const std::vector<TokenId> wanted = labels(*task_, tokens);
    batch->tokens.insert(batch->tokens.end(), tokens.begin(), tokens.end());
    batch->labels.insert(batch->labels.end(), wanted.begin(), wanted.end());
  }
  uint64_t held_out() const override { return std::numeric_limits<uint64_t>::max(); }
  void append_held_out(uint64_t number, SequenceBatch* batch) const override { append(kHeldOut + number, batch); }

 private:
  std::unique_ptr<Task> task_;
  uint64_t length_;
};

}  // namespace

std::unique_ptr<TrainData> task_sequences(std::unique_ptr<Task> task, uint64_t length) {
  return std::make_unique<TaskSequences>(std::move(task), length);
}

}  // namespace nibble
