#pragma once
// Text of messages and files: quoting and UTF-8.

#include <string>
#include <string_view>

namespace fivefold::spec {

// As a TOML basic string: "…" with escapes for quotes, backslashes and control characters. Bytes
// that are not UTF-8 are kept as they are.
std::string in_quotes(std::string_view text);

// At most `limit` bytes, cut at a character's border, with an ellipsis when something is cut.
std::string shortened(std::string_view text, size_t limit = 80);

bool is_utf8(std::string_view text);

}  // namespace fivefold::spec
