#pragma once
// GPT-2's printable stand-ins for bytes: in tokenizer.json a token's bytes are written as
// characters, printable Latin-1 as itself and every other byte as U+0100 and up, in order.

#include <optional>
#include <string>
#include <string_view>

namespace fivefold::data {

// Bytes to their stand-ins, as UTF-8.
std::string to_byte_alphabet(std::string_view bytes);
// And back; nothing when a character stands for no byte.
std::optional<std::string> from_byte_alphabet(std::string_view text);

}  // namespace fivefold::data
