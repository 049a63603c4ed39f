// Prompts whose answers become chains.
//
//   FILE.jsonl   one a line: {"prompt": TEXT}, {"messages": [...]} or {"tokens": [ID, …]}; other keys are left alone
//   any other    one a line, as plain text; empty lines are skipped
//
// Text of a model that has a chat template is what its user says; of one without, the beginning that it goes on with.
// The bundled prompts (data/prompts) are taken where no file is named.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nibble/tokenizer/tokenizer.h"

namespace nibble {

struct Prompt {
  std::string text;  // as it stands in the file; empty for ids
  std::vector<TokenId> tokens;
};

// The prompts of `file`, or the bundled ones. `model`: where tokenizer and template are. Error naming file and line for
// what is no prompt, and for a file without any.
std::vector<Prompt> read_prompts(const std::optional<std::string>& file, const std::string& model);

}  // namespace nibble
