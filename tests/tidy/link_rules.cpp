#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <sstream>

#include "rules.hpp"

namespace fivefold::tidy {
namespace {

// The name that a Markdown viewer gives a heading: lower case, punctuation dropped, spaces to
// dashes.
std::string anchor(std::string_view heading) {
  std::string name;
  for (const char c : heading) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '_' || byte >= 0x80) {
      name += char(std::tolower(byte));
    } else if (c == ' ') {
      name += '-';
    }
  }
  return name;
}

// Markdown with its ``` blocks removed: what stands there is an example.
std::string prose(const std::string& text) {
  std::istringstream in(text);
  std::string kept;
  bool example = false;
  for (std::string line; std::getline(in, line);) {
    const bool fence = line.starts_with("```");
    if (fence) example = !example;
    if (!fence && !example) kept += line + "\n";
  }
  return kept;
}

std::set<std::string> anchors(const std::string& text) {
  static const std::regex heading("(^|\n)#+ ([^\n]+)");
  const std::string body = prose(text);
  std::set<std::string> names;
  for (std::sregex_iterator it(body.begin(), body.end(), heading), end; it != end; ++it) {
    names.insert(anchor((*it)[2].str()));
  }
  return names;
}

// A file of the tree, or a folder of one.
bool exists(const std::vector<File>& files, const std::string& path) {
  return std::any_of(files.begin(), files.end(), [&](const File& f) {
    return f.path == path ||
           (f.path.starts_with(path) && (path.ends_with("/") || f.path[path.size()] == '/'));
  });
}

}  // namespace

Faults dead_links(const File& markdown, const std::vector<File>& files) {
  static const std::regex link("\\]\\(([^)\\s]+)\\)");
  static const std::regex path_in_code(
      "`((src|docs|configs|scripts|tests|bench|cmake)/[\\w./-]*)`");
  Faults faults;
  const std::string body = prose(markdown.text);
  const std::filesystem::path folder = std::filesystem::path(markdown.path).parent_path();
  for (std::sregex_iterator it(body.begin(), body.end(), link), end; it != end; ++it) {
    const std::string target = (*it)[1];
    if (target.starts_with("http://") || target.starts_with("https://")) continue;
    const size_t hash = std::min(target.find('#'), target.size());
    const std::string path =
        hash == 0 ? markdown.path : (folder / target.substr(0, hash)).lexically_normal().string();
    if (!exists(files, path)) {
      faults.push_back(markdown.path + " links to " + target + ", which is not there");
      continue;
    }
    const auto file =
        std::find_if(files.begin(), files.end(), [&](const File& f) { return f.path == path; });
    if (hash < target.size() && file != files.end() &&
        !anchors(file->text).contains(target.substr(hash + 1))) {
      faults.push_back(markdown.path + " links to " + target + ", but there is no such heading");
    }
  }
  for (std::sregex_iterator it(body.begin(), body.end(), path_in_code), end; it != end; ++it) {
    if (!exists(files, (*it)[1]))
      faults.push_back(markdown.path + " names " + (*it)[1].str() + ", which is not there");
  }
  return faults;
}

}  // namespace fivefold::tidy
