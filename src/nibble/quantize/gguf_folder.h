// The tokenizer side of a GGUF file as the files of a Hugging Face folder (FORMATS.md §9.4): tokenizer.json,
// tokenizer_config.json with the chat template, generation_config.json. Byte-level BPE (`tokenizer.ggml.model` gpt2)
// only.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nibble/checkpoint/gguf.h"

namespace nibble {

// (file name, content). Empty if the file carries no tokenizer. Error naming the key for a tokenizer of another kind,
// lists of differing length, or an unknown pre-tokenizer.
std::vector<std::pair<std::string, std::string>> tokenizer_texts(const GgufFile& gguf, const std::string& file_name);

}  // namespace nibble
