#pragma once
// Hugging Face's config.json, both ways.

#include <string>
#include <string_view>

#include "spec/model.hpp"

namespace fivefold::spec {

// The model that a config.json describes: model_type llama, mistral, qwen2, qwen3, gpt2, mixtral or
// deepseek_v3. A field that changes the computation and cannot be honoured, and any field that is
// not known to be harmless, is refused. `file` names the text in messages.
// Errors   invalid_input, one line for each fault.
Result<ModelSpec> from_huggingface_config(std::string_view json, const std::string& file);

// Whether some model_type of Hugging Face's describes the model exactly.
// Errors   invalid_input, with the reason.
Status check_huggingface(const ModelSpec& model);

// The config.json of an exported model. Reading it back gives the same values, but for the name.
// Requires check_huggingface.
std::string to_huggingface_config(const ModelSpec& model);

}  // namespace fivefold::spec
