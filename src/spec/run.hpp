#pragma once
// A run file as plain values. Section and key names are torchtitan's; ours are marked. Every key
// takes effect or is refused (run_file.cpp).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "spec/model.hpp"

namespace fivefold::spec {

// One source of text or tokens ([[data.sources]], ours).
struct DataSource {
  std::string path;             // text file, .jsonl, .pod, folder of them, or a token file's prefix
  double weight = 1;            // share of the mixture
  std::string format = "auto";  // auto | text | jsonl | tokens | megatron
  std::string text_key = "text";  // of a JSON line
  std::string prompt_key = "prompt",
              response_key = "response";  // tokens of the prompt bear no loss
};

struct DataSpec {
  std::vector<DataSource> sources;
  std::string tokenizer = "byte";  // byte | path to a .model or tokenizer.json
  double validation_share = 0.05;  // the documents' tail, when no validation path is given
  std::string validation_path;
  bool pack_documents = true;  // attention and positions stop at document borders
  bool mask_document_borders =
      true;                  // the last token of a document does not predict the next one's first
  std::string cache_folder;  // where tokens of text sources are kept; empty: beside the run
  int64_t prefetch = 2;      // batches prepared ahead
};

struct TrainingSpec {
  int64_t micro_batch_size = 1;
  int64_t global_batch_size = 0;  // sequences; 0: micro_batch_size x data-parallel ranks
  int64_t seq_len = 0;
  int64_t steps = 0;
  int64_t gradient_accumulation_steps = 0;  // 0: derived; else checked against the batch sizes
  double max_norm = 1.0;                    // 0: no clipping
  std::string mixed_precision_param =
      "float32";  // parameters and activations: float32 | bfloat16 | float64
  std::string mixed_precision_reduce = "float32";  // gradients; float64 with float64 parameters
  int64_t threads = 0;  // per rank, ours; 0: cores / ranks of this machine
};

struct OptimizerSpec {
  std::string name = "AdamW";
  double lr = 3e-4, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1;
};

struct LrSchedulerSpec {
  int64_t warmup_steps = 0;
  std::string decay_type = "cosine";  // linear | sqrt | cosine
  double decay_ratio = 1;  // share of the steps that decay; < 1 is warm-up, stable, decay
  double min_lr_factor = 0.1;
};

struct ParallelismSpec {
  int64_t data_parallel_replicate_degree = -1;  // -1: the ranks that there are
  int64_t bucket_size_mb = 25;                  // gradient buckets, ours
};

struct ActivationCheckpointSpec {
  std::string mode = "none";               // none | selective | full
  std::string selective_ac_option = "op";  // "op", or n: every n-th layer in full
};

struct CheckpointSpec {
  bool enable = true;
  std::string folder = "checkpoints";  // under the run's dump_folder
  int64_t interval = 0;                // steps; 0: only at the end
  int64_t keep_latest_k = 3;           // 0: all
  int64_t load_step = -1;              // -1: the latest, when there is one
  std::string initial_load_path;       // safetensors or a Hugging Face folder
  bool last_save_in_hf = false;
};

struct MetricsSpec {
  int64_t log_freq = 10;
};

struct ValidationSpec {
  bool enable = true;
  int64_t freq = 100;  // steps; the last step always
  int64_t steps = 10;  // global batches
};

struct CommSpec {
  int64_t init_timeout_seconds = 300, train_timeout_seconds = 100;
};

struct DebugSpec {
  int64_t seed = 0;
  bool detect_anomaly = false;  // check every layer's output, not the loss and gradient alone
};

struct RunSpec {
  std::string description;
  std::string dump_folder = "runs/default";
  ModelSpec model;
  DataSpec data;
  TrainingSpec training;
  OptimizerSpec optimizer;
  LrSchedulerSpec lr_scheduler;
  ParallelismSpec parallelism;
  ActivationCheckpointSpec activation_checkpoint;
  CheckpointSpec checkpoint;
  MetricsSpec metrics;
  ValidationSpec validation;
  CommSpec comm;
  DebugSpec debug;
};

// Reads `path`, lays `overrides` ("training.steps=10", aliases of the command line included) over
// it, and validates the whole. Relative paths in the file are relative to the working folder.
// Errors   invalid_input; the message has one line for each fault:
//          file:line: key = value: reason; nearest legal value or remedy
Result<RunSpec> load_run(const std::string& path, const std::vector<std::string>& overrides);

// The same from text (a checkpoint carries its run file); `name` stands for the file in messages.
Result<RunSpec> parse_run(std::string_view toml, const std::string& name,
                          const std::vector<std::string>& overrides);

// Whether `train` can perform the run: a dense model and some data.
// Errors   invalid_input, one line for each obstacle.
Status check_trainable(const RunSpec& run);

// Every key with type, default, range and meaning, as Markdown: docs/run_file.md.
std::string run_file_reference();

// The effective file, every key with its value, as TOML that load_run takes back to the same
// values.
std::string to_toml(const RunSpec& run);

// What can only be judged once the number of ranks is known: divisibility of the batch.
struct BatchPlan {
  int64_t ranks = 1;
  int64_t global_batch_size = 0;   // sequences a step
  int64_t micro_batch_size = 0;    // sequences a rank and microbatch
  int64_t accumulation_steps = 0;  // microbatches a rank and step
};
// Errors   invalid_input, with the nearest legal global_batch_size below and above.
Result<BatchPlan> plan_batch(const RunSpec& run, int64_t ranks);

}  // namespace fivefold::spec
