#include "data/tokenize.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/random.hpp"
#include "base/text.hpp"

namespace fivefold::data {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// What the tokens depend on, in words: stored with them and compared, so that a collision of the
// hash in the file's name is found.
Result<std::string> describe(const spec::DataSource& source, const Tokenizer& tokenizer) {
  std::string key = fmt::format("tokenizer {} text {} prompt {} response {} format {}\n",
                                hex(tokenizer.fingerprint()), source.text_key, source.prompt_key,
                                source.response_key, source.format);
  for (const Path& path : TRY(list_text_files(source))) {
    std::error_code error;
    const auto size = fs::file_size(path, error);
    const auto changed = fs::last_write_time(path, error);
    const Path whole = fs::absolute(path, error);
    if (error) return io_error("{}: cannot be read: {}", path.string(), error.message());
    key += fmt::format("{} {} {}\n", whole.string(), size, changed.time_since_epoch().count());
  }
  return key;
}

// Held by one process (or thread) at a time; the system frees it when its holder ends.
class FolderLock {
 public:
  static Result<FolderLock> take(const Path& path, std::chrono::seconds patience) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
      return io_error("{}: cannot be written: {}; choose another data.cache_folder", path.string(),
                      std::strerror(errno));
    }
    FolderLock lock(fd);
    const auto end = std::chrono::steady_clock::now() + patience;
    while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) {
        return io_error("{}: cannot be locked: {}", path.string(), std::strerror(errno));
      }
      if (std::chrono::steady_clock::now() > end) {
        return fail(Error::Code::timeout,
                    "{}: another process has held the cache for {} s; end it, or choose another "
                    "data.cache_folder",
                    path.string(), patience.count());
      }
      std::this_thread::sleep_for(20ms);
    }
    return lock;
  }
  FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock() {
    if (fd_ >= 0) ::close(fd_);
  }

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  int fd_;
};

// The cache's entry, when it is there and whole; a damaged one is made again.
std::optional<TokenFile> look_up(const Path& prefix, const std::string& key, int64_t vocab_size) {
  std::error_code ignored;
  if (!fs::exists(prefix.string() + ".json", ignored)) return {};
  Result<TokenFile> file = TokenFile::open(prefix.string(), TokenFormat::megatron);
  if (!file || !file->info() || file->info()->made_from != key) return {};
  if (!file->check_ids(vocab_size)) return {};
  return std::move(*file);
}

}  // namespace

Result<bool> is_text(const spec::DataSource& source) {
  if (source.format == "text" || source.format == "jsonl") return true;
  if (source.format == "tokens" || source.format == "megatron") return false;
  if (source.format != "auto") {
    return invalid_input("{}: format \"{}\" is not known; auto, text, jsonl, tokens, megatron are",
                         source.path, source.format);
  }
  std::error_code ignored;
  const std::string extension = Path(source.path).extension().string();
  if (extension == ".bin" || extension == ".idx") return false;
  if (fs::exists(source.path, ignored)) return true;
  // A prefix: NAME with NAME.bin beside it.
  return !fs::exists(source.path + ".bin", ignored);
}

TokenFileInfo info_of(const Tokenizer& tokenizer) {
  TokenFileInfo info;
  info.tokenizer = tokenizer.name();
  info.tokenizer_fingerprint = tokenizer.fingerprint();
  info.vocab_size = tokenizer.vocab_size();
  info.end_of_text = tokenizer.end_of_text();
  return info;
}

Status append_document(const Document& document, const Tokenizer& tokenizer, TokenWriter& writer) {
  std::vector<int32_t> ids;
  if (document.has_prompt) ids = tokenizer.encode(document.prompt);
  const auto prompt_tokens = int64_t(ids.size());
  const std::vector<int32_t> text = prompt_tokens > 0 ? tokenizer.encode_continuation(document.text)
                                                      : tokenizer.encode(document.text);
  ids.insert(ids.end(), text.begin(), text.end());
  if (tokenizer.end_of_text() >= 0) ids.push_back(tokenizer.end_of_text());
  return writer.append(ids, prompt_tokens);
}

Result<int64_t> tokenize(const spec::DataSource& source, const Tokenizer& tokenizer,
                         TokenWriter& writer) {
  int64_t text_bytes = 0, documents = 0;
  TRY(read_documents(source, [&](const Document& document) -> Status {
    text_bytes += int64_t(document.prompt.size() + document.text.size());
    ++documents;
    return append_document(document, tokenizer, writer);
  }));
  if (documents == 0) return invalid_input("{}: is empty: no text to read", source.path);
  return text_bytes;
}

Result<TokenFile> open_tokens(const spec::DataSource& source, const Tokenizer& tokenizer,
                              int64_t vocab_size) {
  std::optional<TokenFormat> format;
  if (source.format == "megatron") format = TokenFormat::megatron;
  TokenFile file = TRY(TokenFile::open(source.path, format));
  if (file.info() && file.info()->tokenizer_fingerprint != tokenizer.fingerprint()) {
    return invalid_input("{}: was made with tokenizer {}, the run has {}; set data.tokenizer to it",
                         file.path().string(), file.info()->tokenizer, tokenizer.name());
  }
  TRY(file.check_ids(vocab_size));
  if (!file.info()) file.split_documents(tokenizer.end_of_text());
  return file;
}

Result<TokenFile> cached_tokens(const spec::DataSource& source, const Tokenizer& tokenizer,
                                const std::string& cache_folder) {
  const std::string key = TRY(describe(source, tokenizer));
  TRY(make_folder(cache_folder));
  const Path prefix = Path(cache_folder) / ("tokens-" + hex(stream_of(key)));
  const FolderLock lock = TRY(FolderLock::take(prefix.string() + ".lock", 3600s));
  if (std::optional<TokenFile> file = look_up(prefix, key, tokenizer.vocab_size())) {
    return std::move(*file);
  }
  TokenWriter writer =
      TRY(TokenWriter::create(prefix, TokenFormat::megatron, tokenizer.vocab_size()));
  TokenFileInfo info = info_of(tokenizer);
  info.text_bytes = TRY(tokenize(source, tokenizer, writer));
  info.made_from = key;
  TRY(writer.finish(std::move(info)));
  return TokenFile::open(prefix.string(), TokenFormat::megatron);
}

}  // namespace fivefold::data
