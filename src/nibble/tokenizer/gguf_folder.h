// The tokenizer side of a GGUF file as the files of a Hugging Face folder (FORMATS.md §9.4): tokenizer.json,
// tokenizer_config.json and chat_template.jinja (both hold the template: current readers look for the file, older ones
// for the key), generation_config.json. Byte-level BPE (`tokenizer.ggml.model` gpt2) only.
//
// The vocabulary holds every token of the list; those of kind control, unknown and user-defined are added tokens too.
// Everything in the file is untrusted: lists of differing length, tokens that stand twice or are not UTF-8, merges of
// tokens that do not exist and ids beyond the list are errors that name the key and the numbers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nibble/checkpoint/gguf.h"

namespace nibble {

inline constexpr size_t kMaxTokenBytes = 4096;  // the longest tokens of released vocabularies have a few hundred

// (file name, content). Empty if the file carries no tokenizer. Error naming the key for a tokenizer of another kind,
// lists of differing length, or an unknown pre-tokenizer.
std::vector<std::pair<std::string, std::string>> tokenizer_texts(const GgufFile& gguf, const std::string& file_name);

// A warning that names the chat templates beside the default one, which no file of a folder has a place for.
void tell_of_named_templates(const GgufFile& gguf);

}  // namespace nibble
