#include "parallel/data/same_start.hpp"

#include <fmt/ranges.h>

namespace fivefold::parallel {

Status broadcast_parameters(const ParameterSet& parameters, comm::Communicator& group, int root) {
  return group.broadcast(parameters.values(), root);
}

Status verify_same_parameters(const ParameterSet& parameters, comm::Communicator& group) {
  std::vector<int64_t> hashes(size_t(group.size()));
  hashes[size_t(group.rank())] = int64_t(hash_of(parameters.values()));
  TRY(group.all_reduce(View(hashes.data(), DType::i64, {int64_t(hashes.size())}),
                       comm::Reduce::sum));
  std::vector<size_t> different;
  for (size_t rank = 1; rank < hashes.size(); ++rank) {
    if (hashes[rank] != hashes[0]) different.push_back(rank);
  }
  if (different.empty()) return {};
  return invalid_input(
      "{}: the parameters of rank {} differ from rank 0's; start every rank with the "
      "same run file, seed and checkpoint",
      group.axis(), fmt::join(different, ", "));
}

}  // namespace fivefold::parallel
