#pragma once
// Unicode normalisation form C (UAX #15), which Qwen's tokenizers apply before all else.

#include <string>
#include <string_view>

namespace fivefold::data {

// True when one look says that `text` is in form C already: no character from U+0300 on, where the
// first combining marks are. False says nothing.
bool is_surely_nfc(std::string_view text);

// `text` in form C; bytes that are not UTF-8 stay where they are.
std::string to_nfc(std::string_view text);

}  // namespace fivefold::data
