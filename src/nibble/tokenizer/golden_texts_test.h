// What tests read from tests/golden/tokenization and from the unpacked tests/data/tokenizers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nibble/base/file.h"
#include "nibble/base/json.h"
#include "nibble/tokenizer/tokenizer.h"

namespace nibble::testing {

struct GoldenTexts {
  std::vector<std::string> hard, random, control;  // some of the hard ones are no UTF-8
};

const GoldenTexts& golden_texts();
Json tokenization_golden(const std::string& name);
Path unpacked_tokenizer(const std::string& name);

// The first 16 digits of SHA-256: of a text, and of ids as "1,2,3".
std::string digest_of(std::string_view text);
std::string digest_of_ids(const std::vector<TokenId>& ids);

}  // namespace nibble::testing
