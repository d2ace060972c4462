#pragma once
// Golden tests of the command line. A .test file is a list of cases run one after the other, by a
// shell, in one empty folder of the test's own (with a link to configs/):
//
//   # A comment.
//   file run.toml          the lines that follow, written to run.toml before the next command
//   [training]
//   steps = 3
//   $ fivefold train run.toml
//   exit 2                 left out: 0
//   stdout                 left out: nothing is printed there
//   stderr
//   error: run.toml:2: …
//
// In expected output, {number} stands for a number (sign, separators, exponent), {any} for
// any text within a line (also none), and a line {lines} for any lines (also none). The test's
// folder prints as {folder}, the source tree as {source}. An output line that would read as one of
// the words above starts with a backslash. Blank lines at the end of a block do not count.

#include <string>
#include <string_view>
#include <vector>

namespace fivefold::golden {

struct File {
  std::string name;
  std::vector<std::string> lines;
};

struct Case {
  std::vector<std::string> comments;  // as they stand before the case, blank lines included
  std::vector<File> files;
  std::string command;
  int exit_code = 0;
  std::vector<std::string> out, err;
};

struct Outcome {
  int exit_code = 0;
  std::string out, err;
};

// Throws nothing: a line that fits nowhere is reported through `error` ("line 3: …") and ends it.
std::vector<Case> parse(std::string_view text, std::string& error);
// The text that parse takes back to the same cases.
std::string print(const std::vector<Case>& cases);

bool line_matches(std::string_view pattern, std::string_view line);
bool block_matches(const std::vector<std::string>& pattern, const std::vector<std::string>& lines);

// Lines without the newline; blank ones at the end are dropped.
std::vector<std::string> lines_of(std::string_view text);

// Expected lines for this output: pattern lines are kept where they match, others are the output's.
std::vector<std::string> updated(const std::vector<std::string>& pattern,
                                 const std::vector<std::string>& lines);

// What differs, for people; empty when the outcome is as expected.
std::string difference(const Case& expected, const Outcome& outcome);

}  // namespace fivefold::golden
