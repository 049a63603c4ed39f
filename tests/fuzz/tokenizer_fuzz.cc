// Any bytes as a tokenizer.json and a text behind it, separated by a NUL: an Error, or a tokenizer whose ids exist,
// which gives the user no control token and whose stream is its text.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "nibble/base/check.h"
#include "nibble/base/error.h"
#include "nibble/tokenizer/tokenizer_json.h"

namespace {

void check_text(const nibble::Tokenizer& tokenizer, const std::string& text) {
  const size_t half = text.size() / 2;
  for (const bool trusted : {false, true}) {
    const auto ids = tokenizer.encode_spans({{text.substr(0, half), trusted}, {text.substr(half), trusted}});
    nibble::StreamDecoder decoder(tokenizer, true);
    std::string pieces;
    for (const nibble::TokenId id : ids) {
      NIBBLE_CHECK(id >= 0 && id < tokenizer.size() && !tokenizer.bytes_of(id).empty());
      NIBBLE_CHECK(trusted || !tokenizer.is_control(id));
      pieces += decoder.push(id);
    }
    NIBBLE_CHECK(pieces + decoder.finish() == nibble::decode_tokens(tokenizer, ids, true));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  const std::string json(input.substr(0, end));
  const std::string text(end == std::string_view::npos ? "Hello w\u00f6rld 123 <x>" : input.substr(end + 1));
  try {
    check_text(*nibble::tokenizer_from_json({"input", json}, {}), text);
  } catch (const nibble::Error& error) {
    NIBBLE_CHECK(!error.ways_out().empty());
  }
  return 0;
}
