#include "cli/options.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>
#include <thread>

#include "base/text.hpp"

namespace fivefold::cli {

std::vector<std::string> overrides_of(const CLI::App& command) {
  const std::vector<std::string> words = command.remaining();
  std::vector<std::string> overrides;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i];
    const size_t dashes = std::min<size_t>(word.find_first_not_of('-'), 2);
    if (dashes == 0 || dashes == std::string::npos) {
      overrides.push_back(word);  // load_run refuses it by name
      continue;
    }
    word.erase(0, dashes);
    if (word.find('=') == std::string::npos) {
      const bool value_follows = i + 1 < words.size() && !words[i + 1].starts_with("--");
      word += '=';
      word += value_follows ? words[++i] : "true";
    }
    overrides.push_back(std::move(word));
  }
  return overrides;
}

std::string unknown_command(const CLI::App& app, int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  const std::string word = argv[1];
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  if (std::find(names.begin(), names.end(), word) != names.end()) return {};
  const std::string near = closest(word, names);
  return fmt::format("there is no command '{}'{}; run `fivefold --help` for the list", word,
                     near.empty() ? "" : "; did you mean '" + near + "'?");
}

CLI::Validator between(double low, double high) {
  const auto judge = [low, high](const std::string& text) {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && low <= value && value <= high) return std::string();
    return fmt::format("{} is not a number from {} to {}", text, low, high);
  };
  return CLI::Validator(judge, fmt::format("FLOAT in [{} - {}]", low, high));
}

Status perform(const std::function<Status()>& action) {
  try {
    return action();
  } catch (const std::bad_alloc&) {
    return io_error("out of memory; use a smaller model, batch or text");
  } catch (const std::exception& error) {
    return io_error("{}", error.what());
  }
}

void open_standard_streams() {
  for (int fd = 0; fd < 3; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", O_RDWR);  // takes the lowest free number
  }
}

int default_threads(int ranks) {
  return std::max(1, int(std::thread::hardware_concurrency()) / std::max(1, ranks));
}

}  // namespace fivefold::cli
