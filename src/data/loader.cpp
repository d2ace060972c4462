#include "data/loader.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/random.hpp"
#include "data/order.hpp"
#include "data/token_stream.hpp"
#include "data/tokenize.hpp"

namespace fivefold::data {
namespace {

struct Part {  // of a split: a range of one source
  const TokenFile* file = nullptr;
  TokenRange range;
  double weight = 0;
};

class FileLoader final : public Loader {
 public:
  FileLoader(const spec::RunSpec& run, std::unique_ptr<Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)),
        seq_len_(run.training.seq_len),
        seed_(uint64_t(run.debug.seed)),
        mask_{run.data.pack_documents, run.data.mask_document_borders} {
    // Ids between the tokenizer's vocabulary and the model's stand for no text.
    byte_lengths_.assign(size_t(std::max<int64_t>(tokenizer_->vocab_size(), run.model.vocab_size)),
                         0);
    for (int32_t id = 0; id < tokenizer_->vocab_size(); ++id) {
      byte_lengths_[size_t(id)] = tokenizer_->byte_length(id);
    }
  }

  Status add_source(TokenFile file, const spec::DataSource& source, double validation_share) {
    files_.push_back(std::make_unique<TokenFile>(std::move(file)));
    const SplitRanges ranges = TRY(split_tail(*files_.back(), source.path, validation_share, seq_len_));
    TRY(add_part(Split::train, source.path, ranges.train, source.weight));
    if (ranges.validation.tokens() == 0) return {};
    return add_part(Split::validation, source.path, ranges.validation,
                    double(ranges.validation.samples(seq_len_)));
  }

  Status add_validation(TokenFile file, const std::string& name) {
    files_.push_back(std::make_unique<TokenFile>(std::move(file)));
    const TokenRange all{0, files_.back()->tokens()};
    return add_part(Split::validation, name, all, double(all.samples(seq_len_)));
  }

  // Once all sources are there. Validation is mixed by size, so that an epoch of it is everything
  // once and its first batches already hold every source.
  void mix() {
    for (size_t split = 0; split < 2; ++split) {
      std::vector<double> weights;
      for (const Part& part : parts_[split]) weights.push_back(part.weight);
      if (!weights.empty()) mixtures_[split].emplace(weights);
    }
  }

  Result<Batch> load(Split split, int64_t first, int64_t count) const override;
  Result<std::string> text(Split split) const override;

  int64_t samples(Split split) const override {
    int64_t sum = 0;
    for (const Part& part : parts_[size_t(split)]) sum += part.range.samples(seq_len_);
    return sum;
  }
  int64_t tokens(Split split) const override {
    int64_t sum = 0;
    for (const Part& part : parts_[size_t(split)]) sum += part.range.tokens();
    return sum;
  }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }

 private:
  Status add_part(Split split, const std::string& name, TokenRange range, double weight) {
    if (range.samples(seq_len_) == 0) {
      return invalid_input(
          "{}: {} tokens are fewer than one sequence of {}; give more text or a smaller "
          "training.seq_len",
          name, range.tokens(), seq_len_ + 1);
    }
    parts_[size_t(split)].push_back({files_.back().get(), range, weight});
    return {};
  }

