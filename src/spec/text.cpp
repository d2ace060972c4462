#include "spec/text.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace fivefold::spec {

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  return out + '"';
}

std::string shortened(std::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "…";
}

bool is_utf8(std::string_view text) {
  size_t i = 0;
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  while (i < text.size()) {
    const unsigned lead = byte(i);
    size_t more = 0;
    uint32_t code = lead;
    if (lead >= 0x80) {
      if (lead >= 0xc2 && lead < 0xe0) {
        more = 1, code = lead & 0x1f;
      } else if (lead >= 0xe0 && lead < 0xf0) {
        more = 2, code = lead & 0x0f;
      } else if (lead >= 0xf0 && lead < 0xf5) {
        more = 3, code = lead & 0x07;
      } else {
        return false;
      }
    }
    if (i + more >= text.size()) return false;
    for (size_t k = 1; k <= more; ++k) {
      if ((byte(i + k) & 0xc0) != 0x80) return false;
      code = code << 6 | (byte(i + k) & 0x3f);
    }
    const bool overlong = (more == 2 && code < 0x800) || (more == 3 && code < 0x10000);
    if (overlong || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
    i += more + 1;
  }
  return true;
}

}  // namespace fivefold::spec
