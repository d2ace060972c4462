// Keys of features that are still to come. Their neutral value is accepted, so that a run file may
// state it; any other is refused, never ignored.

#include "spec/schema.hpp"

namespace fivefold::spec {
namespace {

Key later(const char* section, const char* name, Value neutral, const char* reason,
          std::vector<Alias> aliases = {}) {
  return {.section = section,
          .name = name,
          .aliases = std::move(aliases),
          .neutral = std::move(neutral),
          .later = reason};
}

using Text = std::string;
constexpr int64_t zero = 0, one = 1;

std::vector<Key> axis_keys() {
  const char* const shard = "sharded data parallelism comes later";
  const char* const tensor = "tensor parallelism comes later";
  const char* const context = "context parallelism comes later";
  const char* const pipeline = "pipeline parallelism comes later";
  const char* const expert = "expert parallelism comes later";
  const char* const p = "parallelism";
  return {
      later(p, "data_parallel_shard_degree", one, shard, {{"fsdp"}, {"ici_fsdp_parallelism"}}),
      later(p, "zero_stage", zero, shard,
            {{"zero_stage"},
             {"zero_optimization.stage"},
             {.name = "data-parallel-sharding-strategy",
              .values = {{"no_shard", "0"},
                         {"optim", "1"},
                         {"optim_grads", "2"},
                         {"optim_grads_params", "3"}}}}),
      later(p, "fsdp_reshard_after_forward", Text("default"), shard),
      later(p, "tensor_parallel_degree", one, tensor,
            {{"tensor-model-parallel-size"}, {"tp"}, {"tp_size"}}),
      later(p, "enable_sequence_parallel", false, tensor, {{"sequence-parallel"}}),
      later(p, "enable_loss_parallel", false, tensor),
      later(p, "enable_async_tensor_parallel", false, tensor, {{"tp-comm-overlap"}}),
      later(p, "context_parallel_degree", one, context,
            {{"context-parallel-size"}, {"cp"}, {"cp_size"}}),
      later(p, "context_parallel_method", Text("ring"), context,
            {{.name = "cp-comm-type",
              .values = {{"p2p", "ring"}, {"all_gather", "allgather"}, {"a2a", "ulysses"}}},
             {"context_parallel_strategy"}}),
      later(p, "context_parallel_load_balancer", Text("headtail"), context),
      later(p, "pipeline_parallel_degree", one, pipeline,
            {{"pipeline-model-parallel-size"}, {"pp"}, {"pp_size"}}),
      later(p, "pipeline_parallel_schedule", Text("1F1B"), pipeline,
            {{.name = "pp_engine", .values = {{"1f1b", "1F1B"}, {"afab", "GPipe"}}}}),
      later(p, "pipeline_parallel_layers_per_stage", zero, pipeline,
            {{"num-layers-per-virtual-pipeline-stage"}}),
      later(p, "pipeline_parallel_first_stage_less_layers", zero, pipeline),
      later(p, "pipeline_parallel_last_stage_less_layers", zero, pipeline),
      later(p, "expert_parallel_degree", one, expert, {{"expert-model-parallel-size"}, {"ep"}}),
      later(p, "expert_tensor_parallel_degree", one, expert, {{"expert-tensor-parallel-size"}}),
  };
}

std::vector<Key> other_keys() {
  const char* const mixture = "training a mixture of experts comes later";
  const char* const fault = "replica-level fault tolerance comes later";
  const char* const profile = "profiling comes later";
  return {
      later("model", "capacity_factor", -1.0, mixture, {{"moe-expert-capacity-factor"}}),
      later("model", "load_balance_coeff", 0.0, mixture, {{"moe-router-bias-update-rate"}}),
      later("model", "aux_loss_coeff", 0.0, mixture, {{"moe-aux-loss-coeff"}}),
      later("model", "z_loss_coeff", 0.0, mixture, {{"moe-z-loss-coeff"}}),
      later("training", "enable_cpu_offload", false, "offloading comes later"),
      later("compile", "enable", false,
            "there is nothing to compile: kernels are built with the program"),
      later("quantization", "recipe", Text("none"), "quantized training comes later",
            {{"fp8-recipe"}}),
      later("checkpoint", "async_mode", Text("disabled"), "asynchronous saving comes later",
            {{.name = "async-save",
              .values = {{"true", "async"}, {"false", "disabled"}},
              .without_value = "true"}}),
      later("checkpoint", "export_dtype", Text("float32"),
            "exporting in another type at the end of a run comes later (`fivefold export` can)"),
      later("metrics", "enable_tensorboard", false,
            "TensorBoard files come later; metrics are written as JSON lines"),
      later("metrics", "enable_wandb", false,
            "Weights & Biases is not supported; metrics are written as JSON lines"),
      later("profiling", "enable_profiling", false, profile, {{"profile"}}),
      later("profiling", "profile_freq", int64_t{10}, profile),
      later("profiling", "enable_memory_snapshot", false, profile),
      later("comm", "trace_buf_size", zero, "the flight recorder comes later"),
      later("debug", "deterministic", true, "runs are always deterministic",
            {{"deterministic-mode"}}),
      later("debug", "print_config", false, "ask for it on the command line, --print-config"),
      later("fault_tolerance", "enable", false, fault),
      later("fault_tolerance", "replica_id", zero, fault),
      later("fault_tolerance", "group_size", zero, fault),
      later("fault_tolerance", "min_replica_size", one, fault),
  };
}

}  // namespace

const std::vector<Key>& later_keys() {
  static const std::vector<Key> keys = [] {
    std::vector<Key> all = axis_keys();
    const std::vector<Key> more = other_keys();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return keys;
}

const std::vector<std::pair<std::string, std::string>>& foreign_names() {
  static const std::vector<std::pair<std::string, std::string>> names = {
      {"training.local_batch_size",
       "it is per rank and step elsewhere; use training.micro_batch_size for a rank's microbatch "
       "and "
       "training.global_batch_size for the step"},
      {"local_batch_size",
       "it is per rank and step elsewhere; use training.micro_batch_size for a rank's microbatch "
       "and "
       "training.global_batch_size for the step"},
      {"total_batch_size",
       "it counts tokens; use training.global_batch_size, which counts sequences"},
      {"training.dataset", "use [[data.sources]] with a path"},
      {"training.dataset_path", "use [[data.sources]] with a path"},
      {"data-path", "use --data.sources=PATH"},
      {"data.path", "use [[data.sources]] with a path, or --data.sources=PATH"},
      {"model.flavor", "use model.name with a preset, for example \"llama3_8b\""},
      {"model.hf_assets_path", "use data.tokenizer and checkpoint.initial_load_path"},
      {"checkpoint.initial_load_in_hf",
       "leave it out: initial_load_path recognises a Hugging Face folder"},
      {"min-lr", "use lr_scheduler.min_lr_factor, the lowest rate over optimizer.lr"},
      {"lr-wsd-decay-iters", "use lr_scheduler.decay_ratio, the share of the steps that decay"},
      {"lr-warmup-fraction", "use lr_scheduler.warmup_steps"},
      {"train-samples", "use training.steps"},
      {"decoder-first-pipeline-num-layers", "pipeline parallelism comes later"},
      {"decoder-last-pipeline-num-layers", "pipeline parallelism comes later"},
      {"num-virtual-stages-per-pipeline-rank", "pipeline parallelism comes later"},
      {"remat_policy", "use activation_checkpoint.mode"},
      {"bf16", "use training.mixed_precision_param = \"bfloat16\""},
      {"parallelism.disable_loss_parallel", "use parallelism.enable_loss_parallel"},
  };
  return names;
}

}  // namespace fivefold::spec
