#pragma once

#include "train/reporter.hpp"

namespace fivefold::cli {

// Shows a run to a person: a start screen, a progress line that is rewritten on a terminal and a
// plain line every metrics.log_freq steps elsewhere, a summary.
class Console : public train::Reporter {
 public:
  explicit Console(int64_t log_freq);
  void already_done(int64_t step, const std::string& checkpoint) override;
  void started(const train::StartInfo&) override;
  void stepped(const train::StepReport&) override;
  void validated(const train::ValidationReport&) override;
  void saved(int64_t step, const std::string& path) override;
  void finished(const train::Summary&) override;

 private:
  void line(const std::string& text);  // a lasting line, below which progress goes on
  int64_t log_freq_;
  bool terminal_;
  bool progress_shown_ = false;
};

}  // namespace fivefold::cli
