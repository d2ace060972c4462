#include "train/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace fivefold::train {

Result<FolderLock> FolderLock::take(const Path& folder) {
  const Path path = folder / ".lock";
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    return io_error("{}: cannot be written: {}; choose another dump_folder", folder.string(),
                    std::strerror(errno));
  }
  FolderLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return io_error("{}: another run is writing there; wait for it, or choose another dump_folder",
                    folder.string());
  }
  return lock;
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace fivefold::train
