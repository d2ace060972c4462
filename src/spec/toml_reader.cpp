#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <sstream>

#include "base/text.hpp"
#include "spec/givens.hpp"
#include "spec/text.hpp"

namespace fivefold::spec {
namespace {

constexpr size_t largest_file = 1 << 20;

// The parser builds, and destroys, one level of tables for each dot of a key and each bracket, by
// recursion: text that nests deeper than any run file is refused before it can exhaust the stack.
// Returns the line of the fault, 0 when there is none.
int too_deep(std::string_view text) {
  int line = 1, dots = 0, depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      ++line, dots = 0;
    } else if (c == '#') {
      while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
    } else if (c == '"' || c == '\'') {
      const std::string triple(3, c);
      const bool multiline = text.substr(i).starts_with(triple);
      size_t end = i + (multiline ? 3 : 1);
      while (end < text.size()) {
        if (c == '"' && text[end] == '\\') {
          end += 2;
          continue;
        }
        if (multiline ? text.substr(end).starts_with(triple)
                      : (text[end] == c || text[end] == '\n')) {
          break;
        }
        if (text[end] == '\n') ++line;
        ++end;
      }
      i = end + (multiline ? 2 : 0);
      // A closing triple may follow up to two quotes that belong to the text.
      for (int k = 0; multiline && k < 2 && i + 1 < text.size() && text[i + 1] == c; ++k) ++i;
      if (!multiline && i < text.size() && text[i] == '\n')
        --i;  // unclosed: the parser will say so
    } else if (c == '.') {
      if (++dots > 32) return line;
    } else if (c == '[' || c == '{') {
      if (++depth > 16) return line;
    } else if (c == ']' || c == '}') {
      depth = std::max(0, depth - 1);
    }
  }
  return 0;
}

std::string text_of(const toml::node& node) {
  std::ostringstream out;
  if (node.is_table() || node.is_array()) return node.is_table() ? "{…}" : "[…]";
  if (const auto* text = node.as_string()) return in_quotes(shortened(text->get()));
  node.visit([&](const auto& n) {
    if constexpr (toml::is_value<decltype(n)>) out << n.get();
  });
  if (node.is_boolean()) return node.as_boolean()->get() ? "true" : "false";
  return out.str();
}

class Reader {
 public:
  Reader(const std::string& file, FileKind kind, Givens& givens, Report& report)
      : file_(file), kind_(kind), givens_(givens), report_(report) {
    for (const std::vector<Key>* keys : {&run_keys(), &later_keys()}) {
      for (const Key& key : *keys) {
        if (kind == FileKind::run) {
          names_.push_back(key.dotted());
        } else if (key.section == "model") {
          names_.push_back(key.name);
        }
      }
    }
  }

  void read(const toml::table& root) {
    if (kind_ == FileKind::preset) {
      for (const auto& [name, node] : root) read_key("model", std::string(name.str()), node);
      return;
    }
    std::vector<std::string> sections = section_names();
    for (const auto& [name, node] : root) {
      const std::string section(name.str());
      const bool known = std::ranges::find(sections, section) != sections.end();
      const toml::table* table = node.as_table();
      if (known && table) {
        read_section(section, *table);
      } else if (!table && (name == "description" || name == "dump_folder")) {
        // Short for [job], since these two say what the file is.
        take("job." + section, section, node, givens_.keys);
      } else if (report_.full()) {
        report_.fault({});
      } else if (table) {
        unknown_section(section, *table, sections);
      } else {
        report_.fault(fmt::format("{}{} = {}: stands outside of a section; {}", where(node),
                                  shortened(section), text_of(node), advice(section, names_)));
      }
    }
  }

 private:
  std::string where(const toml::node& node) const {
    return fmt::format("{}:{}: ", file_, node.source().begin.line);
  }

