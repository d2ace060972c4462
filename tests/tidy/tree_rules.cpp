#include <algorithm>
#include <iterator>
#include <regex>
#include <sstream>

#include "rules.hpp"

namespace fivefold::tidy {
namespace {

const File* find(const std::vector<File>& files, const std::string& path) {
  const auto it =
      std::find_if(files.begin(), files.end(), [&](const File& f) { return f.path == path; });
  return it == files.end() ? nullptr : &*it;
}

bool is_source(std::string_view path) {
  return path.ends_with(".cpp") || path.ends_with(".hpp") || path.ends_with(".inl");
}

// The words in the parentheses of the first call of `function` in CMake text.
std::vector<std::string> arguments(const std::string& cmake, const std::string& function) {
  const std::string text = std::regex_replace(cmake, std::regex("#[^\n]*"), "");
  const std::regex call("(^|\n)" + function + "\\(([^)]*)\\)");
  std::smatch match;
  if (!std::regex_search(text, match, call)) return {};
  std::istringstream words(match[2]);
  return {std::istream_iterator<std::string>(words), {}};
}

Module parse_module(const std::string& folder, const std::string& cmake) {
  Module module{folder, {}, {}};
  std::set<std::string>* into = nullptr;
  for (const std::string& word : arguments(cmake, "module")) {
    if (word == "DEPS") {
      into = &module.deps;
    } else if (word == "TEST_DEPS") {
      into = &module.test_deps;
    } else if (word == "LIBS" || word == "PRIVATE_LIBS") {
      into = nullptr;
    } else if (into != nullptr) {
      into->insert(word);
    }
  }
  return module;
}

// The module that a path below src/, or an include path, belongs to; the longest name wins.
const Module* owner(const std::vector<Module>& modules, std::string_view path) {
  const Module* best = nullptr;
  for (const Module& m : modules) {
    const bool inside = path.starts_with(m.name) && path.substr(m.name.size()).starts_with("/");
    if (inside && (best == nullptr || m.name.size() > best->name.size())) best = &m;
  }
  return best;
}

// Paths that a file names in #include "…" or in a definition for a file included by macro.
std::vector<std::string> includes(const std::string& text) {
  static const std::regex line("(^|\n)#(include|define \\w+) \"([^\"]+)\"");
  std::vector<std::string> paths;
  for (std::sregex_iterator it(text.begin(), text.end(), line), end; it != end; ++it) {
    paths.push_back((*it)[3]);
  }
  return paths;
}

std::set<std::string> backticked(const std::string& text) {
  static const std::regex quoted("`([^`]+)`");
  std::set<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), quoted), end; it != end; ++it) {
    found.insert((*it)[1]);
  }
  return found;
}

std::string join(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text.empty() ? "nothing" : text;
}

}  // namespace

std::vector<Module> modules_of(const std::vector<File>& files) {
  const File* list = find(files, "src/CMakeLists.txt");
  if (list == nullptr) return {};
  std::vector<std::string> names = arguments(list->text, "foreach");
  if (!names.empty()) names.erase(names.begin());  // the loop variable
  std::vector<Module> modules;
  for (const std::string& name : names) {
    const File* cmake = find(files, "src/" + name + "/CMakeLists.txt");
    modules.push_back(cmake == nullptr ? Module{name, {}, {}} : parse_module(name, cmake->text));
  }
  return modules;
}

Faults unlisted_folders(const std::vector<File>& files, const std::vector<Module>& modules) {
  Faults faults;
  for (const File& file : files) {
    if (!file.path.starts_with("src/") || !is_source(file.path)) continue;
    if (owner(modules, std::string_view(file.path).substr(4)) == nullptr) {
      faults.push_back(file.path + " lies in no module that src/CMakeLists.txt lists");
    }
  }
  for (const Module& m : modules) {
    if (find(files, "src/" + m.name + "/CMakeLists.txt") == nullptr) {
      faults.push_back("src/CMakeLists.txt lists " + m.name + ", which has no CMakeLists.txt");
    }
  }
  return faults;
}

Faults undeclared_edges(const std::vector<File>& files, const std::vector<Module>& modules) {
  Faults faults;
  std::map<std::string, std::set<std::string>> used;
  for (const File& file : files) {
    if (!file.path.starts_with("src/") || !is_source(file.path)) continue;
    const Module* mine = owner(modules, std::string_view(file.path).substr(4));
    if (mine == nullptr) continue;  // unlisted_folders says so
    const bool test = file.path.ends_with("_test.cpp");
    for (const std::string& path : includes(file.text)) {
      const Module* theirs = owner(modules, path);
      if (theirs == nullptr || theirs == mine) continue;
      used[mine->name].insert(theirs->name);
      if (mine->deps.contains(theirs->name)) continue;
      if (test && mine->test_deps.contains(theirs->name)) continue;
      faults.push_back(file.path + " includes " + path + ", but DEPS of " + mine->name +
                       " do not name " + theirs->name);
    }
  }
  for (const Module& m : modules) {
    for (const std::string& dep : m.deps) {
      if (!used[m.name].contains(dep)) {
        faults.push_back("src/" + m.name + "/CMakeLists.txt names " + dep +
                         ", which nothing there includes");
      }
    }
  }
  return faults;
}

Faults architecture_table(const File& architecture, const std::vector<Module>& modules) {
  static const std::regex row("(^|\n)\\| `([a-z_/]+)` \\|[^\n]*\\|([^|\n]*)\\|(?=\n)");
  std::map<std::string, std::set<std::string>> drawn;
  const std::string& text = architecture.text;
  for (std::sregex_iterator it(text.begin(), text.end(), row), end; it != end; ++it) {
    drawn[(*it)[2]] = backticked((*it)[3]);
  }
  Faults faults;
  for (const Module& m : modules) {
    const auto found = drawn.find(m.name);
    if (found == drawn.end()) {
      faults.push_back(architecture.path + " does not list the module " + m.name);
    } else if (found->second != m.deps) {
      faults.push_back(architecture.path + ": " + m.name + " uses " + join(m.deps) +
                       " in the build, " + join(found->second) + " in the table");
    }
    if (found != drawn.end()) drawn.erase(found);
  }
  for (const auto& [name, deps] : drawn) {
    faults.push_back(architecture.path + " lists " + name + ", which is no module");
  }
  return faults;
}

Faults dead_files(const std::vector<File>& files, std::string_view compile_commands) {
  std::set<std::string> included;
  for (const File& file : files) {
    if (!is_source(file.path)) continue;
    const std::string folder = file.path.substr(0, file.path.rfind('/') + 1);
    for (const std::string& path : includes(file.text)) {
      included.insert("src/" + path);
      included.insert(folder + path);
    }
  }
  Faults faults;
  for (const File& file : files) {
    if (!is_source(file.path)) continue;
    if (file.path.starts_with("tests/tidy/must_not_compile/")) continue;  // tests of their own
    if (file.path.ends_with("_fuzz.cpp")) {
      const std::string seeds = file.path.substr(0, file.path.size() - 4) + "_corpus/";
      const bool seeded = std::any_of(files.begin(), files.end(),
                                      [&](const File& f) { return f.path.starts_with(seeds); });
      if (!seeded) faults.push_back(file.path + " has no seeds in " + seeds);
    } else if (file.path.ends_with(".cpp")) {
      const bool compiled = compile_commands.find("/" + file.path + "\"") != compile_commands.npos;
      if (!compiled) faults.push_back(file.path + " is compiled by no target");
    } else if (!included.contains(file.path)) {
      faults.push_back(file.path + " is included by no file");
    }
  }
  return faults;
}

}  // namespace fivefold::tidy
