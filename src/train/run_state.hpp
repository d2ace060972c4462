#pragma once
// What a training checkpoint holds besides tensors, and how a run continues from one.

#include <string>
#include <vector>

#include "checkpoint/safetensors.hpp"
#include "optim/optimizer.hpp"
#include "parameter/parameter_set.hpp"
#include "spec/run.hpp"

namespace fivefold::train {

// Where a run is. All of it counts over all ranks, so it does not depend on their number.
struct RunState {
  int64_t step = 0;     // finished optimizer steps
  int64_t samples = 0;  // sequences consumed: the position in the data
  int64_t tokens = 0;   // tokens that bore loss
};

struct SavedRun {
  RunState state;
  spec::RunSpec run;  // as it was when saved
};

// Metadata key of the tokenizer's fingerprint, in hexadecimal.
inline constexpr const char* tokenizer_key = "tokenizer_fingerprint";

std::map<std::string, std::string> metadata_of(const spec::RunSpec& run, const RunState& state);

// Errors   invalid_input when the file is not a training checkpoint of ours.
Result<SavedRun> read_saved_run(const checkpoint::SafetensorsFile& file, const std::string& name);

// Fills all parameters. Errors: invalid_input when one is missing, of another size, or not finite.
Status read_parameters(const checkpoint::SafetensorsFile& file, const std::string& name,
                       const ParameterSet& parameters);

// The newest save in a folder: of saves, or of a run (checkpoint.folder is the user's to name).
// Empty where there is none.
Result<Path> newest_save(const Path& where);

// checkpoint.initial_load_path: the weights alone, from a checkpoint of ours, a run's folder (its
// newest save), or a Hugging Face folder or file. The new run starts at step 0, from the unrounded
// weights where the save has them. Returns what was read.
Result<Path> read_initial_weights(const Path& path, const spec::ModelSpec& model,
                                  kernels::Context& ctx, ParameterSet& parameters,
                                  optim::AdamWOptimizer& optimizer);

// May `run` continue what `saved` began? Lists the changed keys; refuses those that would make it
// another run: the model, the precision, the sequence length, the seed, the tokenizer.
Result<std::vector<std::string>> check_resume(const spec::RunSpec& run, const spec::RunSpec& saved,
                                              const std::string& checkpoint);

}  // namespace fivefold::train
