#include "golden.hpp"

#include <algorithm>
#include <charconv>

namespace fivefold::golden {
namespace {

using Lines = std::vector<std::string>;

bool is_marker(std::string_view line) {
  return line == "stdout" || line == "stderr" || line.starts_with("$ ") ||
         line.starts_with("exit ") || line.starts_with("file ") || line.starts_with("#") ||
         line.starts_with("\\");
}

void drop_blank_end(Lines& lines) {
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
}

bool is_number_character(char c) { return (c >= '0' && c <= '9') || c == '.' || c == ','; }

// Length of the number at the start: 12, -0.5, 1,234, 3.1e-05, nan is none.
size_t number_length(std::string_view text) {
  size_t n = 0;
  if (n < text.size() && (text[n] == '-' || text[n] == '+')) ++n;
  const size_t first = n;
  while (n < text.size() && is_number_character(text[n])) ++n;
  while (n > first && (text[n - 1] == '.' || text[n - 1] == ',')) --n;  // punctuation after it
  if (n == first) return 0;
  if (n + 1 < text.size() && text[n] == 'e') {
    size_t e = n + 1;
    if (text[e] == '-' || text[e] == '+') ++e;
    const size_t digits = e;
    while (e < text.size() && text[e] >= '0' && text[e] <= '9') ++e;
    if (e > digits) n = e;
  }
  return n;
}

void append_block(std::string& text, const Lines& lines) {
  for (const std::string& line : lines) {
    if (is_marker(line)) text += '\\';
    text += line + "\n";
  }
}

std::string show(const char* title, const Lines& lines) {
  std::string text = std::string(title) + "\n";
  for (const std::string& line : lines) text += "  | " + line + "\n";
  return text;
}

// Where lines of a .test file go, and what may follow.
class Parser {
 public:
  std::vector<Case> cases;
  std::string error;

  void take(std::string_view line, int number) {
    const bool marker = is_marker(line);
    if (marker && !line.starts_with("\\")) {
      take_marker(line, number);
    } else if (block_ != nullptr) {
      block_->emplace_back(line.starts_with("\\") ? line.substr(1) : line);
    } else if (line.empty()) {
      next_.comments.emplace_back();
    } else {
      fail(number, "belongs to no block; expected $, file, exit, stdout, stderr or #");
    }
  }
  void finish() {
    if (error.empty() && !next_.files.empty()) error = "the last file has no command after it";
    for (Case& c : cases) {
      drop_blank_end(c.out);
      drop_blank_end(c.err);
      for (File& file : c.files) drop_blank_end(file.lines);
    }
  }

 private:
  void fail(int number, const std::string& what) {
    if (error.empty()) error = "line " + std::to_string(number) + ": " + what;
  }
  void take_marker(std::string_view line, int number) {
    block_ = nullptr;
    if (line.starts_with("#")) {
      next_.comments.emplace_back(line);
    } else if (line.starts_with("file ")) {
      next_.files.push_back({std::string(line.substr(5)), {}});
      block_ = &next_.files.back().lines;
    } else if (line.starts_with("$ ")) {
      next_.command = line.substr(2);
      cases.push_back(std::move(next_));
      next_ = {};
    } else if (cases.empty() || !next_.files.empty()) {
      fail(number, "'" + std::string(line) + "' without a command before it");
    } else if (line.starts_with("exit ")) {
      const std::string_view code = line.substr(5);
      const auto end = code.data() + code.size();
      if (std::from_chars(code.data(), end, cases.back().exit_code).ptr != end) {
        fail(number, "'" + std::string(line) + "' has no exit code");
      }
    } else {
      block_ = line == "stdout" ? &cases.back().out : &cases.back().err;
    }
  }

  Case next_;
  Lines* block_ = nullptr;
};

}  // namespace

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  drop_blank_end(lines);
  return lines;
}

std::vector<Case> parse(std::string_view text, std::string& error) {
  Parser parser;
  int number = 0;
  for (const std::string& line : lines_of(text)) parser.take(line, ++number);
  parser.finish();
  error = parser.error;
  return error.empty() ? parser.cases : std::vector<Case>{};
}

std::string print(const std::vector<Case>& cases) {
  std::string text;
  for (const Case& c : cases) {
    if (!text.empty() && (c.comments.empty() || !c.comments.front().empty())) text += "\n";
    for (const std::string& comment : c.comments) text += comment + "\n";
    for (const File& file : c.files) {
      text += "file " + file.name + "\n";
      append_block(text, file.lines);
    }
    text += "$ " + c.command + "\n";
    if (c.exit_code != 0) text += "exit " + std::to_string(c.exit_code) + "\n";
    if (!c.out.empty()) text += "stdout\n";
    append_block(text, c.out);
    if (!c.err.empty()) text += "stderr\n";
    append_block(text, c.err);
  }
  return text;
}

bool line_matches(std::string_view pattern, std::string_view line) {
  constexpr std::string_view any = "{any}", number = "{number}";
  if (pattern.empty()) return line.empty();
  if (pattern.starts_with(any)) {
    pattern.remove_prefix(any.size());
    for (size_t skip = 0; skip <= line.size(); ++skip) {
      if (line_matches(pattern, line.substr(skip))) return true;
    }
    return false;
  }
  if (pattern.starts_with(number)) {
    const size_t length = number_length(line);
    return length > 0 && line_matches(pattern.substr(number.size()), line.substr(length));
  }
  return !line.empty() && line.front() == pattern.front() &&
         line_matches(pattern.substr(1), line.substr(1));
}

bool block_matches(const Lines& pattern, const Lines& lines) {
  // reach[j]: the pattern so far matches the first j lines.
  std::vector<bool> reach(lines.size() + 1, false);
  reach[0] = true;
  for (const std::string& p : pattern) {
    std::vector<bool> next(lines.size() + 1, false);
    bool any_before = false;
    for (size_t j = 0; j <= lines.size(); ++j) {
      any_before = any_before || reach[j];
      next[j] =
          p == "{lines}" ? any_before : j > 0 && reach[j - 1] && line_matches(p, lines[j - 1]);
    }
    reach = std::move(next);
  }
  return reach[lines.size()];
}

Lines updated(const Lines& pattern, const Lines& lines) {
  if (block_matches(pattern, lines)) return pattern;
  Lines result;
  size_t from = 0;
  for (const std::string& line : lines) {
    const auto match = std::find_if(pattern.begin() + long(from), pattern.end(),
                                    [&](const std::string& p) { return line_matches(p, line); });
    if (match != pattern.end()) from = size_t(match - pattern.begin()) + 1;
    result.push_back(match == pattern.end() ? line : *match);
  }
  return result;
}

std::string difference(const Case& expected, const Outcome& outcome) {
  std::string text;
  if (outcome.exit_code != expected.exit_code) {
    text += "exit code " + std::to_string(outcome.exit_code) + ", expected " +
            std::to_string(expected.exit_code) + "\n";
  }
  const Lines out = lines_of(outcome.out), err = lines_of(outcome.err);
  const bool out_matches = block_matches(expected.out, out);
  const bool err_matches = block_matches(expected.err, err);
  if (!out_matches) text += show("stdout expected:", expected.out) + show("stdout was:", out);
  if (!err_matches) text += show("stderr expected:", expected.err) + show("stderr was:", err);
  if (text.empty()) return {};
  if (out_matches) text += show("stdout (as expected):", out);
  if (err_matches) text += show("stderr (as expected):", err);
  return "$ " + expected.command + "\n" + text;
}

}  // namespace fivefold::golden
