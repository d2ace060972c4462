#pragma once
// Which Hugging Face tensor holds which of our parameters, as data that import and export both
// read.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "parameter/parameter_set.hpp"
#include "spec/model.hpp"

namespace fivefold::checkpoint {

// One tensor of a Hugging Face file. Its last dim, or its only one, is the parts' first dims
// joined: GPT-2's c_attn is q, k and v side by side. A tensor of one part that is not transposed is
// the parameter itself.
struct ForeignTensor {
  std::string name;
  std::vector<int64_t> shape;
  bool transposed = false;  // [in, out] where ours are [out, in]
  std::vector<const Parameter*> parts;
};

// All tensors of the model, by name. GPT-2's carry the prefix "transformer.".
// Errors   invalid_input: an architecture whose weights we cannot exchange.
Result<std::vector<ForeignTensor>> foreign_layout(const spec::ModelSpec& model,
                                                  const ParameterSet& parameters);

// Tensors that files carry though they are not weights: their content follows from the config.
bool is_known_buffer(const spec::ModelSpec& model, std::string_view name);

constexpr std::string_view gpt2_prefix = "transformer.";
constexpr std::string_view head_name = "lm_head.weight";
// The name of the tensor that a tied head shares.
std::string_view embedding_name(const spec::ModelSpec& model);

// The weight_map of a model.safetensors.index.json: tensor name to file name.
// Errors   invalid_input: not such an index, a tensor twice, or a file outside the folder.
Result<std::map<std::string, std::string>> parse_index(std::string_view text,
                                                       const std::string& name);

}  // namespace fivefold::checkpoint
