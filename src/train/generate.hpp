#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "train/loaded_model.hpp"
#include "train/sampler.hpp"

namespace fivefold::train {

struct GenerateOptions {
  SamplingOptions sampling;
  int64_t max_tokens = 100;
  bool stop_at_end_of_text = true;
};

// Continues `prompt` (empty: from the start of a text), one token at a time with a cache of keys
// and values. `on_text` receives pieces of text that are whole UTF-8 where the text is.
// Errors   invalid_input when prompt and max_tokens do not fit the model's max_seq_len.
Status generate(LoadedModel& loaded, const std::string& prompt, const GenerateOptions& options,
                const std::function<void(std::string_view)>& on_text);

}  // namespace fivefold::train
