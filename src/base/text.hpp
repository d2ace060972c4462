#pragma once
// Small helpers for messages.

#include <span>
#include <string>
#include <string_view>

namespace fivefold {

// The candidate with the fewest edits (insert, delete, replace, swap of neighbours) from `word`, or
// empty when none is within half the word's length.
std::string closest(std::string_view word, std::span<const std::string> candidates);

// Bytes as lower-case hexadecimal digits.
std::string hex(uint64_t value);

}  // namespace fivefold
