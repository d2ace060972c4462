#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/tokenizer.hpp"
#include "model/model.hpp"
#include "spec/run.hpp"

namespace fivefold::train {

struct LoadOptions {
  int threads = 1;
  std::string tokenizer;             // empty: the one that the weights were trained with
  std::optional<DType> dtype = {};   // empty: that of the stored weights
};

// Weights with all that is needed to use them.
struct LoadedModel {
  Memory memory;
  kernels::ThreadPool pool;
  kernels::Context context;
  spec::ModelSpec spec;
  std::string tokenizer_path;
  std::unique_ptr<data::Tokenizer> tokenizer;
  std::string tokenizer_fingerprint;  // of the one that the weights were trained with, if known
  std::unique_ptr<ParameterSet> parameters;
  std::unique_ptr<model::Model> model;
  std::string source;  // the file that it came from
  int64_t step = -1;   // -1: not a training checkpoint
  std::optional<spec::RunSpec> run;  // that made it
  int64_t max_seq_len = 0;

  explicit LoadedModel(int threads) : pool(threads), context{pool, memory} {}
};

// `path` is a run's folder (its latest save), a step-<n>.safetensors of ours, or a Hugging Face
// folder.
// Errors   invalid_input: nothing of the kind there, or a damaged file.
Result<std::unique_ptr<LoadedModel>> load_for_use(const std::string& path,
                                                  const LoadOptions& options);

}  // namespace fivefold::train
