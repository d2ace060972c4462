#include <fmt/format.h>

#include "spec/schema.hpp"
#include "spec/text.hpp"

namespace fivefold::spec {

std::string to_toml(const RunSpec& run) {
  std::string out;
  std::string section;
  for (const Key& key : run_keys()) {
    const std::optional<Value> value = value_of(key, run);
    if (!value) continue;  // of a part that this model does not have
    if (key.section != section) {
      out += fmt::format("{}[{}]\n", section.empty() ? "" : "\n", key.section);
      section = key.section;
    }
    out += fmt::format("{} = {}\n", key.name, shown(*value));
  }
  RunSpec one;
  for (const DataSource& source : run.data.sources) {
    one.data.sources = {source};
    out += "\n[[data.sources]]\n";
    for (const Key& key : source_keys()) {
      out += fmt::format("{} = {}\n", key.name, shown(*value_of(key, one)));
    }
  }
  return out;
}

}  // namespace fivefold::spec