  void unknown_section(const std::string& section, const toml::table& table,
                       const std::vector<std::string>& sections) {
    const std::string near = closest(section, sections);
    report_.fault(fmt::format("{}[{}]: is an unknown section; {}", where(table), shortened(section),
                              near.empty() ? "docs/run_file.md lists the sections"
                                           : fmt::format("did you mean [{}]?", near)));
  }

  void read_section(const std::string& section, const toml::table& table) {
    for (const auto& [name, node] : table) {
      const std::string key(name.str());
      if (section == "data" && key == "sources") {
        read_sources(node);
      } else {
        read_key(section, key, node);
      }
    }
  }

  void read_key(const std::string& section, const std::string& name, const toml::node& node) {
    const std::string dotted = section + "." + name;
    const std::string label = kind_ == FileKind::preset ? name : dotted;
    if (!find_key(dotted)) {
      if (report_.full()) return report_.fault({});
      report_.fault(fmt::format("{}{} = {}: {}", where(node), shortened(label), text_of(node),
                                advice(label, names_)));
      return;
    }
    take(dotted, label, node, givens_.keys);
  }

  void take(const std::string& dotted, const std::string& label, const toml::node& node,
            GivenKeys& into) {
    Given given{Value(false), where(node), label, text_of(node)};
    if (const auto* integer = node.as_integer()) {
      given.value = integer->get();
    } else if (const auto* real = node.as_floating_point()) {
      given.value = real->get();
    } else if (const auto* boolean = node.as_boolean()) {
      given.value = boolean->get();
    } else if (const auto* text = node.as_string()) {
      given.value = text->get();
    } else {
      report_.at(dotted, given,
                 "is not a single value; use a number, a text in quotes, true or false");
      return;
    }
    if (!into.emplace(dotted, given).second) {
      report_.at(dotted, given, "is given twice, with and without [job]; use one");
    }
  }

  void read_sources(const toml::node& node) {
    const toml::array* array = node.as_array();
    const bool tables =
        array && std::ranges::all_of(*array, [](const toml::node& n) { return n.is_table(); });
    if (!tables) {
      report_.fault(
          fmt::format("{}data.sources = {}: is not a list of tables; use [[data.sources]] "
                      "with path = \"…\" below it, once for each source",
                      where(node), text_of(node)));
      return;
    }
    std::vector<std::string> names;
    for (const Key& key : source_keys()) names.push_back(key.dotted());
    for (const toml::node& element : *array) {
      GivenKeys& source = givens_.sources.emplace_back();
      for (const auto& [name, value] : *element.as_table()) {
        const std::string dotted = "data.sources." + std::string(name.str());
        if (std::ranges::find(names, dotted) != names.end()) {
          take(dotted, dotted, value, source);
        } else if (report_.full()) {
          report_.fault({});
        } else {
          report_.fault(fmt::format("{}{} = {}: {}", where(value), shortened(dotted),
                                    text_of(value), advice(dotted, names)));
        }
      }
      if (!source.contains("data.sources.path")) {
        report_.fault(
            fmt::format("{}data.sources.path: is missing; use path = \"…\"", where(element)));
      }
    }
  }

  const std::string& file_;
  const FileKind kind_;
  Givens& givens_;
  Report& report_;
  std::vector<std::string> names_;
};

}  // namespace

void read_toml(std::string_view text, const std::string& file, FileKind kind, Givens& givens,
               Report& report) {
  if (text.size() > largest_file) {
    report.fault(fmt::format("{}: {} bytes are too many for a run file; use at most {}", file,
                             text.size(), largest_file));
    return;
  }
  if (const int line = too_deep(text)) {
    report.fault(
        fmt::format("{}:{}: nests too deeply; a key has at most 32 dots, and values at most "
                    "16 levels of brackets",
                    file, line));
    return;
  }
  try {
    const toml::table root = toml::parse(text, file);
    Reader(file, kind, givens, report).read(root);
  } catch (const toml::parse_error& error) {
    report.fault(fmt::format("{}:{}: is not TOML: {}", file, error.source().begin.line,
                             shortened(error.description(), 300)));
  }
}

}  // namespace fivefold::spec
