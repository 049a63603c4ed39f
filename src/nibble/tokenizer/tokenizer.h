// Text to token ids and back: byte-level BPE as published in `tokenizer.json`, in tiktoken files (Kimi-K2) and in the
// keys of a GGUF file. What a release writes in another way (SentencePiece with byte fallback, WordPiece, unigram) is
// refused by name when it is loaded.
//
// The ids equal those of Hugging Face's `tokenizers` for the same file (`add_special_tokens` as the caller says).
// Text is UTF-8; bytes that are not become U+FFFD first, as everywhere in the field.
//
// Control tokens ("<|im_end|>", "<tool_call>") are ids that end turns and call tools. They arise only from text that
// may hold them: a span that a user wrote is never searched for them, whatever it spells, and no merging makes one. A
// control token never arises from two spans together. They are all added tokens that are special, and of the others
// those whose name is more than letters, digits and white space; one character alone is text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nibble {

using TokenId = int32_t;

// A piece of a prompt. What stands on both sides of a boundary is still one text to the vocabulary: a word that begins
// in one span and ends in the next has the ids that it has in one piece.
struct TextSpan {
  std::string text;
  bool may_hold_control_tokens = false;

  bool operator==(const TextSpan&) const = default;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Plain text: no control token arises from it, and none is added in front or behind.
  std::vector<TokenId> encode(std::string_view text) const { return encode_spans({{std::string(text), false}}); }

  // Control tokens are found where `may_hold_control_tokens`; nothing is added in front or behind.
  virtual std::vector<TokenId> encode_spans(const std::vector<TextSpan>& spans) const = 0;

  // The bytes of a token; of an added token its name. Empty for an id that the vocabulary leaves out. These three abort
  // outside [0, size()).
  virtual std::string_view bytes_of(TokenId id) const = 0;
  virtual bool is_control(TokenId id) const = 0;
  // Is it left out of decoded text, as the file says (`special`)? All but a few control tokens are; <think> is not.
  virtual bool is_special(TokenId id) const = 0;

  // Ids are in [0, size()): the vocabulary and the added tokens.
  virtual TokenId size() const = 0;
  // The id of a token by its name: added tokens only.
  virtual std::optional<TokenId> find_added(std::string_view name) const = 0;

  // What is put before and behind a plain prompt (`add_special_tokens`), such as a begin-of-text token; may be empty.
  virtual const std::vector<TokenId>& prefix() const = 0;
  virtual const std::vector<TokenId>& suffix() const = 0;
};

// The tokenizer of a checkpoint folder (`tokenizer.json`, else a tiktoken file with its configuration, else its only
// `.gguf` file), of a `.gguf` file, of the folder of a `.safetensors` file, or of a `tokenizer.json` itself with the
// configuration beside it. Throws Error with the file and a way out where there is none, where it is damaged, or where
// it is of a kind that nibble does not read. The result may be used by several threads at once.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& model);

// Text of ids that come one by one: a character whose bytes are spread over tokens is given out when it is whole.
// Special tokens are left out unless asked for; ids beyond the tokenizer's, which a model's padded vocabulary may give,
// always.
class StreamDecoder {
 public:
  // The tokenizer must outlive the decoder.
  explicit StreamDecoder(const Tokenizer& tokenizer, bool show_special_tokens = false)
      : tokenizer_(&tokenizer), show_special_tokens_(show_special_tokens) {}

  // What can be written now that `id` came. Bytes that can no longer become UTF-8 come out as U+FFFD, as many as
  // Python's `bytes.decode("utf-8", errors="replace")` writes.
  std::string push(TokenId id);
  // What was still waiting for its rest, as U+FFFD.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool show_special_tokens_;
  std::string waiting_;  // 0 to 3 bytes of a character
};

std::string decode_tokens(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                          bool show_special_tokens = false);

}  // namespace nibble
