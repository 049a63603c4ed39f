// What a model learns a task from, and what tests feed it: sequences by number, any of them without the others.
//
//   for (uint64_t row = 0; row < batch; ++row) {
//     const auto tokens = training_sequence(*task, update * batch + row, 257);
//     const auto wanted = labels(*task, tokens);
//   }
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nibble/certify/tasks/task.h"

namespace nibble {

// Sequence `stream`, below 2^63, of `length` tokens. It belongs to chain 2^63 + stream of the task: chains that are
// scored, which have small numbers, begin elsewhere and have other inputs, and all tables take turns.
//
// A task without inputs: start(), then symbols drawn uniformly, draw(chain_seed, 3, chain, i). Not a walk: that would
// run in a circle and leave most of the table out, while here each position asks for an entry of its own. A task with
// inputs: the chain that is right at every step. Its inputs lead through the whole table.
std::vector<TokenId> training_sequence(const Task& task, uint64_t stream, uint64_t length);

// By position, what is right behind it: Task::expected() of sequence[0 … position], so that logits and labels of one
// position belong together; -1 where nothing is expected (a start that is too short, a state behind which an input is
// given, tokens that are no symbols).
std::vector<TokenId> labels(const Task& task, std::span<const TokenId> sequence);

}  // namespace nibble
