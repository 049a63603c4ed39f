#include "nibble/tokenizer/pre_tokenizer.h"

#include <array>

namespace nibble {
namespace {

constexpr std::array<std::string_view, 1> kLlama3{
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
// One digit at a time where Llama 3 takes up to three.
constexpr std::array<std::string_view, 1> kQwen2{
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
// Capitals begin a word of their own.
constexpr std::array<std::string_view, 1> kGpt4o{
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
// Digits, Chinese and Japanese, then the rest. The released file holds the line ends as characters, not as escapes.
constexpr std::array<std::string_view, 3> kDeepseekV3{
    R"(\p{N}{1,3})", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
    " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"};

// Han by itself, and gpt-4o's words without it. The expression stands in the release's Python code.
constexpr std::array<std::string_view, 1> kKimi{
    R"([\p{Han}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr std::array kRows{
    PreTokenizer{.name = "gpt-2", .gpt2_words = true},
    PreTokenizer{.name = "smollm", .digits = true, .gpt2_words = true},
    PreTokenizer{.name = "llama-bpe", .splits = kLlama3, .whole_words = true, .adds_bos = true},
    PreTokenizer{.name = "qwen2", .nfc = true, .splits = kQwen2},
    PreTokenizer{.name = "gpt-4o", .splits = kGpt4o, .whole_words = true},
    PreTokenizer{.name = "deepseek-v3", .splits = kDeepseekV3},
    PreTokenizer{.name = "glm4", .splits = kLlama3},
    PreTokenizer{.name = "minimax-m2", .splits = kGpt4o},
    PreTokenizer{.name = "kimi-k2", .splits = kKimi, .whole_words = true},
};

}  // namespace

std::span<const PreTokenizer> pre_tokenizers() { return kRows; }

const PreTokenizer* find_pre_tokenizer(std::string_view name) {
  for (const PreTokenizer& row : kRows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace nibble
