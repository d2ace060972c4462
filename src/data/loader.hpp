#pragma once
// The stream of training sequences. Sample n of the stream is a pure function of (data, seed, n):
// any rank can load any sample, so the order does not depend on how many ranks there are, and the
// position in the data is one number.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "data/tokenizer.hpp"
#include "spec/run.hpp"

namespace fivefold::data {

// Sequences of one microbatch, row-major [sequences, seq_len].
struct Batch {
  int64_t sequences = 0, seq_len = 0;
  std::vector<int32_t> tokens;
  std::vector<int32_t> targets;    // the next token, or -1 where no loss is taken
  std::vector<int32_t> positions;  // restart at each document when documents are packed
  std::vector<int32_t>
      document_start;  // index in the row of the document's first token; all 0 unpacked
  std::vector<int64_t> token_index;  // sample number * seq_len + index in the row
  int64_t valid_tokens = 0;          // targets that are not -1
  int64_t target_bytes = 0;          // bytes of text that those targets stand for
};

enum class Split : uint8_t { train, validation };

class Loader {
 public:
  virtual ~Loader() = default;
  // Samples [first, first + count) of the stream; beyond one epoch the next begins, shuffled anew
  // from (seed, epoch). The validation stream is not shuffled and wraps around.
  virtual Result<Batch> load(Split split, int64_t first, int64_t count) const = 0;
  virtual int64_t samples(Split split) const = 0;  // in one epoch
  virtual int64_t tokens(Split split) const = 0;
  virtual const Tokenizer& tokenizer() const = 0;
  // The text behind the split's tokens, all sources one after the other: what a baseline is
  // computed on (ngram.hpp). Errors: invalid_input where the loader has none.
  virtual Result<std::string> text(Split split) const;
};

// A window of seq_len + 1 tokens is one sample and the next begins seq_len further on; what is left
// at the end of a source is not used. Sources are mixed by weight, and each starts its next epoch
// when its samples are used up. The validation split is a tail of whole documents (of a source that
// is one document: of its tokens), or validation_path.
//
// Opens (and where needed tokenises, once, into the cache folder) all sources of the run.
// Errors   invalid_input: missing or empty text, a token outside vocab_size, fewer tokens than one
//          sequence, a damaged file; io: the cache folder cannot be written.
Result<std::unique_ptr<Loader>> open_loader(const spec::RunSpec& run,
                                            const std::string& cache_folder);

// Loads a fixed list of requests ahead on a thread of its own, `depth` batches at most.
class Prefetcher {
 public:
  struct Request {
    Split split;
    int64_t first, count;
  };
  // Request i is what next() returns on its i-th call; `request_at(i)` must be pure.
  Prefetcher(const Loader& loader, std::function<Request(int64_t)> request_at, int64_t depth);
  ~Prefetcher();
  Result<Batch> next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fivefold::data
