// Chains as a JSON Lines file, one object a line:
//
//   {"prompt": [ID, …], "answer": [ID, …], "capped": true, "given": [POSITION, …], "cluster": N}
//
// prompt and answer are token ids of the model's vocabulary, at least one each; the answer holds the end token that
// ended it. capped (false): a limit cut the answer. given (none): positions in the answer, from 0, that the model did
// not choose. cluster (the line's number, from 0): chains that share one are drawn together. Other keys are left alone,
// so that a file may carry texts beside the ids. Empty lines are skipped.
#pragma once

#include <string>
#include <vector>

#include "nibble/base/file.h"
#include "nibble/certify/chain.h"

namespace nibble {

// Error naming file and line for what is no such object, for an empty prompt or answer, positions outside the answer or
// not ascending, an answer without a chosen token, and for a file without chains.
std::vector<Chain> read_chains(const Path& path);

std::string chain_line(const Chain& chain);  // with its end of line

}  // namespace nibble
