#include "train/evaluate.hpp"

#include <algorithm>
#include <cmath>

namespace fivefold::train {

model::Input input_of(const data::Batch& batch, bool training) {
  const int64_t rows = batch.sequences * batch.seq_len;
  model::Input input;
  input.sequences = batch.sequences;
  input.seq_len = batch.seq_len;
  input.tokens = ConstView(batch.tokens.data(), DType::i32, {rows});
  input.targets = ConstView(batch.targets.data(), DType::i32, {rows});
  input.positions = ConstView(batch.positions.data(), DType::i32, {rows});
  input.document_start =
      ConstView(batch.document_start.data(), DType::i32, {batch.sequences, batch.seq_len});
  input.token_index = ConstView(batch.token_index.data(), DType::i64, {rows});
  input.training = training;
  return input;
}

double Losses::bits_per_byte() const { return bytes > 0 ? sum / std::log(2.0) / bytes : 0; }

Result<Losses> evaluate(model::Model& model, const data::Loader& loader, data::Split split,
                        int64_t samples, int64_t micro, comm::Communicator& world) {
  double totals[3] = {};
  for (int64_t chunk = world.rank(); chunk * micro < samples; chunk += world.size()) {
    const int64_t count = std::min(micro, samples - chunk * micro);
    const data::Batch batch = TRY(loader.load(split, chunk * micro, count));
    totals[0] += model.evaluate(input_of(batch, false));
    totals[1] += double(batch.valid_tokens);
    totals[2] += double(batch.target_bytes);
  }
  TRY(world.all_reduce(View(totals, DType::f64, {3}), comm::Reduce::sum));
  return Losses{totals[0], totals[1], totals[2]};
}

}  // namespace fivefold::train
