#include <fmt/format.h>

#include <cctype>

#include "spec/schema.hpp"

namespace fivefold::spec {
namespace {

const char* type_of(const Key& key) {
  return key.is_integer()   ? "integer"
         : key.is_real()    ? "number"
         : key.is_boolean() ? "boolean"
                            : "text";
}

std::string default_of(const Key& key) {
  RunSpec run;
  if (key.section == "data.sources") run.data.sources.emplace_back();
  std::optional<Value> value = value_of(key, run);
  if (!value) {  // of an optional part: what it is when the part is there
    run.model.moe.emplace();
    run.model.mla.emplace();
    if (key.needs.find("\"llama3\"") != std::string::npos) {
      run.model.rope_scaling.emplace();
    } else {
      run.model.yarn.emplace();
    }
    value = value_of(key, run);
  }
  if (!value) return "";
  if (illegal(key, *value)) return "required";
  if (key.name == "path") return "required";
  return fmt::format("`{}`", shown(*value));
}

std::string aliases_of(const Key& key) {
  std::string text;
  for (const Alias& alias : key.aliases) {
    text += fmt::format("{}`--{}`", text.empty() ? "" : ", ", alias.name);
  }
  return text;
}

void rows(std::string& out, const std::vector<Key>& keys, const std::string& section) {
  out +=
      "\n| key | type | default | legal | meaning | also on the command line |\n"
      "| --- | --- | --- | --- | --- | --- |\n";
  for (const Key& key : keys) {
    if (key.section != section) continue;
    std::string meaning = key.doc;
    if (!key.needs.empty()) {
      meaning +=
          fmt::format(" {}{}.", static_cast<char>(std::toupper(key.needs[0])), key.needs.substr(1));
    }
    out += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", key.name, type_of(key),
                       default_of(key), legal_values(key), meaning, aliases_of(key));
  }
}

const char* const introduction =
    R"(# The run file

<!-- Generated from the table of keys in src/spec; `UPDATE_REFERENCE=1 spec_test` rewrites it. -->

A run is one TOML file. Every key takes effect or is refused: an unknown key, a wrong type, a value
out of range and values that do not go together each end the program before anything starts, all of
them listed with file, line, reason and a legal value.

Any key can be set on the command line as `--section.key=value`; some have other names there, which
other trainers made familiar (dashes and underscores are the same). The command line wins over the
file; naming a key twice on it is refused. `--data.sources=PATH` takes the place of the file's
sources; given again, it adds one more. `description` and `dump_folder` may also stand at the top of
the file, without `[job]`. Paths are relative to the folder the program is started in.

The files of `configs/models` hold the keys of `[model]` without a section. They are looked for in
`$FIVEFOLD_CONFIGS/models`, else beside the installed program (`../share/fivefold/configs`), else in
the source tree.
)";

}  // namespace

std::string run_file_reference() {
  std::string out = introduction;
  std::vector<std::string> sections;
  for (const Key& key : run_keys()) {
    if (sections.empty() || sections.back() != key.section) sections.push_back(key.section);
  }
  for (const std::string& section : sections) {
    out += fmt::format("\n## [{}]\n", section);
    rows(out, run_keys(), section);
    if (section == "data") {
      out += "\n## [[data.sources]]\n\nOnce for each source of text or tokens.\n";
      rows(out, source_keys(), "data.sources");
    }
  }
  out +=
      "\n## Keys of what comes later\n\nThese are known, and accepted at this value only.\n\n"
      "| key | accepted | otherwise | also on the command line |\n| --- | --- | --- | --- |\n";
  for (const Key& key : later_keys()) {
    out += fmt::format("| `{}` | `{}` | {} | {} |\n", key.dotted(), shown(*key.neutral), key.later,
                       aliases_of(key));
  }
  return out;
}

}  // namespace fivefold::spec
