#include "nibble/tokenizer/tokenizer.h"
#include "nibble/tokenizer/utf8.h"

namespace nibble {

std::string StreamDecoder::push(TokenId id) {
  if (id < 0 || id >= tokenizer_->size()) return "";
  if (!show_special_tokens_ && tokenizer_->is_special(id)) return "";
  waiting_ += tokenizer_->bytes_of(id);
  std::string text;
  std::string_view rest = waiting_;
  while (!rest.empty()) {
    const Utf8Step step = next_utf8(rest);
    if (step.state == Utf8State::kCut) break;
    text += step.state == Utf8State::kWhole ? rest.substr(0, step.bytes) : kReplacement;
    rest.remove_prefix(step.bytes);
  }
  waiting_ = std::string(rest);
  return text;
}

std::string StreamDecoder::finish() {
  const std::string text = replace_broken_utf8(waiting_);
  waiting_.clear();
  return text;
}

std::string decode_tokens(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, bool show_special_tokens) {
  StreamDecoder decoder(tokenizer, show_special_tokens);
  std::string text;
  for (const TokenId id : ids) text += decoder.push(id);
  return text + decoder.finish();
}

}  // namespace nibble
