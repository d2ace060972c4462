#pragma once
// Training checkpoints: one safetensors file for each save, step-<n>.safetensors, written under a
// temporary name, flushed with its folder, renamed. A crash leaves the earlier saves as they were.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/safetensors.hpp"

namespace fivefold::checkpoint {

struct Saved {
  int64_t step = 0;
  Path path;
};

// Complete saves in the folder, by step. Temporary files of a crash are not among them.
Result<std::vector<Saved>> list_saves(const Path& folder);

// Saves, then deletes all but the newest keep_latest_k (0: keeps all). Metadata are strings
// (model, run file, position in the data, …) and come back from SafetensorsFile::metadata.
Status save(const Path& folder, int64_t step, std::span<const TensorToStore> tensors,
            const std::map<std::string, std::string>& metadata, int64_t keep_latest_k);

}  // namespace fivefold::checkpoint
