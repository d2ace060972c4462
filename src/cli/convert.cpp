#include <memory>
#include <string>

#include "base/quantity.hpp"
#include "checkpoint/huggingface.hpp"
#include "cli/commands.hpp"
#include "train/loaded_model.hpp"
#include "train/run_state.hpp"
#include "checkpoint/store.hpp"

namespace fivefold::cli {
namespace {

struct Options {
  std::string from, to, tokenizer, dtype = "auto";
  int64_t max_shard_mb = 5 << 10;
};

Result<std::optional<DType>> dtype_of(const std::string& name) {
  if (name == "auto") return std::optional<DType>();
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    if (dtype_named(name) == dtype) return std::optional<DType>(dtype);
  }
  return invalid_input("--dtype {}: use auto, float32, bfloat16 or float64", name);
}

Status export_command(const Options& o) {
  const std::optional<DType> dtype = TRY(dtype_of(o.dtype));
  const std::unique_ptr<train::LoadedModel> loaded =
      TRY(train::load_for_use(o.from, {.tokenizer = o.tokenizer, .dtype = dtype}));
  TRY(make_folder(o.to));
  TRY(checkpoint::export_huggingface(
      o.to, loaded->spec, *loaded->parameters,
      {.dtype = loaded->parameters->dtype(), .max_shard_bytes = o.max_shard_mb << 20},
      loaded->tokenizer_path));
  fmt::print("{}: {} parameters of {} as {}, for Hugging Face\n", o.to,
             grouped(loaded->parameters->count()), loaded->source,
             name_of(loaded->parameters->dtype()));
  return {};
}

Status import_command(const Options& o) {
  const std::optional<DType> dtype = TRY(dtype_of(o.dtype));
  const std::unique_ptr<train::LoadedModel> loaded =
      TRY(train::load_for_use(o.from, {.tokenizer = o.tokenizer, .dtype = dtype}));
  if (loaded->run) {
    return invalid_input("{}: is a checkpoint of ours already; import takes a Hugging Face folder",
                         o.from);
  }
  const ParameterSet& parameters = *loaded->parameters;
  spec::RunSpec run;
  run.description = "imported from " + o.from;
  run.dump_folder = o.to;
  run.model = loaded->spec;
  run.data.tokenizer = loaded->tokenizer_path;
  run.training.seq_len = std::min<int64_t>(1024, loaded->max_seq_len);
  run.training.steps = 1;
  run.training.mixed_precision_param = name_of(parameters.dtype());
  if (parameters.dtype() == DType::f64) run.training.mixed_precision_reduce = "float64";
  std::vector<checkpoint::TensorToStore> tensors;
  for (const Parameter& p : parameters.all()) {
    tensors.push_back({p.spec.name, parameters.value(p), p.spec.shape});
  }
  TRY(make_folder(o.to));
  TRY(checkpoint::save(o.to, 0, tensors, train::metadata_of(run, {}), 0));
  fmt::print("{}/step-00000000.safetensors: {} parameters as {}; train from it with "
             "checkpoint.initial_load_path\n", o.to, grouped(parameters.count()),
             name_of(parameters.dtype()));
  return {};
}

void add_dtype(CLI::App& command, Options& o, const char* text) {
  command.add_option("--dtype", o.dtype, text)->capture_default_str();
  command.add_option("--tokenizer", o.tokenizer, "Tokenizer that belongs to the weights");
}

}  // namespace

void add_import(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("import", "Read a Hugging Face folder into a checkpoint of ours");
  const auto o = std::make_shared<Options>();
  command->add_option("FROM", o->from, "Hugging Face folder (config.json, *.safetensors)")
      ->required();
  command->add_option("FOLDER", o->to, "Where to write")->required();
  add_dtype(*command, *o, "auto (as stored), float32, bfloat16 or float64");
  command->callback([o, &action] { action = [o] { return import_command(*o); }; });
}

void add_export(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("export", "Write a trained model as a Hugging Face folder");
  const auto o = std::make_shared<Options>();
  command->add_option("MODEL", o->from, "Run folder or step-<n>.safetensors")->required();
  command->add_option("FOLDER", o->to, "Where to write")->required();
  add_dtype(*command, *o, "auto (as trained), float32, bfloat16 or float64");
  command->add_option("--max-shard-mb", o->max_shard_mb, "Split the weights into files of this size")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))->capture_default_str();
  command->callback([o, &action] { action = [o] { return export_command(*o); }; });
}

}  // namespace fivefold::cli
