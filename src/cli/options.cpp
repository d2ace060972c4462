#include "cli/options.hpp"

#include <algorithm>
#include <thread>

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

int default_threads(int ranks) {
  return std::max(1, int(std::thread::hardware_concurrency()) / std::max(1, ranks));
}

}  // namespace fivefold::cli
