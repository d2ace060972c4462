#include "train/run_state.hpp"

#include <charconv>
#include <map>
#include <sstream>

#include "checkpoint/huggingface.hpp"
#include "checkpoint/store.hpp"

namespace fivefold::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* format_name = "fivefold-checkpoint-2";

Result<int64_t> number(const std::map<std::string, std::string>& metadata, const std::string& key,
                       const std::string& name) {
  const auto it = metadata.find(key);
  int64_t value = 0;
  if (it != metadata.end()) {
    const std::string& text = it->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && value >= 0) return value;
  }
  return invalid_input("{}: its metadata hold no valid \"{}\"; the file is damaged", name, key);
}

// Each parameter's tensor into its part of the flat `to`; the one named with `suffix` where the file
// has it.
Status read_weights(const checkpoint::SafetensorsFile& file, const std::string& name,
                    const ParameterSet& parameters, View to, const std::string& suffix) {
  for (const Parameter& p : parameters.all()) {
    auto it = file.tensors().find(p.spec.name + suffix);
    if (it == file.tensors().end()) it = file.tensors().find(p.spec.name);
    if (it == file.tensors().end()) {
      return invalid_input("{}: holds no tensor {}", name, p.spec.name);
    }
    if (it->second.shape != p.spec.shape && it->first == p.spec.name) {
      return invalid_input("{}: tensor {} has another shape than the model's", name, p.spec.name);
    }
    TRY(checkpoint::read_into(it->second, name + ": " + it->first,
                              to.slice(0, p.offset, p.offset + p.count)));
  }
  return {};
}

// "section.key" to value, from the text of to_toml (one key a line).
std::map<std::string, std::string> keys_of(const spec::RunSpec& run) {
  std::map<std::string, std::string> keys;
  std::istringstream lines(spec::to_toml(run));
  std::string line, section;
  while (std::getline(lines, line)) {
    if (line.starts_with("[[")) {
      section = line.substr(2, line.find("]]") - 2) + "[]";
    } else if (line.starts_with("[")) {
      section = line.substr(1, line.find(']') - 1);
    } else if (const size_t equals = line.find(" = "); equals != std::string::npos) {
      const std::string key = section.empty() ? line.substr(0, equals)
                                              : section + "." + line.substr(0, equals);
      std::string& value = keys[key];
      if (!value.empty()) value += ", ";
      value += line.substr(equals + 3);
    }
  }
  return keys;
}

}  // namespace

std::map<std::string, std::string> metadata_of(const spec::RunSpec& run, const RunState& state) {
  return {{"format", format_name},
          {"step", std::to_string(state.step)},
          {"samples", std::to_string(state.samples)},
          {"tokens", std::to_string(state.tokens)},
          {"run", spec::to_toml(run)}};
}

Result<SavedRun> read_saved_run(const checkpoint::SafetensorsFile& file, const std::string& name) {
  const auto& metadata = file.metadata();
  const auto it = metadata.find("format");
  if (it == metadata.end() || it->second != format_name || !metadata.contains("run")) {
    return invalid_input("{}: is a safetensors file, but not a checkpoint of a training run; to start "
                         "from foreign weights set checkpoint.initial_load_path", name);
  }
  SavedRun saved;
  saved.state.step = TRY(number(metadata, "step", name));
  saved.state.samples = TRY(number(metadata, "samples", name));
  saved.state.tokens = TRY(number(metadata, "tokens", name));
  saved.run = TRY(spec::parse_run(metadata.at("run"), name + " (its run file)", {}));
  return saved;
}

Status read_parameters(const checkpoint::SafetensorsFile& file, const std::string& name,
                       const ParameterSet& parameters) {
  return read_weights(file, name, parameters, parameters.values(), "");
}

Result<Path> newest_save(const Path& where) {
  std::vector<checkpoint::Saved> saves = TRY(checkpoint::list_saves(where));
  std::error_code none;
  for (fs::directory_iterator it(where, none); saves.empty() && it != fs::directory_iterator();
       it.increment(none)) {
    if (it->is_directory(none)) saves = TRY(checkpoint::list_saves(it->path()));
  }
  return saves.empty() ? Path() : saves.back().path;
}

Result<Path> read_initial_weights(const Path& path, const spec::ModelSpec& model,
                                  kernels::Context& ctx, ParameterSet& parameters,
                                  optim::AdamWOptimizer& optimizer) {
  std::error_code none;
  Path save;
  if (fs::is_directory(path, none)) {
    save = TRY(newest_save(path));
  } else if (TRY(checkpoint::SafetensorsFile::open(path)).metadata().contains("run")) {
    save = path;
  }
  if (save.empty()) {
    TRY(checkpoint::import_huggingface(path, model, parameters));
    optimizer.sync_master(ctx);
    return path;
  }
  const checkpoint::SafetensorsFile file = TRY(checkpoint::open_save(save));
  TRY(read_weights(file, save.string(), parameters, optimizer.weights(), ".master"));
  optimizer.round_master(ctx);
  return save;
}

Result<std::vector<std::string>> check_resume(const spec::RunSpec& run, const spec::RunSpec& saved,
                                              const std::string& checkpoint) {
  const auto now = keys_of(run), then = keys_of(saved);
  std::vector<std::string> changed;
  std::string refused;
  const auto compare = [&](const std::string& key, const std::string& a, const std::string& b) {
    if (a == b) return;
    const bool fatal = key.starts_with("model.") || key == "training.seq_len" ||
                       key == "training.mixed_precision_param" || key == "debug.seed" ||
                       key == "data.tokenizer";
    const std::string text = fmt::format("{}: {} -> {}", key, a.empty() ? "(not set)" : a,
                                         b.empty() ? "(not set)" : b);
    if (fatal) refused += "\n  " + text;
    changed.push_back(text);
  };
  for (const auto& [key, value] : now) {
    const auto it = then.find(key);
    compare(key, it == then.end() ? "" : it->second, value);
  }
  for (const auto& [key, value] : then) {
    if (!now.contains(key)) compare(key, value, "");
  }
  if (!refused.empty()) {
    return invalid_input("{} was made by another run, it cannot be continued with:{}\nundo the change, "
                         "choose another dump_folder, or start anew from its weights with "
                         "checkpoint.initial_load_path", checkpoint, refused);
  }
  return changed;
}

}  // namespace fivefold::train
