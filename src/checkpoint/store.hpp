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

// Complete saves in the folder, by step; none when there is no such folder. Temporary files of a
// crash are not among them. Nothing is opened: a damaged file is found by open_save.
Result<std::vector<Saved>> list_saves(const Path& folder);

// Opens a save and compares its tensors and metadata with the hash kept among them, so that a bit
// flipped on the disk is found before it is trained on; and its step with the one in its name.
// Errors   invalid_input, naming the file and the remedy: the save before it.
Result<SafetensorsFile> open_save(const Path& path);

// Saves and tells where, then deletes older saves so that keep_latest_k that open remain (0: keeps
// all). The save just made is never deleted, nor one that is the last to open. Also removes what
// processes that no longer run left half-written. Metadata are strings (model, run file, position
// in the data, ...) and come back from SafetensorsFile::metadata, with "fivefold.xxh3" added; "step"
// among them, if it is there, is `step`.
// Requires one writer a folder.
// Errors   io; the earlier saves are then as they were.
Result<Path> save(const Path& folder, int64_t step, std::span<const TensorToStore> tensors,
            const std::map<std::string, std::string>& metadata, int64_t keep_latest_k);

}  // namespace fivefold::checkpoint
