#pragma once
// Reading whole files, mapping them, and writing them so that a crash leaves the old or the new one.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace fivefold {

using Path = std::filesystem::path;

// Errors   invalid_input when it does not exist or is a folder; io when the system refuses.
Result<std::string> read_file(const Path& path);

// A read-only view of a file's bytes, unmapped at destruction. Movable. An empty file has no bytes.
// Whoever shortens the file meanwhile ends this process (SIGBUS): that is the price of mapping.
//
// Errors   read_file's, and invalid_input for pipes and devices.
class MappedFile {
 public:
  static Result<MappedFile> open(const Path& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

// Appends to one temporary file beside `path`; `commit` flushes it to the disk with its folder and
// renames it into place. Destroyed without commit, it leaves nothing behind.
//
// Errors   io, naming the path and the system's reason (no space, no permission, no such folder).
class DurableFile {
 public:
  static Result<DurableFile> create(const Path& path);
  DurableFile(DurableFile&& other) noexcept;
  DurableFile& operator=(DurableFile&&) = delete;
  ~DurableFile();
  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text);
  Status commit();

 private:
  DurableFile(Path path, Path temporary, int descriptor);
  Path path_, temporary_;
  int descriptor_ = -1;
};

// `text` into `path` by way of DurableFile.
Status write_file(const Path& path, std::string_view text);

// Makes the folder and its parents. Errors: io, with the remedy.
Status make_folder(const Path& path);

}  // namespace fivefold