  // Where sample n's window begins.
  std::pair<const Part*, int64_t> locate(Split split, int64_t n) const {
    const Mixture::Pick pick = mixtures_[size_t(split)]->pick(n);
    const Part& part = parts_[size_t(split)][size_t(pick.source)];
    const int64_t samples = part.range.samples(seq_len_);
    int64_t window = pick.index % samples;
    if (split == Split::train) {
      const auto epoch = uint64_t(pick.index / samples);
      const uint64_t stream = stream_of("data order") + uint64_t(pick.source);
      window = int64_t(Permutation(uint64_t(samples), seed_, stream, epoch)(uint64_t(window)));
    }
    return {&part, part.range.first + window * seq_len_};
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  int64_t seq_len_;
  uint64_t seed_;
  MaskOptions mask_;
  std::vector<int32_t> byte_lengths_;
  std::vector<std::unique_ptr<TokenFile>> files_;
  std::vector<Part> parts_[2];  // by Split
  std::optional<Mixture> mixtures_[2];
};

Result<Batch> FileLoader::load(Split split, int64_t first, int64_t count) const {
  CHECK(first >= 0 && count >= 0);
  if (!mixtures_[size_t(split)]) {
    return invalid_input(
        "there is no validation text: set data.validation_share above 0 or data.validation_path, "
        "or validation.enable = false");
  }
  Batch batch;
  batch.sequences = count;
  batch.seq_len = seq_len_;
  const auto size = size_t(count * seq_len_);
  for (auto* values : {&batch.tokens, &batch.targets, &batch.positions, &batch.document_start}) {
    values->resize(size);
  }
  batch.token_index.resize(size);
  for (int64_t row = 0; row < count; ++row) {
    const auto [part, start] = locate(split, first + row);
    const RowReader reader(*part->file, byte_lengths_, tokenizer_->prefix_bytes(), seq_len_, mask_);
    reader.read(start, row, batch);
    for (int64_t i = 0; i < seq_len_; ++i) {
      batch.token_index[size_t(row * seq_len_ + i)] = (first + row) * seq_len_ + i;
    }
  }
  return batch;
}

Result<std::string> FileLoader::text(Split split) const {
  std::string text;
  for (const Part& part : parts_[size_t(split)]) {
    // A document at a time: a tokenizer may begin a text in its own way.
    const std::vector<int64_t>& starts = part.file->document_starts();
    for (size_t d = 0; d + 1 < starts.size(); ++d) {
      const int64_t from = std::max(starts[d], part.range.first);
      const int64_t to = std::min(starts[d + 1], part.range.last);
      if (from >= to) continue;
      std::vector<int32_t> ids(size_t(to - from));
      part.file->read(from, ids);
      std::erase_if(ids, [&](int32_t id) { return id >= tokenizer_->vocab_size(); });
      text += tokenizer_->decode(ids);
    }
  }
  return text;
}

Result<TokenFile> open_source(const spec::DataSource& source, const Tokenizer& tokenizer,
                              int64_t vocab_size, const std::string& cache_folder) {
  if (TRY(is_text(source))) return cached_tokens(source, tokenizer, cache_folder);
  return open_tokens(source, tokenizer, vocab_size);
}

Status check_run(const spec::RunSpec& run, const Tokenizer& tokenizer) {
  if (run.data.sources.empty()) {
    return invalid_input(
        "data.sources: no source of text is given; add [[data.sources]] with a path");
  }
  if (run.training.seq_len < 1) {
    return invalid_input("training.seq_len = {}: must be at least 1", run.training.seq_len);
  }
  if (run.model.vocab_size < tokenizer.vocab_size()) {
    return invalid_input("model.vocab_size = {}: tokenizer {} has {} tokens; set it to {} or more",
                         run.model.vocab_size, tokenizer.name(), tokenizer.vocab_size(),
                         tokenizer.vocab_size());
  }
  double weights = 0;
  for (const spec::DataSource& source : run.data.sources) {
    if (!(source.weight >= 0)) {
      return invalid_input("{}: weight = {}: must not be negative", source.path, source.weight);
    }
    weights += source.weight;
  }
  if (!(weights > 0)) return invalid_input("data.sources: all weights are 0");
  return {};
}

}  // namespace

Result<std::string> Loader::text(Split) const { return invalid_input("this loader holds no text"); }

Result<std::unique_ptr<Loader>> open_loader(const spec::RunSpec& run,
                                            const std::string& cache_folder) {
  std::unique_ptr<Tokenizer> tokenizer = TRY(load_tokenizer(run.data.tokenizer));
  TRY(check_run(run, *tokenizer));
  const Tokenizer& words = *tokenizer;
  auto loader = std::make_unique<FileLoader>(run, std::move(tokenizer));
  const bool own_validation = !run.data.validation_path.empty();
  const double share = own_validation ? 0 : run.data.validation_share;
  for (const spec::DataSource& source : run.data.sources) {
    TokenFile file = TRY(open_source(source, words, run.model.vocab_size, cache_folder));
    TRY(loader->add_source(std::move(file), source, share));
  }
  if (own_validation) {
    spec::DataSource source = run.data.sources.front();  // its keys; format by the path
    source.path = run.data.validation_path;
    source.format = "auto";
    TokenFile file = TRY(open_source(source, words, run.model.vocab_size, cache_folder));
    TRY(loader->add_validation(std::move(file), source.path));
  }
  loader->mix();
  return loader;
}

}  // namespace fivefold::data
