// Any text as a run file, with and without an override taken from its first line.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/check.hpp"
#include "spec/run.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fivefold::spec;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto read = [](const std::string& file, const std::vector<std::string>& overrides) {
    const auto run = parse_run(file, "fuzz.toml", overrides);
    if (!run) {
      CHECK(!run.error().message.empty());
      return;
    }
    CHECK(count_parameters(run->model).total() >= 0);
    const auto again = parse_run(to_toml(*run), "again.toml", {});
    CHECK(again.has_value(), "{}", again.error().message);
    CHECK(again->model == run->model);
  };
  read(text, {});
  const size_t line = text.find('\n');
  if (line != std::string::npos) read(text.substr(line + 1), {text.substr(0, line)});
  return 0;
}
