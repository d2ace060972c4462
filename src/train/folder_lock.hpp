#pragma once

#include "base/files.hpp"

namespace fivefold::train {

// Held while a run writes into its folder: a second run there would mix its metrics and delete the
// first one's checkpoints.
// Errors   io, naming the folder, when another process holds it.
class FolderLock {
 public:
  static Result<FolderLock> take(const Path& folder);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock();

 private:
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace fivefold::train
