#pragma once
// To and from Hugging Face model folders: config.json plus model.safetensors, or several shards with
// model.safetensors.index.json. Rotary layout is Hugging Face's own, so Llama weights need no
// permutation; GPT-2's Conv1D weights are transposed and its fused c_attn split.

#include "base/files.hpp"
#include "parameter/parameter_set.hpp"
#include "spec/model.hpp"

namespace fivefold::checkpoint {

// Fills every parameter from the folder (or single .safetensors file) at `path`.
// Errors   invalid_input: a tensor missing, left over, of another shape, or not finite; all listed.
Status import_huggingface(const Path& path, const spec::ModelSpec& model, ParameterSet& parameters);

struct ExportOptions {
  DType dtype = DType::f32;
  int64_t max_shard_bytes = int64_t{5} << 30;
};
// Writes config.json, the weights (sharded with an index when larger than max_shard_bytes) and a
// copy of `tokenizer_path` when it names a file. Importing the result gives the same bits.
Status export_huggingface(const Path& folder, const spec::ModelSpec& model,
                          const ParameterSet& parameters, const ExportOptions& options,
                          const std::string& tokenizer_path);

}  // namespace fivefold::checkpoint
