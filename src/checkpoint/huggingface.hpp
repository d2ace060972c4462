#pragma once
// To and from Hugging Face model folders: config.json plus model.safetensors, or several shards
// with model.safetensors.index.json. Rotary layout is Hugging Face's own, so Llama weights need no
// permutation; GPT-2's Conv1D weights are transposed and its fused c_attn split.

#include "base/files.hpp"
#include "parameter/parameter_set.hpp"
#include "spec/model.hpp"

namespace fivefold::checkpoint {

// Fills every parameter from the folder (or single .safetensors file) at `path`.
// Ignores  buffers that older files carry (rotary_emb.inv_freq; GPT-2's attn.bias and
//          attn.masked_bias) and a tied lm_head.weight whose bits equal the embedding's.
// Errors   invalid_input: tensors missing, left over, of another shape, or not finite, listed
//          together (the first twenty). The parameters' contents are then unspecified.
Status import_huggingface(const Path& path, const spec::ModelSpec& model, ParameterSet& parameters);

// What the weights at `path` are stored in: f64 when a tensor is F64, bf16 when all are BF16,
// otherwise f32 (which F16 widens to without loss).
Result<DType> huggingface_dtype(const Path& path);

struct ExportOptions {
  DType dtype = DType::f32;
  int64_t max_shard_bytes = int64_t{5} << 30;
};
// Writes config.json, the weights (sharded with an index when larger than max_shard_bytes) and a
// copy of `tokenizer_path` when it names a file. Importing the result gives the same bits.
// Errors   io; invalid_input: a weight that is not finite or too large for options.dtype, or a
//          folder that holds weights which this export would leave beside its own.
Status export_huggingface(const Path& folder, const spec::ModelSpec& model,
                          const ParameterSet& parameters, const ExportOptions& options,
                          const std::string& tokenizer_path);

}  // namespace fivefold::checkpoint
