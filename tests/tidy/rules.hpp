#pragma once
// What no compiler checks about the source tree. Each rule takes files as text and returns what is
// wrong, one sentence each, so that a rule can be tried on a text that breaks it.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fivefold::tidy {

using Faults = std::vector<std::string>;

struct File {
  std::string path;  // from the root of the tree, with /
  std::string text;
};

// ---- Text.

// C++ without its comments and with its string and character literals emptied; lines stay lines.
std::string code_only(std::string_view text);

// ---- One file at a time.

// At most 500 lines in a source file. `ratchet` names files that were longer when the rule came,
// with the length they must not exceed; an entry that is no longer needed is a fault too.
Faults long_files(const std::vector<File>& files, const std::map<std::string, int>& ratchet);
// At most 120 characters a line: what .clang-format, which aims at 100, could not break.
Faults long_lines(const File& file);
// Words that do not belong: unfinished work, hidden output, exceptions, hidden randomness.
Faults banned_words(const File& file);
// Headers start with #pragma once (.inl files are included more than once on purpose).
Faults header_guards(const File& file);

// ---- The tree.

struct Module {
  std::string name;                 // "parallel/data"
  std::set<std::string> deps;       // DEPS of module()
  std::set<std::string> test_deps;  // TEST_DEPS
};

// The modules in the order of src/CMakeLists.txt, with the DEPS of each one's own CMakeLists.txt.
std::vector<Module> modules_of(const std::vector<File>& files);

// Every folder of src/ that holds sources lies in a listed module, and every listed one is there.
Faults unlisted_folders(const std::vector<File>& files, const std::vector<Module>& modules);
// A file includes only headers of its own module and of those that its module names in DEPS (for
// tests also TEST_DEPS), and every name in DEPS is included somewhere.
Faults undeclared_edges(const std::vector<File>& files, const std::vector<Module>& modules);
// The table of modules in ARCHITECTURE.md says the same as the build: "| `name` | … | `a` `b` |".
Faults architecture_table(const File& architecture, const std::vector<Module>& modules);
// Every header is included, and every .cpp is in the compilation database (fuzzers, which only the
// fuzz preset builds, have a folder of seeds instead).
Faults dead_files(const std::vector<File>& files, std::string_view compile_commands);
// Relative links of a Markdown file lead to files and headings, and `paths/in/backticks` exist.
Faults dead_links(const File& markdown, const std::vector<File>& files);

}  // namespace fivefold::tidy
