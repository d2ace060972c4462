#pragma once

#include <cstddef>
#include <string_view>

namespace fivefold::data {

// Bytes of the valid UTF-8 character at the front of `text`, or 0 when there is none: overlong
// forms, surrogates and values above U+10FFFF are not valid. Source: Unicode 15, table 3-7.
size_t utf8_character(std::string_view text);

// Bytes at the front of `text` that are valid UTF-8.
size_t utf8_prefix(std::string_view text);

}  // namespace fivefold::data
