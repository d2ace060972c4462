#include "data/token_stream.hpp"

#include <algorithm>
#include <cmath>

namespace fivefold::data {

Result<SplitRanges> split_tail(const TokenFile& file, const std::string& name, double share,
                               int64_t seq_len) {
  const int64_t all = file.tokens();
  if (share <= 0) return SplitRanges{{0, all}, {all, all}};
  const int64_t least = seq_len + 1;
  if (all < 2 * least) {
    return invalid_input(
        "{}: {} tokens are too few for a training and a validation sequence of {} tokens each; "
        "give more text, a smaller training.seq_len, or data.validation_share = 0",
        name, all, least);
  }
  const int64_t wish =
      std::clamp(all - int64_t(std::llround(double(all) * share)), least, all - least);
  const std::vector<int64_t>& starts = file.document_starts();
  const auto after = std::lower_bound(starts.begin(), starts.end(), wish);
  int64_t cut = -1;
  const auto consider = [&](int64_t place) {
    if (place < least || place > all - least) return;
    if (cut < 0 || std::abs(place - wish) < std::abs(cut - wish)) cut = place;
  };
  if (after != starts.begin()) consider(*(after - 1));
  if (after != starts.end()) consider(*after);
  // A border far from the wish (one long document) is worse than a cut inside it.
  const int64_t tolerance = std::max<int64_t>(std::min(wish, all - wish) / 2, 1);
  if (cut < 0 || std::abs(cut - wish) > tolerance) cut = wish;
  return SplitRanges{{0, cut}, {cut, all}};
}

void RowReader::read(int64_t first, int64_t row, Batch& batch) const {
  const size_t base = size_t(row * seq_len_);
  int32_t* tokens = batch.tokens.data() + base;
  int32_t* targets = batch.targets.data() + base;
  file_->read(first, std::span(tokens, size_t(seq_len_)));
  file_->read(first + 1, std::span(targets, size_t(seq_len_)));

  const std::vector<int64_t>& starts = file_->document_starts();
  const std::vector<int64_t>& prompts = file_->prompt_tokens();
  // The last document that begins at or before the row; empty documents share a start.
  size_t document =
      size_t(std::upper_bound(starts.begin(), starts.end() - 1, first) - starts.begin()) - 1;
  int64_t start = 0;  // of the document, in the row
  for (int64_t i = 0; i < seq_len_; ++i) {
    batch.positions[base + size_t(i)] = int32_t(options_.pack_documents ? i - start : i);
    batch.document_start[base + size_t(i)] = int32_t(options_.pack_documents ? start : 0);
    const int64_t target = first + i + 1;
    bool crossed = false;
    while (document + 2 < starts.size() && starts[document + 1] <= target) {
      ++document;
      crossed = true;
    }
    if (crossed) start = i + 1;
    const bool in_prompt = !prompts.empty() && target - starts[document] < prompts[document];
    if (in_prompt || (crossed && options_.mask_document_borders)) {
      targets[i] = -1;
      continue;
    }
    ++batch.valid_tokens;
    batch.target_bytes += byte_lengths_[size_t(targets[i])];
    // What the encoder put before the document is not text.
    if (crossed && byte_lengths_[size_t(targets[i])] > 0) batch.target_bytes -= prefix_bytes_;
  }
}

}  // namespace fivefold::data
