#pragma once

#include "comm/communicator.hpp"
#include "data/loader.hpp"
#include "model/model.hpp"

namespace fivefold::train {

// A loaded batch as the model takes it; the batch outlives the input.
model::Input input_of(const data::Batch& batch, bool training);

struct Losses {
  double sum = 0;     // nats
  double tokens = 0;  // that bore loss
  double bytes = 0;   // of text that those stand for
  double per_token() const { return tokens > 0 ? sum / tokens : 0; }
  double bits_per_byte() const;
};

// The losses of the first `samples` sequences of a split, `micro` at a time, the microbatches dealt
// to the ranks in turn; summed over all ranks. Collective.
Result<Losses> evaluate(model::Model& model, const data::Loader& loader, data::Split split,
                        int64_t samples, int64_t micro, comm::Communicator& world);

}  // namespace fivefold::train
