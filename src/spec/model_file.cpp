// Where models come from: presets, preset files, config.json files.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "base/files.hpp"
#include "base/text.hpp"
#include "spec/checks.hpp"
#include "spec/text.hpp"

namespace fivefold::spec {
namespace {

// The folder that holds models/: $FIVEFOLD_CONFIGS, else what is installed beside the executable,
// else the source tree that this was built from.
Path configs_folder() {
  if (const char* chosen = std::getenv("FIVEFOLD_CONFIGS"); chosen && *chosen) return chosen;
  std::error_code error;
  const Path executable = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    const Path installed = executable.parent_path().parent_path() / "share/fivefold/configs";
    if (std::filesystem::is_directory(installed / "models", error)) return installed;
  }
  return FIVEFOLD_SOURCE_CONFIGS;
}

// Devices and pipes could hold the program for ever, so only files are read, and no huge ones.
Result<std::string> read_small_file(const Path& path) {
  constexpr uintmax_t largest = 8 << 20;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return invalid_input("{}: is not a file", path.string());
  }
  if (std::filesystem::file_size(path, error) > largest) {
    return invalid_input("{}: is too large for a description of a model", path.string());
  }
  return read_file(path);
}

// The file that `name` stands for.
Result<Path> find_model_file(const std::string& name) {
  if (name.empty()) return invalid_input("no model is named; use a preset or a path");
  if (name.find('\0') != std::string::npos) return invalid_input("the name holds a NUL character");
  std::error_code error;
  const std::vector<std::string> presets = preset_names();
  if (std::ranges::find(presets, name) != presets.end()) {
    return configs_folder() / "models" / (name + ".toml");
  }
  if (std::filesystem::is_directory(name, error)) {
    const Path config = Path(name) / "config.json";
    if (std::filesystem::exists(config, error)) return config;
    return invalid_input("the folder {} has no config.json", in_quotes(shortened(name)));
  }
  if (std::filesystem::exists(name, error)) return Path(name);
  const std::string near = closest(name, presets);
  return invalid_input("there is neither a preset nor a file of this name; {}the presets are {}",
                       near.empty() ? "" : fmt::format("did you mean {}? ", near),
                       fmt::join(presets, ", "));
}

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(configs_folder() / "models", error)) {
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

ModelSource open_model(const std::string& name, const Given& named, Report& report) {
  ModelSource source;
  const Result<Path> path = find_model_file(name);
  if (!path) return report.at("model.name", named, path.error().message), source;
  const Result<std::string> text = read_small_file(*path);
  if (!text) return report.at("model.name", named, text.error().message), source;
  const std::string file = path->string();
  source.found = true;
  if (path->extension() == ".json") {
    source.model = read_huggingface_config(*text, file, report);
    if (source.model.name.empty()) {
      source.model.name = std::filesystem::absolute(*path).parent_path().filename().string();
    }
    return source;
  }
  if (path->extension() != ".toml") {
    source.found = false;
    report.at("model.name", named, "is neither a .toml preset nor a config.json");
    return source;
  }
  Givens givens;
  read_toml(*text, file, FileKind::preset, givens, report);
  source.keys = std::move(givens.keys);
  if (!source.keys.contains("model.architecture")) {
    report.fault(fmt::format("{}: architecture is missing; use {}", file,
                             legal_values(*find_key("model.architecture"))));
  }
  source.keys.erase("model.name");
  source.model.name = path->stem().string();
  return source;
}

Result<ModelSpec> load_model(const std::string& preset_or_path) {
  Report report(shortened(preset_or_path));
  const Given named{Value(preset_or_path), "", "model", in_quotes(preset_or_path)};
  ModelSource source = open_model(preset_or_path, named, report);
  if (!source.found) TRY(report.status());
  RunSpec run;
  run.model = start_model(source, source.keys);
  apply(model_keys(), source.keys, run, report);
  derive(run.model);
  Checker check(run, source.keys, report);
  check_model(check);
  TRY(report.status());
  return run.model;
}

ModelSpec start_model(const ModelSource& source, const GivenKeys& keys) {
  const auto found = keys.find("model.architecture");
  if (found == keys.end() || found->second.value != Value(name_of(Architecture::gpt2))) {
    return source.model;
  }
  ModelSpec model = defaults_of(Architecture::gpt2);
  model.name = source.model.name;
  return model;
}

}  // namespace fivefold::spec
