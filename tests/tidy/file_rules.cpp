#include <algorithm>
#include <regex>

#include "rules.hpp"

namespace fivefold::tidy {
namespace {

constexpr int max_lines = 500, max_columns = 120;

bool ends_with_any(std::string_view path, std::initializer_list<std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](auto end) { return path.ends_with(end); });
}

int count_lines(std::string_view text) { return int(std::count(text.begin(), text.end(), '\n')); }

// Characters, not bytes, of UTF-8.
int columns(std::string_view line) {
  return int(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

template <class Visit>  // visit(line, number)
void each_line(std::string_view text, const Visit& visit) {
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    visit(text.substr(0, end), number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

struct Ban {
  const char* pattern;
  const char* reason;
  // Path prefixes or suffixes where the word is at home.
  std::vector<std::string_view> allowed = {};
  bool comments_too = false;
};

const std::vector<Ban>& bans() {
  static const std::vector<Ban> list = {
      {R"(\b(TODO|FIXME|XXX|HACK)\b)", "finish it, or file it as an issue", {}, true},
      {R"(\busing namespace std\s*;)", "names the whole library"},
      {R"(\bstd::(cout|cerr|clog)\b|\bf?printf\s*\(|\bputs\s*\(|\bfmt::print\s*\()",
       "only cli prints; return values or errors",
       {"src/cli/", "src/base/check.cpp", "bench/", "tests/"}},
      {R"(\bthrow\b)", "errors are values (base/result.hpp)"},
      {R"(\b(exit|abort|_exit|quick_exit)\s*\()",
       "only CHECK and cli end the program",
       {"src/cli/", "src/base/check.cpp", "_test.cpp", "_fuzz.cpp", "tests/", "bench/"}},
      {R"(\bs?rand\s*\(|\bstd::random_device\b)",
       "random numbers come from base/random.hpp, by seed and index"},
      {R"(\bstd::\w+_distribution\b)", "differs between standard libraries; use base/random.hpp"},
      {R"(\bstd::shared_ptr\b|\bstd::make_shared\b)",
       "owners are unique (cli: the options that CLI11's callbacks share)",
       {"src/cli/"}},
      {R"(\bGTEST_SKIP\b|\bDISABLED_)", "a test that skips itself tests nothing"},
      {R"(\bstd::regex\b)", "slow and throws; only the tests use it", {"tests/"}},
  };
  return list;
}

bool at_home(const Ban& ban, std::string_view path) {
  return path.starts_with("tests/tidy/") ||  // names them all
         std::any_of(ban.allowed.begin(), ban.allowed.end(), [&](std::string_view home) {
           return path.starts_with(home) || path.ends_with(home);
         });
}

}  // namespace

Faults long_files(const std::vector<File>& files, const std::map<std::string, int>& ratchet) {
  Faults faults;
  std::set<std::string> needed;
  for (const File& file : files) {
    if (!ends_with_any(file.path, {".cpp", ".hpp", ".inl"})) continue;
    const int lines = count_lines(file.text);
    if (lines <= max_lines) continue;
    const auto entry = ratchet.find(file.path);
    if (entry == ratchet.end()) {
      faults.push_back(file.path + " has " + std::to_string(lines) + " lines; the limit is " +
                       std::to_string(max_lines) + ": split it by concept");
    } else if (needed.insert(file.path); lines > entry->second) {
      faults.push_back(file.path + " grew to " + std::to_string(lines) +
                       " lines; ratchet.txt holds it at " + std::to_string(entry->second));
    }
  }
  for (const auto& [path, lines] : ratchet) {
    if (!needed.contains(path))
      faults.push_back("ratchet.txt: " + path + " needs no exception any more");
  }
  return faults;
}

Faults long_lines(const File& file) {
  Faults faults;
  each_line(file.text, [&](std::string_view line, int number) {
    if (columns(line) > max_columns) {
      faults.push_back(file.path + ":" + std::to_string(number) + ": " +
                       std::to_string(columns(line)) + " columns; the limit is " +
                       std::to_string(max_columns));
    }
  });
  return faults;
}

Faults banned_words(const File& file) {
  Faults faults;
  const std::string code = code_only(file.text);
  for (const Ban& ban : bans()) {
    if (at_home(ban, file.path)) continue;
    const std::regex word(ban.pattern);
    each_line(ban.comments_too ? std::string_view(file.text) : std::string_view(code),
              [&](std::string_view line, int number) {
                std::match_results<std::string_view::const_iterator> match;
                if (!std::regex_search(line.begin(), line.end(), match, word)) return;
                faults.push_back(file.path + ":" + std::to_string(number) + ": '" + match.str() +
                                 "': " + ban.reason);
              });
  }
  return faults;
}

Faults header_guards(const File& file) {
  if (!file.path.ends_with(".hpp") || file.text.starts_with("#pragma once\n")) return {};
  return {file.path + " does not start with #pragma once"};
}

}  // namespace fivefold::tidy
