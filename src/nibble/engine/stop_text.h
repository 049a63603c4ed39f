// Text of tokens as they come, up to the first of some stop texts: what may still be the beginning of one is held back.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nibble/tokenizer/tokenizer.h"

namespace nibble {

class StopText {
 public:
  // `tokenizer` null: there is no text.
  StopText(const Tokenizer* tokenizer, std::vector<std::string> stops, std::function<void(std::string_view)> show);

  // Whether a stop text is complete; the text before it was shown then, and nothing is from then on.
  bool push(TokenId token);
  // Shows what was held back.
  void finish();

 private:
  bool take(const std::string& text);

  std::optional<StreamDecoder> decoder_;
  std::vector<std::string> stops_;
  std::function<void(std::string_view)> show_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace nibble
