#include "checkpoint/store.hpp"

#include <signal.h>
#include <unistd.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/text.hpp"

namespace fivefold::checkpoint {
namespace {

constexpr std::string_view prefix = "step-", suffix = ".safetensors", hash_key = "fivefold.xxh3";

std::string file_name(int64_t step) { return fmt::format("{}{:08}{}", prefix, step, suffix); }

// The step of a save's file name, when it is one exactly as we write it.
std::optional<int64_t> step_of(const std::string& name) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return {};
  int64_t step = -1;
  std::from_chars(name.data() + prefix.size(), name.data() + name.size() - suffix.size(), step);
  if (step < 0 || file_name(step) != name) return {};
  return step;
}

// DurableFile's temporary name ends in ".<process>.tmp". One whose process is gone was left by a
// crash; another rank's or run's, still being written, is not ours to touch.
bool is_abandoned(const std::string& name) {
  constexpr std::string_view end = ".tmp";
  if (!name.starts_with(prefix) || !name.ends_with(end)) return false;
  const std::string stem = name.substr(0, name.size() - end.size());
  const size_t dot = stem.rfind('.');
  if (dot == std::string::npos || !step_of(stem.substr(0, dot))) return false;
  pid_t process = 0;
  const char* last = stem.data() + stem.size();
  const auto [stop, error] = std::from_chars(stem.data() + dot + 1, last, process);
  if (error != std::errc{} || stop != last || process <= 0) return false;
  return process != ::getpid() && ::kill(process, 0) != 0 && errno == ESRCH;
}

Result<std::vector<std::string>> names_in(const Path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator it(folder, error);
  for (; !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error == std::errc::no_such_file_or_directory) return names;
  if (error) return io_error("{}: cannot be listed: {}", folder.string(), error.message());
  return names;
}

void remove_abandoned(const Path& folder, std::span<const std::string> names) {
  for (const std::string& name : names) {
    std::error_code ignored;  // an attempt to tidy up: the save itself is safe
    if (is_abandoned(name)) std::filesystem::remove(folder / name, ignored);
  }
}

// Of all that a save says: tensors by name, and the metadata less the hash itself. Each
// text is preceded by its length, so that no two saves read alike.
class Hash {
 public:
  Hash() { XXH3_64bits_reset(&state_); }
  void add(std::string_view name, std::string_view dtype, std::span<const int64_t> shape,
           std::span<const std::byte> bytes) {
    add(name);
    add(dtype);
    add(fmt::format("{}", fmt::join(shape, ",")));
    XXH3_64bits_update(&state_, bytes.data(), bytes.size());
  }
  void add(const std::map<std::string, std::string>& metadata) {
    for (const auto& [key, value] : metadata) {
      if (key == hash_key) continue;
      add(key);
      add(value);
    }
  }
  std::string text() const { return hex(XXH3_64bits_digest(&state_)); }

 private:
  void add(std::string_view text) {
    const uint64_t size = text.size();
    XXH3_64bits_update(&state_, &size, sizeof size);
    XXH3_64bits_update(&state_, text.data(), text.size());
  }
  XXH3_state_t state_;
};

// What to do about a save that does not open: where the newest one before it lies.
std::string way_back_from(const Path& path) {
  const std::optional<int64_t> step = step_of(path.filename().string());
  const auto saves = list_saves(path.parent_path());
  if (!step || !saves) return {};
  const Saved* before = nullptr;
  for (const Saved& save : *saves) {
    if (save.step < *step) before = &save;
  }
  if (before == nullptr) return "; there is no save before it";
  return fmt::format("; move it away to continue from the save before it, {}",
                     before->path.string());
}

// Deletes what lies behind the newest `keep` saves that open. A damaged one does not count as kept.
Status retain(const Path& folder, int64_t just_saved, int64_t keep) {
  std::vector<Saved> saves = TRY(list_saves(folder));
  std::stable_partition(saves.begin(), saves.end(),
                        [&](const Saved& s) { return s.step != just_saved; });
  int64_t kept = 0;
  for (auto save = saves.rbegin(); save != saves.rend(); ++save) {
    if (kept < keep) {
      kept += save->step == just_saved || SafetensorsFile::open(save->path) ? 1 : 0;
      continue;
    }
    std::error_code ignored;  // the new save is safe; the next one tries again
    std::filesystem::remove(save->path, ignored);
  }
  return {};
}

}  // namespace

Result<std::vector<Saved>> list_saves(const Path& folder) {
  std::vector<Saved> saves;
  for (const std::string& name : TRY(names_in(folder))) {
    if (const std::optional<int64_t> step = step_of(name)) saves.push_back({*step, folder / name});
  }
  std::sort(saves.begin(), saves.end(),
            [](const Saved& a, const Saved& b) { return a.step < b.step; });
  return saves;
}

Result<SafetensorsFile> open_save(const Path& path) {
  Result<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file && file.error().code != Error::Code::invalid_input) return file;
  if (!file) return invalid_input("{}{}", file.error().message, way_back_from(path));
  const auto hash = file->metadata().find(std::string(hash_key));
  if (hash == file->metadata().end()) {
    return invalid_input(
        "{}: not one of our checkpoints (no {} in its metadata); weights from "
        "elsewhere are imported",
        path.string(), hash_key);
  }
  Hash found;
  for (const auto& [name, tensor] : file->tensors()) {
    found.add(name, tensor.dtype, tensor.shape, tensor.bytes);
  }
  found.add(file->metadata());
  if (found.text() != hash->second) {
    return invalid_input("{}: its contents are not those that were saved: damaged or edited{}",
                         path.string(), way_back_from(path));
  }
  const std::optional<int64_t> named = step_of(path.filename().string());
  const auto step = file->metadata().find("step");
  if (named && step != file->metadata().end() && step->second != std::to_string(*named)) {
    return invalid_input("{}: holds step {}, not the one of its name; give it its name back",
                         path.string(), step->second);
  }
  return file;
}

Result<Path> save(const Path& folder, int64_t step, std::span<const TensorToStore> tensors,
            const std::map<std::string, std::string>& metadata, int64_t keep_latest_k) {
  CHECK(step >= 0 && keep_latest_k >= 0, "step {}, keep {}", step, keep_latest_k);
  TRY(make_folder(folder));
  remove_abandoned(folder, TRY(names_in(folder)));

  std::map<std::string_view, const TensorToStore*> by_name;
  for (const TensorToStore& tensor : tensors) by_name[tensor.name] = &tensor;
  Hash hash;
  for (const auto& [name, tensor] : by_name) {
    const ConstView view = tensor->view;
    CHECK(view.contiguous(), "{} is strided", name);
    hash.add(name, stored_name_of(view.dtype), tensor->shape,
             {static_cast<const std::byte*>(view.data),
              size_t(view.count()) * size_of(view.dtype)});
  }
  hash.add(metadata);
  auto with_hash = metadata;
  with_hash[std::string(hash_key)] = hash.text();
  const Path path = folder / file_name(step);
  TRY(write_safetensors(path, tensors, with_hash));
  if (keep_latest_k > 0) TRY(retain(folder, step, keep_latest_k));
  return path;
}

}  // namespace fivefold::checkpoint
