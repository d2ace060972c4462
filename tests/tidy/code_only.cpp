#include "rules.hpp"

#include <algorithm>

namespace fivefold::tidy {
namespace {

// Index after the literal that starts at `at` (a quote character), escapes skipped.
size_t skip_literal(std::string_view text, size_t at) {
  const char quote = text[at++];
  while (at < text.size() && text[at] != quote && text[at] != '\n') at += text[at] == '\\' ? 2 : 1;
  return at < text.size() ? at + 1 : text.size();
}

// Index after R"x( … )x" whose R is at `at`.
size_t skip_raw_literal(std::string_view text, size_t at) {
  const size_t open = text.find('(', at);
  if (open == text.npos) return text.size();
  const std::string end = ")" + std::string(text.substr(at + 2, open - at - 2)) + "\"";
  const size_t close = text.find(end, open);
  return close == text.npos ? text.size() : close + end.size();
}

bool is_word(char c) {
  return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

}  // namespace

std::string code_only(std::string_view text) {
  std::string code;
  size_t at = 0;
  // Leaves `mark` in place of text[at, to), and its newlines.
  const auto replace = [&](size_t to, std::string_view mark) {
    code += mark;
    for (; at < to; ++at) {
      if (text[at] == '\n') code += '\n';
    }
  };
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    const bool after_word = at > 0 && is_word(text[at - 1]);
    if (rest.starts_with("//")) {
      replace(std::min(text.find('\n', at), text.size()), "");
    } else if (rest.starts_with("/*")) {
      const size_t end = text.find("*/", at + 2);
      replace(end == text.npos ? text.size() : end + 2, "");
    } else if (rest.starts_with("R\"") && !after_word) {
      replace(skip_raw_literal(text, at), "\"\"");
    } else if (rest.starts_with("#include")) {
      const size_t end = std::min(text.find('\n', at), text.size());
      code += text.substr(at, end - at);  // its quotes are a path, not a literal
      at = end;
    } else if (text[at] == '"' || (text[at] == '\'' && !after_word)) {
      replace(skip_literal(text, at), "\"\"");  // 1'000 is a number, not a character
    } else {
      code += text[at++];
    }
  }
  return code;
}

}  // namespace fivefold::tidy
