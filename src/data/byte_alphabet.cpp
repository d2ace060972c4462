#include "data/byte_alphabet.hpp"

#include <array>
#include <cstdint>

namespace fivefold::data {
namespace {

constexpr bool stands_for_itself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct AlphabetTables {
  std::array<uint16_t, 256> character_of{};
  std::array<int16_t, 0x144> byte_of{};
};

constexpr AlphabetTables make_tables() {
  AlphabetTables tables;
  for (int16_t& byte : tables.byte_of) byte = -1;
  uint16_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const uint16_t character = stands_for_itself(byte) ? uint16_t(byte) : next++;
    tables.character_of[size_t(byte)] = character;
    tables.byte_of[character] = int16_t(byte);
  }
  return tables;
}
constexpr AlphabetTables kAlphabet = make_tables();

}  // namespace

std::string to_byte_alphabet(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    const uint16_t c = kAlphabet.character_of[uint8_t(byte)];
    if (c < 0x80) {
      text.push_back(char(c));
    } else {
      text.push_back(char(0xC0 | c >> 6));
      text.push_back(char(0x80 | (c & 0x3F)));
    }
  }
  return text;
}

std::optional<std::string> from_byte_alphabet(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size();) {
    // All stand-ins take one or two bytes of UTF-8.
    uint32_t c = uint8_t(text[i++]);
    if (c >= 0x80) {
      if (c < 0xC2 || c > 0xC5 || i == text.size() || (uint8_t(text[i]) & 0xC0) != 0x80) return {};
      c = (c & 0x1F) << 6 | (uint8_t(text[i++]) & 0x3FU);
    }
    if (c >= kAlphabet.byte_of.size() || kAlphabet.byte_of[c] < 0) return {};
    bytes.push_back(char(kAlphabet.byte_of[c]));
  }
  return bytes;
}

}  // namespace fivefold::data
