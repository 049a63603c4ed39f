#include "nibble/tokenizer/golden_texts_test.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <span>

#include "nibble/base/hash.h"
#include "nibble/testing/temp_dir.h"

namespace nibble::testing {
namespace {

std::string bytes_of_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

GoldenTexts read_texts() {
  const Json json = tokenization_golden("texts.json");
  GoldenTexts texts;
  texts.hard = json["hard"].get<std::vector<std::string>>();
  for (const Json& hex : json["bytes"]) texts.hard.push_back(bytes_of_hex(hex.get<std::string>()));
  texts.random = json["random"].get<std::vector<std::string>>();
  texts.control = json["control"].get<std::vector<std::string>>();
  return texts;
}

}  // namespace

const GoldenTexts& golden_texts() {
  static const GoldenTexts texts = read_texts();
  return texts;
}

Json tokenization_golden(const std::string& name) { return read_json(golden_dir() / "tokenization" / name); }

Path unpacked_tokenizer(const std::string& name) { return Path(NIBBLE_UNPACKED_TOKENIZERS) / name; }

std::string digest_of(std::string_view text) { return sha256_hex(std::as_bytes(std::span(text))).substr(0, 16); }

std::string digest_of_ids(const std::vector<TokenId>& ids) { return digest_of(fmt::format("{}", fmt::join(ids, ","))); }

}  // namespace nibble::testing
