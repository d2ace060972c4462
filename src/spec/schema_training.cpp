// The keys of [job], [training], [optimizer], [lr_scheduler], [parallelism] and
// [activation_checkpoint].

#include "spec/schema.hpp"

namespace fivefold::spec {
namespace {

template <class T>
Access<T> plain(T RunSpec::*member) {
  return {[=](const RunSpec& run) { return std::optional<T>(run.*member); },
          [=](RunSpec& run, const T& value) { return run.*member = value, true; }};
}

std::vector<Key> batch_keys() {
  const auto integer = [](int64_t TrainingSpec::*member) {
    return field(&RunSpec::training, member);
  };
  return {
      {.section = "job",
       .name = "description",
       .access = plain(&RunSpec::description),
       .aliases = {{"description"}},
       .doc = "A line for people."},
      {.section = "job",
       .name = "dump_folder",
       .access = plain(&RunSpec::dump_folder),
       .aliases = {{"dump-folder"}},
       .doc = "Everything the run writes lies under this folder."},
      {.section = "training",
       .name = "micro_batch_size",
       .access = integer(&TrainingSpec::micro_batch_size),
       .range = between(1, 1 << 20),
       .aliases = {{"micro-batch-size"}, {"train_micro_batch_size_per_gpu"}},
       .doc = "Sequences of a rank and microbatch."},
      {.section = "training",
       .name = "global_batch_size",
       .access = integer(&TrainingSpec::global_batch_size),
       .range = between(0, 1 << 20),
       .aliases = {{"global-batch-size"}, {"train_batch_size"}},
       .doc =
           "Sequences of a step, whatever the number of ranks; microbatches to accumulate follow "
           "from it. 0: `micro_batch_size` times the ranks (times "
           "`gradient_accumulation_steps` when that is given)."},
      {.section = "training",
       .name = "gradient_accumulation_steps",
       .access = integer(&TrainingSpec::gradient_accumulation_steps),
       .range = between(0, 1 << 20),
       .aliases = {{"gradient-accumulation-steps"}},
       .doc = "Microbatches of a rank and step. 0: derived; otherwise checked against "
              "`global_batch_size`."},
      {.section = "training",
       .name = "seq_len",
       .access = integer(&TrainingSpec::seq_len),
       .range = between(1, 1 << 22),
       .aliases = {{"seq-length"}, {"sequence_length"}, {"max_target_length"}, {"seq-len"}},
       .doc = "Tokens of a sequence; at most `model.max_seq_len`."},
      {.section = "training",
       .name = "steps",
       .access = integer(&TrainingSpec::steps),
       .range = between(1, 1e9),
       .aliases = {{"train-iters"}, {"train_steps"}, {"total_train_steps"}, {"steps"}},
       .doc = "Optimizer steps of the whole run, resumed parts included."},
      {.section = "training",
       .name = "max_norm",
       .access = field(&RunSpec::training, &TrainingSpec::max_norm),
       .range = between(0, 1e12),
       .aliases = {{"clip-grad"}, {"gradient_clipping"}},
       .doc = "Gradients are scaled down to this global norm; 0: never."},
      {.section = "training",
       .name = "mixed_precision_param",
       .access = field(&RunSpec::training, &TrainingSpec::mixed_precision_param),
       .choices = {"float32", "bfloat16", "float64"},
       .later_choices = {"float16"},
       .doc = "Parameters and activations. With `bfloat16` the master weights, the optimizer and "
              "reductions stay float32."},
      {.section = "training",
       .name = "mixed_precision_reduce",
       .access = field(&RunSpec::training, &TrainingSpec::mixed_precision_reduce),
       .choices = {"float32", "float64"},
       .later_choices = {"bfloat16"},
       .doc = "Gradients and their reduction. When it is not given it follows "
              "`mixed_precision_param`: float64 with float64, else float32; other pairs are "
              "refused."},
      {.section = "training",
       .name = "threads",
       .access = integer(&TrainingSpec::threads),
       .range = between(0, 256),
       .aliases = {{"threads"}},
       .doc = "Threads of a rank; 0: this machine's cores over its ranks."},
  };
}

std::vector<Key> update_keys() {
  const auto real = [](double OptimizerSpec::*member) {
    return field(&RunSpec::optimizer, member);
  };
  return {
      {.section = "optimizer",
       .name = "name",
       .access = field(&RunSpec::optimizer, &OptimizerSpec::name),
       .choices = {"AdamW"},
       .later_choices = {"Adam", "SGD", "Muon", "Adafactor"},
       .aliases = {{.name = "optimizer", .values = {{"adamw", "AdamW"}}}},
       .doc = "AdamW with decoupled weight decay."},
      {.section = "optimizer",
       .name = "lr",
       .access = real(&OptimizerSpec::lr),
       .range = above_to(0, 100),
       .aliases = {{"lr"}, {"learning_rate"}},
       .doc = "Learning rate at its highest."},
      {.section = "optimizer",
       .name = "beta1",
       .access = real(&OptimizerSpec::beta1),
       .range = to_below(0, 1),
       .aliases = {{"adam-beta1"}, {"beta1"}},
       .doc = "Decay of the gradient's mean."},
      {.section = "optimizer",
       .name = "beta2",
       .access = real(&OptimizerSpec::beta2),
       .range = to_below(0, 1),
       .aliases = {{"adam-beta2"}, {"beta2"}},
       .doc = "Decay of the squared gradient's mean."},
      {.section = "optimizer",
       .name = "eps",
       .access = real(&OptimizerSpec::eps),
       .range = between(1e-30, 1),
       .aliases = {{"adam-eps"}},
       .doc = "Added to the root of the squared gradient's mean."},
      {.section = "optimizer",
       .name = "weight_decay",
       .access = real(&OptimizerSpec::weight_decay),
       .range = between(0, 100),
       .aliases = {{"weight-decay"}},
       .doc = "Decay of matrices, embeddings included; norms and biases do not decay."},
      {.section = "lr_scheduler",
       .name = "warmup_steps",
       .access = field(&RunSpec::lr_scheduler, &LrSchedulerSpec::warmup_steps),
       .range = between(0, 1e9),
       .aliases = {{"lr-warmup-iters"}, {"warmup_steps"}, {"lr_warmup_steps"}},
       .doc = "Steps of the linear rise; at most `training.steps`."},
      {.section = "lr_scheduler",
       .name = "decay_type",
       .access = field(&RunSpec::lr_scheduler, &LrSchedulerSpec::decay_type),
       .choices = {"linear", "sqrt", "cosine"},
       .aliases = {{"lr-decay-style"}, {"lr_schedule_type"}},
       .doc = "Shape of the fall."},
      {.section = "lr_scheduler",
       .name = "decay_ratio",
       .access = field(&RunSpec::lr_scheduler, &LrSchedulerSpec::decay_ratio),
       .range = above_to(0, 1),
       .aliases = {{"decay-ratio"}},
       .doc = "Share of the steps in which the rate falls, at the end of the run: below 1 it is "
              "warm-up, stable, decay (WSD)."},
      {.section = "lr_scheduler",
       .name = "min_lr_factor",
       .access = field(&RunSpec::lr_scheduler, &LrSchedulerSpec::min_lr_factor),
       .range = between(0, 1),
       .doc = "The last step's rate over the highest."},
  };
}

std::vector<Key> layout_keys() {
  return {
      {.section = "parallelism",
       .name = "data_parallel_replicate_degree",
       .access = field(&RunSpec::parallelism, &ParallelismSpec::data_parallel_replicate_degree),
       .range = between(-1, 1 << 20),
       .aliases = {{"dp"}, {"dp_size"}, {"dcn_data_parallelism"}},
       .doc = "Ranks that hold the whole model and share the batch; -1: the ranks that there are. "
              "Any other number must be the number of ranks the run is started with."},
      {.section = "parallelism",
       .name = "bucket_size_mb",
       .access = field(&RunSpec::parallelism, &ParallelismSpec::bucket_size_mb),
       .range = between(1, 1 << 16),
       .doc = "Gradients are reduced in buckets of this many MiB."},
      {.section = "activation_checkpoint",
       .name = "mode",
       .access = field(&RunSpec::activation_checkpoint, &ActivationCheckpointSpec::mode),
       .choices = {"none", "selective", "full"},
       .aliases = {{"recompute-granularity"}},
       .doc = "What the backward pass recomputes: nothing, cheap parts of each layer, or layers in "
              "full. Results are bit-equal."},
      {.section = "activation_checkpoint",
       .name = "selective_ac_option",
       .access =
           field(&RunSpec::activation_checkpoint, &ActivationCheckpointSpec::selective_ac_option),
       .doc = "With `selective`: `op`, or n to recompute every n-th layer in full."},
  };
}

}  // namespace

std::vector<Key> training_keys() {
  std::vector<Key> keys = batch_keys();
  for (auto&& more : {update_keys(), layout_keys()}) {
    keys.insert(keys.end(), more.begin(), more.end());
  }
  return keys;
}

}  // namespace fivefold::spec
