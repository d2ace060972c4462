#include "data/utf8.hpp"

#include <cstdint>
#include <cstring>

namespace fivefold::data {

size_t utf8_character(std::string_view text) {
  if (text.empty()) return 0;
  const auto at = [&](size_t i) { return i < text.size() ? uint8_t(text[i]) : uint8_t{0}; };
  const uint8_t a = at(0), b = at(1);
  const auto follows = [](uint8_t c) { return (c & 0xC0) == 0x80; };
  if (a < 0x80) return 1;
  if (a < 0xC2 || a > 0xF4 || !follows(b)) return 0;
  if (a < 0xE0) return 2;
  if (!follows(at(2))) return 0;
  if (a < 0xF0) {
    const bool overlong = a == 0xE0 && b < 0xA0, surrogate = a == 0xED && b >= 0xA0;
    return overlong || surrogate ? 0 : 3;
  }
  if (!follows(at(3)) || (a == 0xF0 && b < 0x90) || (a == 0xF4 && b >= 0x90)) return 0;
  return 4;
}

size_t utf8_prefix(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    uint64_t eight = 0;
    if (i + 8 <= text.size()) {
      std::memcpy(&eight, text.data() + i, 8);
      if ((eight & 0x8080808080808080) == 0) {
        i += 8;
        continue;
      }
    }
    const size_t n = utf8_character(text.substr(i));
    if (n == 0) break;
    i += n;
  }
  return i;
}

}  // namespace fivefold::data
