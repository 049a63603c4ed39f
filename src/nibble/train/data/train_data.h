// What a model is trained on: sequences by number, each a pure function of the data and its number, so that a run that
// goes on after a stop reads what it would have read.
//
//   const auto data = task_sequences(make_task("state-machine:symbols=64", seed), 520);
//   const SequenceBatch batch = data->batch(step * rows, rows);
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nibble/base/file.h"
#include "nibble/certify/tasks/task.h"
#include "nibble/tokenizer/tokenizer.h"

namespace nibble {

struct SequenceBatch {
  uint64_t rows = 0, length = 0;
  std::vector<TokenId> tokens;  // (rows, length)
  std::vector<TokenId> labels;  // what is right behind each token; -1: nothing is asked there
};

class TrainData {
 public:
  virtual ~TrainData() = default;
  virtual uint64_t length() const = 0;      // tokens of a sequence
  virtual uint64_t vocabulary() const = 0;  // all tokens lie below it
  virtual std::string summary() const = 0;  // one line
  // Sequence `number` of the training stream, appended to the batch: length() tokens and labels.
  virtual void append(uint64_t number, SequenceBatch* batch) const = 0;
  // How many sequences are kept from training, and one of them. A task has as many as there are numbers.
  virtual uint64_t held_out() const = 0;
  virtual void append_held_out(uint64_t number, SequenceBatch* batch) const = 0;

  SequenceBatch batch(uint64_t first, uint64_t rows) const;
  SequenceBatch held_out_batch(uint64_t first, uint64_t rows) const;
};

// Sequences of a checkable task (certify/tasks/task_data.h), labelled by its rule.
std::unique_ptr<TrainData> task_sequences(std::unique_ptr<Task> task, uint64_t length);

// Windows of `length` tokens and the one behind them, cut from texts as they lie; labels are the next tokens. A text's
// rest is a window that is not full: it is padded with token 0, without labels. One window in `held_out_every`, drawn
// by the seed, is kept from training; the others come in an order drawn anew for each round. Error if there is no text
// of two tokens, or if nothing would be left for one of the two.
struct WindowOptions {
  uint64_t length = 512;
  uint64_t held_out_every = 20;
  uint64_t seed = 0;
};
// A text of tokens; `asked_from`: the first token that is asked for (a prompt is only read).
struct TokenText {
  std::vector<TokenId> tokens;
  uint64_t asked_from = 1;
  std::vector<uint64_t> given = {};  // ascending places that are read but not asked for
};
std::unique_ptr<TrainData> window_sequences(std::vector<TokenText> texts, const WindowOptions& options);

// The chains of a file (certify/chain_file.h): prompts and given tokens are read, the rest is asked for.
std::vector<TokenText> texts_of_chains(const Path& path);
// A text file through the tokenizer of a model.
std::vector<TokenText> texts_of_text(const Path& path, const Path& model);

}  // namespace nibble
