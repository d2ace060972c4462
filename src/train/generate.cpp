#include "train/generate.hpp"

#include <numeric>
#include <vector>

namespace fivefold::train {
namespace {

// Runs `tokens` through the model after `past` cached ones; the last one's logits in float32.
std::vector<float> step(LoadedModel& loaded, const std::vector<int32_t>& tokens, int64_t past,
                        std::vector<model::KvCache>& caches) {
  const auto n = int64_t(tokens.size());
  std::vector<int32_t> positions(tokens.size());
  std::iota(positions.begin(), positions.end(), int32_t(past));
  model::Input input;
  input.sequences = 1;
  input.seq_len = n;
  input.tokens = ConstView(tokens.data(), DType::i32, {n});
  input.positions = ConstView(positions.data(), DType::i32, {n});
  const Tensor logits = loaded.model->next_logits(input, caches);
  std::vector<float> out(size_t(logits.count()));
  kernels::convert(loaded.context, logits.view().reshape({logits.count()}),
                   View(out.data(), DType::f32, {logits.count()}));
  return out;
}

// How many of the bytes are whole UTF-8 sequences; what follows may be completed by later tokens.
// Bytes that are no UTF-8 count as whole.
size_t whole_utf8(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto c = uint8_t(text[text.size() - back]);
    if ((c & 0xC0) == 0x80) continue;
    const size_t length = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
    return length > back ? text.size() - back : text.size();
  }
  return text.size();
}

}  // namespace

Status generate(LoadedModel& loaded, const std::string& prompt, const GenerateOptions& options,
                const std::function<void(std::string_view)>& on_text) {
  const data::Tokenizer& tokenizer = *loaded.tokenizer;
  std::vector<int32_t> tokens = tokenizer.encode(prompt);
  if (tokens.empty()) {
    // Texts begin where another ended.
    tokens.push_back(tokenizer.end_of_text() >= 0 ? tokenizer.end_of_text() : 0);
  }
  if (int64_t(tokens.size()) >= loaded.max_seq_len) {
    return invalid_input("the prompt has {} tokens and the model {} positions; use a shorter prompt",
                         tokens.size(), loaded.max_seq_len);
  }
  const int64_t total = int64_t(tokens.size()) + options.max_tokens;
  if (total > loaded.max_seq_len) {
    return invalid_input("{} tokens of prompt and {} to generate exceed the model's {} positions; use "
                         "--max-tokens {} or a shorter prompt", tokens.size(), options.max_tokens,
                         loaded.max_seq_len,
                         std::max<int64_t>(0, loaded.max_seq_len - int64_t(tokens.size())));
  }
  std::vector<model::KvCache> caches = loaded.model->make_caches(1, total);
  int64_t past = 0;
  std::string pending;
  for (int64_t i = 0; i < options.max_tokens; ++i) {
    const std::vector<float> logits = step(loaded, tokens, past, caches);
    past += int64_t(tokens.size());
    const auto known = std::min<size_t>(logits.size(), size_t(tokenizer.vocab_size()));
    const int32_t next =
        sample(std::span(logits).first(known), options.sampling, uint64_t(past));
    if (next == tokenizer.end_of_text() && options.stop_at_end_of_text) break;
    tokens.assign(1, next);
    // Only the first token of a text without prompt begins it.
    pending += prompt.empty() && i == 0 ? tokenizer.decode(tokens)
                                        : tokenizer.decode_continuation(tokens);
    const size_t whole = whole_utf8(pending);
    if (whole > 0) on_text(std::string_view(pending).substr(0, whole));
    pending.erase(0, whole);
  }
  if (!pending.empty()) on_text(pending);
  return {};
}

}  // namespace fivefold::train
