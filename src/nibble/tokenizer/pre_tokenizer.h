// How a byte-level BPE tokenizer cuts text before it merges, by the name that GGUF stores in `tokenizer.ggml.pre`.
// Each row says what the tokenizer.json of the released model of that name says; a wrong cut would give other token ids
// without any other sign, so a name without a row is refused.
#pragma once

#include <span>
#include <string_view>

namespace nibble {

struct PreTokenizer {
  std::string_view name;                          // in `tokenizer.ggml.pre`
  bool nfc = false;                               // Unicode normalization first
  bool digits = false;                            // every digit apart
  std::span<const std::string_view> splits = {};  // regular expressions whose matches become words, one after another
  bool gpt2_words = false;                        // then GPT-2's own expression, built into the ByteLevel step
  bool whole_words = false;                       // a word that is a token is taken without merging (`ignore_merges`)
  bool adds_bos = false;                          // where the file does not say
};

// Null if unknown.
const PreTokenizer* find_pre_tokenizer(std::string_view name);
std::span<const PreTokenizer> pre_tokenizers();

}  // namespace nibble
