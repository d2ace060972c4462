// The keys of [data], [checkpoint], [metrics], [validation], [comm] and [debug].

#include "spec/schema.hpp"

namespace fivefold::spec {
namespace {

std::vector<Key> data_keys() {
  const auto text = [](std::string DataSpec::*member) { return field(&RunSpec::data, member); };
  return {
      {.section = "data",
       .name = "tokenizer",
       .access = text(&DataSpec::tokenizer),
       .aliases = {{"tokenizer-model"}},
       .doc = "`byte`, or the path of a SentencePiece .model or a Hugging Face tokenizer.json."},
      {.section = "data",
       .name = "validation_share",
       .access = field(&RunSpec::data, &DataSpec::validation_share),
       .range = to_below(0, 1),
       .doc =
           "Share of the documents, at the end, kept for validation when no `validation_path` is "
           "given."},
      {.section = "data",
       .name = "validation_path",
       .access = text(&DataSpec::validation_path),
       .doc = "Text or tokens to validate on."},
      {.section = "data",
       .name = "pack_documents",
       .access = field(&RunSpec::data, &DataSpec::pack_documents),
       .doc = "Several documents share a sequence; attention and positions stop at their borders."},
      {.section = "data",
       .name = "mask_document_borders",
       .access = field(&RunSpec::data, &DataSpec::mask_document_borders),
       .doc = "The last token of a document does not predict the first of the next."},
      {.section = "data",
       .name = "cache_folder",
       .access = text(&DataSpec::cache_folder),
       .aliases = {{"data-cache-path"}},
       .doc = "Where the tokens of text sources are kept; empty: beside the run."},
      {.section = "data",
       .name = "prefetch",
       .access = field(&RunSpec::data, &DataSpec::prefetch),
       .range = between(1, 1024),
       .doc = "Batches prepared ahead."},
  };
}

std::vector<Key> checkpoint_keys() {
  const auto integer = [](int64_t CheckpointSpec::*member) {
    return field(&RunSpec::checkpoint, member);
  };
  return {
      {.section = "checkpoint",
       .name = "enable",
       .access = field(&RunSpec::checkpoint, &CheckpointSpec::enable),
       .doc = "Save and resume."},
      {.section = "checkpoint",
       .name = "folder",
       .access = field(&RunSpec::checkpoint, &CheckpointSpec::folder),
       .aliases = {{"save"}},
       .doc = "Under `job.dump_folder`, unless absolute."},
      {.section = "checkpoint",
       .name = "interval",
       .access = integer(&CheckpointSpec::interval),
       .range = between(0, 1e9),
       .aliases = {{"save-interval"}},
       .doc = "Steps between saves; 0: only at the end."},
      {.section = "checkpoint",
       .name = "keep_latest_k",
       .access = integer(&CheckpointSpec::keep_latest_k),
       .range = between(0, 1e6),
       .doc = "Older saves are removed; 0: none is."},
      {.section = "checkpoint",
       .name = "load_step",
       .access = integer(&CheckpointSpec::load_step),
       .range = between(-1, 1e9),
       .aliases = {{"ckpt-step"}},
       .doc = "The save to resume from; -1: the latest, when there is one."},
      {.section = "checkpoint",
       .name = "initial_load_path",
       .access = field(&RunSpec::checkpoint, &CheckpointSpec::initial_load_path),
       .aliases = {{"load"}},
       .doc =
           "Weights to start from when there is no save to resume: a run's folder (its newest "
           "save), a save, or Hugging Face's folder or safetensors."},
      {.section = "checkpoint",
       .name = "last_save_in_hf",
       .access = field(&RunSpec::checkpoint, &CheckpointSpec::last_save_in_hf),
       .doc = "At the end, the weights are written as a Hugging Face folder too."},
  };
}

std::vector<Key> watch_keys() {
  return {
      {.section = "metrics",
       .name = "log_freq",
       .access = field(&RunSpec::metrics, &MetricsSpec::log_freq),
       .range = between(1, 1e9),
       .aliases = {{"log-interval"}},
       .doc = "Steps between lines of progress."},
      {.section = "validation",
       .name = "enable",
       .access = field(&RunSpec::validation, &ValidationSpec::enable),
       .doc = "Measure the loss on the validation data."},
      {.section = "validation",
       .name = "freq",
       .access = field(&RunSpec::validation, &ValidationSpec::freq),
       .range = between(1, 1e9),
       .aliases = {{"eval-interval"}},
       .doc = "Steps between validations; the last step always has one."},
      {.section = "validation",
       .name = "steps",
       .access = field(&RunSpec::validation, &ValidationSpec::steps),
       .range = between(1, 1e9),
       .aliases = {{"eval-iters"}},
       .doc = "Global batches of a validation."},
      {.section = "comm",
       .name = "init_timeout_seconds",
       .access = field(&RunSpec::comm, &CommSpec::init_timeout_seconds),
       .range = between(1, 1e6),
       .doc = "How long the ranks wait for each other at the start, and while a checkpoint is written."},
      {.section = "comm",
       .name = "train_timeout_seconds",
       .access = field(&RunSpec::comm, &CommSpec::train_timeout_seconds),
       .range = between(1, 1e6),
       .aliases = {{.name = "distributed-timeout-minutes", .scale = 60}},
       .doc = "How long any later communication may take."},
      {.section = "debug",
       .name = "seed",
       .access = field(&RunSpec::debug, &DebugSpec::seed),
       .range = between(0, 9007199254740992.0),
       .aliases = {{"seed"}},
       .doc = "Of initial weights, dropout and the order of the data."},
      {.section = "debug",
       .name = "detect_anomaly",
       .access = field(&RunSpec::debug, &DebugSpec::detect_anomaly),
       .doc = "Look for NaN and infinity in every layer's output, not in the loss and the gradient "
              "alone."},
  };
}

// A member of the last source.
template <class T>
Access<T> source(T DataSource::*member) {
  return {[=](const RunSpec& run) -> std::optional<T> {
            if (run.data.sources.empty()) return std::nullopt;
            return run.data.sources.back().*member;
          },
          [=](RunSpec& run, const T& value) {
            if (run.data.sources.empty()) return false;
            return run.data.sources.back().*member = value, true;
          }};
}

}  // namespace

std::vector<Key> service_keys() {
  std::vector<Key> keys = data_keys();
  for (auto&& more : {checkpoint_keys(), watch_keys()}) {
    keys.insert(keys.end(), more.begin(), more.end());
  }
  return keys;
}

const std::vector<Key>& source_keys() {
  static const std::vector<Key> keys = {
      {.section = "data.sources",
       .name = "path",
       .access = source(&DataSource::path),
       .doc = "A text file, JSON lines, a .pod file, a folder of these, or a token file's prefix."},
      {.section = "data.sources",
       .name = "weight",
       .access = source(&DataSource::weight),
       .range = above_to(0, 1e12),
       .doc = "Share of the mixture, relative to the other sources."},
      {.section = "data.sources",
       .name = "format",
       .access = source(&DataSource::format),
       .choices = {"auto", "text", "jsonl", "tokens", "megatron"},
       .doc = "`auto` goes by the name; `tokens` is a flat .bin of nanoGPT and llm.c, `megatron` a "
              ".bin with its .idx."},
      {.section = "data.sources",
       .name = "text_key",
       .access = source(&DataSource::text_key),
       .doc = "Of a JSON line: where the text is."},
      {.section = "data.sources",
       .name = "prompt_key",
       .access = source(&DataSource::prompt_key),
       .doc = "Of a JSON line: the prompt, whose tokens bear no loss."},
      {.section = "data.sources",
       .name = "response_key",
       .access = source(&DataSource::response_key),
       .doc = "Of a JSON line: the response to the prompt."},
  };
  return keys;
}

}  // namespace fivefold::spec
