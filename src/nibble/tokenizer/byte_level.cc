#include "nibble/tokenizer/byte_level.h"

#include <array>

#include "nibble/tokenizer/utf8.h"

namespace nibble {
namespace {

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD && byte <= 0xFF);
}

constexpr unsigned kShifted = 68;  // bytes that do not
constexpr unsigned kEnd = 0x100 + kShifted;

struct Tables {
  std::array<uint16_t, 256> symbol{};
  std::array<int16_t, kEnd> byte{};
};

constexpr Tables kTables = [] {
  Tables tables;
  tables.byte.fill(-1);
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const unsigned symbol = stands_for_itself(byte) ? byte : next++;
    tables.symbol[byte] = static_cast<uint16_t>(symbol);
    tables.byte[symbol] = static_cast<int16_t>(byte);
  }
  return tables;
}();
static_assert(kTables.symbol[' '] == 0x120 && kTables.symbol[0xAD] == kEnd - 1);

}  // namespace

std::optional<std::string> bytes_of_symbols(std::string_view symbols) {
  std::string bytes;
  bytes.reserve(symbols.size());
  while (!symbols.empty()) {
    const Utf8Step step = next_utf8(symbols);
    if (step.state != Utf8State::kWhole || step.code_point >= kEnd || kTables.byte[step.code_point] < 0)
      return std::nullopt;
    bytes += static_cast<char>(kTables.byte[step.code_point]);
    symbols.remove_prefix(step.bytes);
  }
  return bytes;
}

std::string symbols_of_bytes(std::string_view bytes) {
  std::u16string symbols;
  symbols.reserve(bytes.size());
  for (const char byte : bytes) symbols += static_cast<char16_t>(kTables.symbol[static_cast<uint8_t>(byte)]);
  std::string text;
  append_utf8(symbols, &text);
  return text;
}

}  // namespace nibble
