#include "train/loaded_model.hpp"

#include "base/text.hpp"
#include "checkpoint/huggingface.hpp"
#include "checkpoint/store.hpp"
#include "train/run_state.hpp"

namespace fivefold::train {
namespace {

// Builds parameters and model for `loaded.spec`.
void build(LoadedModel& loaded, DType dtype) {
  loaded.parameters = std::make_unique<ParameterSet>(
      loaded.memory, spec::parameters_of(loaded.spec), dtype, false);
  loaded.max_seq_len = loaded.spec.max_seq_len;
  loaded.model = std::make_unique<model::Model>(
      loaded.spec, *loaded.parameters, loaded.context,
      spec::keep_of({}, loaded.spec.num_layers), loaded.max_seq_len, 0);
}

Status load_save(const Path& path, const LoadOptions& options, LoadedModel& loaded) {
  const checkpoint::SafetensorsFile file = TRY(checkpoint::open_save(path));
  const SavedRun saved = TRY(read_saved_run(file, path.string()));
  loaded.source = path.string();
  loaded.spec = saved.run.model;
  loaded.step = saved.state.step;
  loaded.run = saved.run;
  if (const auto it = file.metadata().find(tokenizer_key); it != file.metadata().end()) {
    loaded.tokenizer_fingerprint = it->second;
  }
  loaded.tokenizer_path = options.tokenizer.empty() ? saved.run.data.tokenizer : options.tokenizer;
  build(loaded, options.dtype.value_or(
                    dtype_named(saved.run.training.mixed_precision_param).value()));
  return read_parameters(file, path.string(), *loaded.parameters);
}

Status load_huggingface(const Path& path, const LoadOptions& options, LoadedModel& loaded) {
  loaded.source = path.string();
  loaded.spec = TRY(spec::load_model((path / "config.json").string()));
  if (loaded.spec.moe || loaded.spec.mla) {
    return invalid_input("{}: mixture-of-experts and latent-attention models can be counted, not run; "
                         "use a dense model", path.string());
  }
  std::error_code none;
  const bool has_tokenizer = std::filesystem::exists(path / "tokenizer.json", none) ||
                             std::filesystem::exists(path / "tokenizer.model", none);
  if (options.tokenizer.empty() && !has_tokenizer) {
    return invalid_input("{}: holds no tokenizer.json or tokenizer.model; name the model's tokenizer "
                         "with --tokenizer (\"byte\" where it has none)", path.string());
  }
  loaded.tokenizer_path = options.tokenizer.empty() ? path.string() : options.tokenizer;
  const DType stored = TRY(checkpoint::huggingface_dtype(path));
  build(loaded, options.dtype.value_or(stored));
  return checkpoint::import_huggingface(path, loaded.spec, *loaded.parameters);
}

}  // namespace

Result<std::unique_ptr<LoadedModel>> load_for_use(const std::string& path,
                                                  const LoadOptions& options) {
  auto loaded = std::make_unique<LoadedModel>(options.threads);
  const Path where(path);
  std::error_code none;
  if (!std::filesystem::exists(where, none)) {
    return invalid_input("{}: no such file or folder; give a run's folder, a step-<n>.safetensors "
                         "or a Hugging Face folder", path);
  }
  if (!std::filesystem::is_directory(where, none)) {
    TRY(load_save(where, options, *loaded));
  } else if (std::filesystem::exists(where / "config.json", none)) {
    TRY(load_huggingface(where, options, *loaded));
  } else {
    const Path save = TRY(newest_save(where));
    if (save.empty()) {
      return invalid_input("{}: holds neither a saved step (step-<n>.safetensors) nor a Hugging Face "
                           "config.json", where.string());
    }
    TRY(load_save(save, options, *loaded));
  }
  loaded->tokenizer = TRY(data::load_tokenizer(loaded->tokenizer_path));
  const std::string fingerprint = hex(loaded->tokenizer->fingerprint());
  if (options.tokenizer.empty() && !loaded->tokenizer_fingerprint.empty() &&
      loaded->tokenizer_fingerprint != fingerprint) {
    return invalid_input("{}: was trained with another tokenizer than {} is now; put the old one back, or "
                         "name the right one with --tokenizer", loaded->source,
                         loaded->tokenizer_path);
  }
  if (loaded->tokenizer->vocab_size() > loaded->spec.vocab_size) {
    return invalid_input("tokenizer {} has {} tokens, the model only {}; give the model's own with "
                         "--tokenizer", loaded->tokenizer_path, loaded->tokenizer->vocab_size(),
                         loaded->spec.vocab_size);
  }
  return loaded;
}

}  // namespace fivefold::train
