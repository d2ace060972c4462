#include "train/metrics_log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.hpp"

namespace fivefold::train {
namespace {

using Json = nlohmann::ordered_json;

Json by_category(const MemoryUse& use) {
  Json out;
  for (int c = 0; c < category_count; ++c) {
    out[std::string(name_of(Category(c)))] = use.bytes[size_t(c)];
  }
  return out;
}

Json expected(const step::MemoryLedger& ledger) {
  return {{"parameter", ledger.parameter},
          {"gradient", ledger.gradient},
          {"optimizer", ledger.optimizer},
          {"activation", ledger.activation}};
}

}  // namespace

MetricsLog::MetricsLog(Path path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor) {}

MetricsLog::MetricsLog(MetricsLog&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

MetricsLog::~MetricsLog() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<MetricsLog> MetricsLog::open(const Path& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) {
    return io_error("{}: cannot be written: {}; choose another dump_folder", path.string(),
                    std::strerror(errno));
  }
  MetricsLog log(path, fd);
  // A process that was killed, or a full disk, may have left half a line.
  const std::string text = TRY(read_file(path));
  if (!text.ends_with('\n')) TRY(log.cut(int64_t(text.rfind('\n') + 1)));
  return log;
}

Status MetricsLog::cut(int64_t bytes) {
  if (::ftruncate(descriptor_, bytes) == 0) return {};
  return io_error("{}: cannot be written: {}", path_.string(), std::strerror(errno));
}

Status MetricsLog::line(const std::string& text) {
  const std::string whole = text + "\n";
  size_t done = 0;
  while (done < whole.size()) {
    const ssize_t n = ::write(descriptor_, whole.data() + done, whole.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int reason = errno;
      if (done > 0) (void)cut(::lseek(descriptor_, 0, SEEK_END) - int64_t(done));
      return io_error("{}: cannot be written: {}", path_.string(), std::strerror(reason));
    }
    done += size_t(n);
  }
  return {};
}

Status MetricsLog::write(const StartInfo& s) {
  return line(Json{{"kind", "start"},
                   {"model", s.run->model.name},
                   {"parameters", s.parameters.total()},
                   {"ranks", s.batch.ranks},
                   {"threads", s.threads},
                   {"transport", s.transport},
                   {"global_batch_size", s.batch.global_batch_size},
                   {"micro_batch_size", s.batch.micro_batch_size},
                   {"accumulation_steps", s.batch.accumulation_steps},
                   {"seq_len", s.run->training.seq_len},
                   {"first_step", s.first_step},
                   {"steps", s.run->training.steps},
                   {"flops_per_token", s.flops_per_token},
                   {"peak_flops_per_second", s.peak_flops_per_second},
                   {"expected_bytes", expected(s.expected)},
                   {"weights_hash", hex(s.weights_hash)},
                   {"weights_from", s.weights_from},
                   {"changed_on_resume", s.changed_on_resume}}
                  .dump());
}

Status MetricsLog::write(const StepReport& s) {
  return line(Json{{"kind", "step"},
                   {"step", s.step},
                   {"loss", s.loss},
                   {"grad_norm", s.grad_norm},
                   {"lr", s.lr},
                   {"tokens", s.tokens},
                   {"seconds", s.seconds},
                   {"tokens_per_second", s.tokens_per_second},
                   {"mfu", s.mfu},
                   {"comm_seconds", s.comm_seconds},
                   {"comm_exposed_seconds", s.comm_exposed_seconds},
                   {"memory_bytes", s.memory_bytes}}
                  .dump());
}

Status MetricsLog::write(const ValidationReport& v) {
  return line(Json{{"kind", "validation"},
                   {"step", v.step},
                   {"loss", v.loss},
                   {"bits_per_byte", v.bits_per_byte},
                   {"tokens", v.tokens}}
                  .dump());
}

Status MetricsLog::write_save(int64_t step, const std::string& path) {
  return line(Json{{"kind", "save"}, {"step", step}, {"path", path}}.dump());
}

Status MetricsLog::write(const Summary& s) {
  return line(Json{{"kind", "summary"},
                   {"last_step", s.last_step},
                   {"loss", s.loss},
                   {"validation_loss", s.validation_loss},
                   {"validation_bits_per_byte", s.validation_bits_per_byte},
                   {"seconds", s.seconds},
                   {"tokens_per_second", s.tokens_per_second},
                   {"mfu", s.mfu},
                   {"peak_bytes", by_category(s.peak)},
                   {"at_total_peak_bytes", by_category(s.at_total_peak)},
                   {"expected_bytes", expected(s.expected)},
                   {"weights_hash", hex(s.weights_hash)},
                   {"comm_bytes_sent", s.comm_bytes_sent},
                   {"last_checkpoint", s.last_checkpoint},
                   {"interrupted", s.interrupted}}
                  .dump());
}

}  // namespace fivefold::train
