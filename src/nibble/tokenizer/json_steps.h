// The small parts of a tokenizer.json: what happens to a text before and after its byte pairs are merged. A kind that
// is not read is refused by its name.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/base/error.h"
#include "nibble/base/json.h"
#include "nibble/tokenizer/text_normalizer.h"
#include "nibble/tokenizer/tokenizer.h"
#include "nibble/tokenizer/word_cutter.h"

namespace nibble {

TextNormalizer read_normalizer(const Json& json, const std::string& file);
// The last step is ByteLevel, or the model is none of bytes.
std::vector<CutStep> read_pre_tokenizer(const Json& json, const std::string& file);
void check_decoder(const Json& json, const std::string& file);

// What is put around a text.
struct TextFrame {
  std::vector<TokenId> prefix, suffix;
  bool empty() const { return prefix.empty() && suffix.empty(); }
};
// `check_id` throws for an id that the tokenizer does not have.
TextFrame read_post_processor(const Json& json, const std::string& file,
                              const std::function<TokenId(uint64_t)>& check_id);

// "a `normalizer` of a kind that nibble does not read" with its name.
Error unread_kind(std::string_view part, std::string_view kind, const std::string& file);
// What a part of the file says is not what it can say.
Error broken_part(std::string_view part, std::string_view what, const std::string& file);

}  // namespace nibble
