#include "base/files.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace fivefold {
namespace {

std::string reason(int number) {
  switch (number) {
    case ENOSPC: return "no space left on the device; free some room or choose another folder";
    case EACCES:
    case EPERM: return "permission denied; choose a folder that you may write to";
    case EROFS: return "the file system is read-only; choose another folder";
    case ENOENT: return "no such file or folder";
    default: return std::strerror(number);
  }
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Result<size_t> open_for_reading(const Path& path, const Descriptor& fd) {
  if (fd.get() < 0) {
    if (errno == ENOENT) return invalid_input("{}: no such file", path.string());
    return io_error("{}: cannot be read: {}", path.string(), std::strerror(errno));
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) {
    return io_error("{}: cannot be read: {}", path.string(), std::strerror(errno));
  }
  if (S_ISDIR(info.st_mode)) return invalid_input("{}: is a folder, not a file", path.string());
  return size_t(info.st_size);
}

}  // namespace

Result<std::string> read_file(const Path& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(TRY(open_for_reading(path, fd)), '\0');
  size_t have = 0;
  // The size is a hint only: pipes and /proc report zero, and a file can grow.
  for (;;) {
    if (have == text.size()) text.resize(text.size() + 65536);
    const ssize_t n = ::read(fd.get(), text.data() + have, text.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error("{}: cannot be read: {}", path.string(), std::strerror(errno));
    if (n == 0) break;
    have += size_t(n);
  }
  text.resize(have);
  return text;
}

Result<MappedFile> MappedFile::open(const Path& path) {
  // Without O_NONBLOCK, opening a pipe waits for its writer.
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const size_t size = TRY(open_for_reading(path, fd));
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) {
    return invalid_input("{}: is a pipe or a device, which cannot be mapped; write it to a file first",
                         path.string());
  }
  MappedFile file;
  if (size == 0) return file;
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) {
    return io_error("{}: cannot be mapped: {}", path.string(), std::strerror(errno));
  }
  file.bytes_ = {static_cast<const std::byte*>(data), size};
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

DurableFile::DurableFile(Path path, Path temporary, int descriptor)
    : path_(std::move(path)), temporary_(std::move(temporary)), descriptor_(descriptor) {}

DurableFile::DurableFile(DurableFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

Result<DurableFile> DurableFile::create(const Path& path) {
  Path temporary = path;
  temporary += fmt::format(".{}.tmp", ::getpid());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return io_error("{}: cannot be written: {}", path.string(), reason(errno));
  return DurableFile(path, std::move(temporary), fd);
}

DurableFile::~DurableFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

Status DurableFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error("{}: cannot be written: {}", path_.string(), reason(errno));
    bytes = bytes.subspan(size_t(n));
  }
  return {};
}

Status DurableFile::write(std::string_view text) {
  return write(std::as_bytes(std::span(text.data(), text.size())));
}

Status DurableFile::commit() {
  const auto failed = [&] {
    return io_error("{}: cannot be written: {}", path_.string(), reason(errno));
  };
  if (::fsync(descriptor_) != 0) return failed();
  if (::close(std::exchange(descriptor_, -1)) != 0 ||
      ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int number = errno;
    ::unlink(temporary_.c_str());
    errno = number;
    return failed();
  }
  const Path folder = path_.has_parent_path() ? path_.parent_path() : Path(".");
  const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || ::fsync(fd.get()) != 0) return failed();
  return {};
}

Status write_file(const Path& path, std::string_view text) {
  DurableFile file = TRY(DurableFile::create(path));
  TRY(file.write(text));
  return file.commit();
}

Status make_folder(const Path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error || !std::filesystem::is_directory(path, error)) {
    return io_error("{}: cannot make the folder: {}", path.string(),
                    error ? reason(error.value()) : "a file of that name is in the way");
  }
  return {};
}

}  // namespace fivefold
