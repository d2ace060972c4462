#pragma once

#include "base/files.hpp"
#include "train/reporter.hpp"

namespace fivefold::train {

// metrics.jsonl: one JSON object a line, {"kind": "start" | "step" | "validation" | "save" |
// "summary", …}; sizes in bytes, times in seconds, rates per second. Appended to on resume. Lines
// are whole, on a full disk too.
class MetricsLog {
 public:
  static Result<MetricsLog> open(const Path& path);
  MetricsLog(MetricsLog&& other) noexcept;
  MetricsLog& operator=(MetricsLog&&) = delete;
  ~MetricsLog();
  Status write(const StartInfo&);
  Status write(const StepReport&);
  Status write(const ValidationReport&);
  Status write_save(int64_t step, const std::string& path);
  Status write(const Summary&);

 private:
  MetricsLog(Path path, int descriptor);
  Status line(const std::string& text);
  Status cut(int64_t bytes);  // keeps that many
  Path path_;
  int descriptor_ = -1;
};

}  // namespace fivefold::train
