#include "nibble/certify/tasks/task_data.h"

#include <optional>

#include "nibble/base/check.h"
#include "nibble/certify/tasks/table_task.h"

namespace nibble {
namespace {

constexpr uint64_t kFirstChain = uint64_t{1} << 63;

}  // namespace

std::vector<TokenId> training_sequence(const Task& task, uint64_t stream, uint64_t length) {
  NIBBLE_CHECK(stream < kFirstChain);
  const uint64_t chain = kFirstChain + stream;
  std::vector<TokenId> tokens = task.start(chain);
  for (uint64_t step = 0; tokens.size() < length; ++step) {
    const std::vector<TokenId> input = task.input(chain, step);
    if (input.empty()) {
      tokens.push_back(static_cast<TokenId>(draw_symbol(task.options(), TaskDraw::kTraining, chain, step)));
      continue;
    }
    const std::optional<TokenId> right = task.expected(tokens);
    NIBBLE_CHECK(right);
    tokens.push_back(*right);
    tokens.insert(tokens.end(), input.begin(), input.end());
  }
  tokens.resize(length);
  return tokens;
}

std::vector<TokenId> labels(const Task& task, std::span<const TokenId> sequence) {
  std::vector<TokenId> wanted;
  wanted.reserve(sequence.size());
  for (size_t i = 0; i < sequence.size(); ++i) wanted.push_back(task.expected(sequence.first(i + 1)).value_or(-1));
  return wanted;
}

}  // namespace nibble
