#include "train/trainer.hpp"

#include <chrono>
#include <cmath>
#include <memory>

#include "base/text.hpp"
#include "checkpoint/huggingface.hpp"
#include "checkpoint/store.hpp"
#include "kernels/peak.hpp"
#include "model/model.hpp"
#include "optim/lr_schedule.hpp"
#include "optim/optimizer.hpp"
#include "parallel/data/gradient_reducer.hpp"
#include "parallel/data/same_start.hpp"
#include "train/evaluate.hpp"
#include "train/folder_lock.hpp"
#include "train/metrics_log.hpp"
#include "train/run_state.hpp"

namespace fivefold::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<int64_t> shape_of(ConstView view) {
  return {view.size.begin(), view.size.begin() + view.rank};
}

class Trainer {
 public:
  Trainer(const spec::RunSpec& run, const Environment& env, const spec::BatchPlan& batch)
      : run_(run),
        env_(env),
        batch_(batch),
        pool_(env.threads),
        ctx_{pool_, memory_},
        parameters_(memory_, spec::parameters_of(run.model),
                    dtype_named(run.training.mixed_precision_param).value(), true),
        model_(run.model, parameters_, ctx_,
               spec::keep_of(run.activation_checkpoint, run.model.num_layers),
               run.training.seq_len, uint64_t(run.debug.seed)),
        optimizer_(ctx_, parameters_, run.optimizer),
        folder_(run.dump_folder),
        checkpoints_(folder_ / run.checkpoint.folder) {}

  Status run() {
    TRY(prepare());
    if (state_.step >= run_.training.steps) {
      if (leads() && env_.reporter != nullptr) {
        env_.reporter->already_done(state_.step, last_checkpoint_);
      }
      return {};
    }
    const int64_t first_step = state_.step + 1;
    TRY(report_start(first_step));
    prefetcher_.emplace(*loader_, requests(), run_.data.prefetch);
    started_ = Clock::now();
    first_step_ = first_step;
    while (state_.step < run_.training.steps && !interrupted_) {
      TRY(step());
      const bool last = state_.step == run_.training.steps;
      if (run_.validation.enable && (last || state_.step % run_.validation.freq == 0)) {
        TRY(validate());
      }
      const bool due = run_.checkpoint.interval > 0 && state_.step % run_.checkpoint.interval == 0;
      if (run_.checkpoint.enable && (due || last || interrupted_)) TRY(save_together());
    }
    return report_end();
  }

 private:
  bool leads() const { return env_.world.rank() == 0; }
  int64_t ranks() const { return env_.world.size(); }

  // Folders, data, weights, in the order in which a mistake is cheapest to find.
  Status prepare() {
    if (leads()) {
      TRY(make_folder(folder_));
      lock_.emplace(TRY(FolderLock::take(folder_)));
      if (run_.checkpoint.enable) TRY(make_folder(checkpoints_));
      metrics_.emplace(TRY(MetricsLog::open(folder_ / "metrics.jsonl")));
    }
    TRY(open_data());  // the first to come tokenises into the cache, the others wait for its lock
    TRY(load_weights());
    TRY(env_.world.barrier());
    env_.world.set_timeout(std::chrono::seconds(run_.comm.train_timeout_seconds));
    if (ranks() > 1) {
      reducer_ = std::make_unique<parallel::GradientReducer>(
          parameters_, TRY(env_.world.duplicate("dp")),
          parallel::ReducerOptions{.bucket_bytes = run_.parallelism.bucket_size_mb << 20});
      TRY(parallel::verify_same_parameters(parameters_, env_.world));
    }
    return measure_peak();
  }

  Status open_data() {
    const Path cache = run_.data.cache_folder.empty() ? folder_ / "tokens"
                                                      : Path(run_.data.cache_folder);
    loader_ = TRY(data::open_loader(run_, cache.string()));
    return {};
  }

  Status load_weights() {
    const auto seed = uint64_t(run_.debug.seed);
    if (run_.checkpoint.enable) {
      const Path from = TRY(save_to_resume());
      if (!from.empty()) return resume(from);
    }
    initialize(parameters_, seed, optimizer_.weights());
    if (!run_.checkpoint.initial_load_path.empty()) {
      weights_from_ = TRY(read_initial_weights(run_.checkpoint.initial_load_path, run_.model, ctx_,
                                               parameters_, optimizer_)).string();
    }
    return {};
  }

  // The save that this run continues, if there is one.
  Result<Path> save_to_resume() {
    std::error_code none;
    if (!std::filesystem::is_directory(checkpoints_, none)) {
      if (run_.checkpoint.load_step < 0) return Path();
      return invalid_input("checkpoint.load_step = {}: there is no folder {}",
                           run_.checkpoint.load_step, checkpoints_.string());
    }
    const std::vector<checkpoint::Saved> saves = TRY(checkpoint::list_saves(checkpoints_));
    if (run_.checkpoint.load_step < 0) return saves.empty() ? Path() : saves.back().path;
    std::string have;
    for (const checkpoint::Saved& save : saves) {
      if (save.step == run_.checkpoint.load_step && save.step != saves.back().step) {
        return invalid_input("checkpoint.load_step = {}: {} holds later saves, up to step {}, which "
                             "this run would mix with its own; move them away, or start anew in another "
                             "dump_folder with checkpoint.initial_load_path", save.step,
                             checkpoints_.string(), saves.back().step);
      }
      if (save.step == run_.checkpoint.load_step) return save.path;
      have += fmt::format(" {}", save.step);
    }
    return invalid_input("checkpoint.load_step = {}: {} holds no such step; saved are:{}",
                         run_.checkpoint.load_step, checkpoints_.string(),
                         have.empty() ? " none" : have);
  }

  Status resume(const Path& path) {
    const checkpoint::SafetensorsFile file = TRY(checkpoint::open_save(path));
    const SavedRun saved = TRY(read_saved_run(file, path.string()));
    changed_ = TRY(check_resume(run_, saved.run, path.string()));
    TRY(read_parameters(file, path.string(), parameters_));
    for (const optim::NamedView& state : optimizer_.state()) {
      const auto it = file.tensors().find(state.name);
      if (it == file.tensors().end()) {
        return invalid_input("{}: holds no optimizer state {}; to start anew from its weights set "
                             "checkpoint.initial_load_path", path.string(), state.name);
      }
      TRY(checkpoint::read_into(it->second, path.string() + ": " + state.name, state.view));
    }
    const auto fingerprint = file.metadata().find(tokenizer_key);
    const std::string now = hex(loader_->tokenizer().fingerprint());
    if (fingerprint != file.metadata().end() && fingerprint->second != now) {
      return invalid_input("{}: was trained with another tokenizer than {} is now; put the old one back, "
                           "or start anew in another dump_folder", path.string(),
                           run_.data.tokenizer);
    }
    state_ = saved.state;
    weights_from_ = last_checkpoint_ = path.string();
    return {};
  }

  // All ranks at once, so that the peak is the machine's under the load that it will bear.
  Status measure_peak() {
    TRY(env_.world.barrier());
    double peak = kernels::measure_fma_peak(env_.threads, ctx_.isa);
    TRY(env_.world.all_reduce(View(&peak, DType::f64, {1}), comm::Reduce::sum));
    peak_ = peak;
    return {};
  }

  Status report_start(int64_t first_step) {
    flops_per_token_ = step::model_flops_per_token(run_.model, run_.training.seq_len);
    expected_ = step::memory_of(run_, batch_);
    if (!leads()) return {};
    StartInfo info;
    info.run = &run_;
    info.batch = batch_;
    info.parameters = spec::count_parameters(run_.model);
    info.expected = expected_;
    info.train_tokens = loader_->tokens(data::Split::train);
    info.validation_tokens = loader_->tokens(data::Split::validation);
    info.flops_per_token = flops_per_token_;
    info.peak_flops_per_second = peak_;
    info.threads = env_.threads;
    info.transport = env_.transport;
    info.weights_hash = hash_of(parameters_.values());
    info.weights_from = weights_from_;
    info.first_step = first_step;
    info.changed_on_resume = changed_;
    if (env_.reporter != nullptr) env_.reporter->started(info);
    return metrics_->write(info);
  }

  // Microbatch i of this rank since the (re)start of the run.
  std::function<data::Prefetcher::Request(int64_t)> requests() const {
    const int64_t from = state_.samples, per_step = batch_.global_batch_size;
    const int64_t accumulation = batch_.accumulation_steps, micro = batch_.micro_batch_size;
    const int64_t rank = env_.world.rank(), size = ranks();
    return [=](int64_t i) {
      const int64_t step = i / accumulation, m = i % accumulation;
      return data::Prefetcher::Request{data::Split::train,
                                       from + step * per_step + (m * size + rank) * micro, micro};
    };
  }

  Status step() {
    const Clock::time_point start = Clock::now();
    const int64_t number = state_.step + 1;
    parameters_.zero_gradients();
    double loss_sum = 0, valid_tokens = 0;
    for (int64_t m = 0; m < batch_.accumulation_steps; ++m) {
      batch_in_use_ = TRY(prefetcher_->next());
      const model::Input input = input_of(batch_in_use_, true);
      if (run_.debug.detect_anomaly) TRY(check_anomaly(input, number));
      model::Tape tape;
      loss_sum += model_.forward(input, tape);
      valid_tokens += double(batch_in_use_.valid_tokens);
      const bool last = m + 1 == batch_.accumulation_steps;
      model::Model::Ready ready;
      if (last && reducer_ != nullptr) {
        reducer_->begin();
        ready = [this](size_t first, size_t end) { reducer_->mark_ready(first, end); };
      }
      model_.backward(input, tape, ready);
    }
    if (reducer_ != nullptr) TRY(reducer_->finish());
    // What all ranks must agree on, in one call.
    double totals[] = {loss_sum, valid_tokens, env_.stop.load() ? 1.0 : 0.0};
    TRY(env_.world.all_reduce(View(totals, DType::f64, {3}), comm::Reduce::sum));
    loss_sum = totals[0];
    valid_tokens = totals[1];

    // The gradient so far is of the summed loss.
    const double per_token = valid_tokens > 0 ? 1 / valid_tokens : 0;
    const double loss = loss_sum * per_token;
    const double norm = optimizer_.gradient_norm(ctx_) * per_token;
    if (!std::isfinite(loss) || !std::isfinite(norm)) return not_finite(number, loss, norm);
    const double clip = TRY(optim::clip_factor(norm, run_.training.max_norm));
    const double lr =
        optim::learning_rate(run_.optimizer, run_.lr_scheduler, run_.training.steps, number);
    optimizer_.step(ctx_, lr, number, per_token * clip);

    state_.step = number;
    state_.samples += batch_.global_batch_size;
    state_.tokens += int64_t(valid_tokens);
    interrupted_ = totals[2] > 0;
    return report_step(start, loss, norm, lr);
  }

  Status report_step(Clock::time_point start, double loss, double norm, double lr) {
    last_loss_ = loss;
    if (!leads()) return {};
    StepReport report;
    report.step = state_.step;
    report.steps = run_.training.steps;
    report.loss = loss;
    report.grad_norm = norm;
    report.lr = lr;
    report.tokens = state_.tokens;
    report.seconds = seconds_since(start);
    training_seconds_ += report.seconds;
    const double step_tokens = double(batch_.global_batch_size * run_.training.seq_len);
    // A moving mean that forgets the warm-up within some ten steps.
    seconds_a_step_ = seconds_a_step_ == 0 ? report.seconds
                                           : 0.9 * seconds_a_step_ + 0.1 * report.seconds;
    report.tokens_per_second = step_tokens / seconds_a_step_;
    report.mfu = report.tokens_per_second * flops_per_token_ / peak_;
    if (reducer_ != nullptr) {
      report.comm_seconds = reducer_->times().communicating;
      report.comm_exposed_seconds = reducer_->times().waited;
    }
    report.memory_bytes = memory_.at_total_peak().total();
    report.seconds_left = seconds_a_step_ * double(run_.training.steps - state_.step);
    if (env_.reporter != nullptr) env_.reporter->stepped(report);
    const Status written = metrics_->write(report);
    return written ? written : save_before(written.error());
  }

  // The run is about to end for want of a log: what it learnt need not go with it.
  Status save_before(const Error& error) {
    std::string kept;
    if (run_.checkpoint.enable) {
      const Result<Path> path = write_save();
      kept = path ? fmt::format("; step {} was saved to {}", state_.step, path->string())
                  : fmt::format("; step {} could not be saved either ({}), the save before it stays: {}",
                                state_.step, path.error().message,
                                last_checkpoint_.empty() ? "none" : last_checkpoint_);
    }
    return fail(error.code, "{}{}; make room and start the run again, it goes on from its last save",
                error.message, kept);
  }

  // Every sample of the validation stream at most once.
  Status validate() {
    const int64_t samples = std::min(run_.validation.steps * batch_.global_batch_size,
                                     loader_->samples(data::Split::validation));
    const Losses losses = TRY(evaluate(model_, *loader_, data::Split::validation, samples,
                                       batch_.micro_batch_size, env_.world));
    validation_ = {.step = state_.step,
                   .loss = losses.per_token(),
                   .bits_per_byte = losses.bits_per_byte(),
                   .tokens = int64_t(losses.tokens)};
    if (!leads()) return {};
    if (env_.reporter != nullptr) env_.reporter->validated(validation_);
    return metrics_->write(validation_);
  }

  // Writing can take longer than a step may: the others wait with the patience of the start.
  Status save_together() {
    TRY(save());
    env_.world.set_timeout(std::chrono::seconds(run_.comm.init_timeout_seconds));
    TRY(env_.world.barrier());
    env_.world.set_timeout(std::chrono::seconds(run_.comm.train_timeout_seconds));
    return {};
  }

  // Rank 0 alone: the replicas hold the same bits.
  Result<Path> write_save() {
    std::vector<checkpoint::TensorToStore> tensors;
    for (const Parameter& p : parameters_.all()) {
      tensors.push_back({p.spec.name, parameters_.value(p), p.spec.shape});
    }
    for (const optim::NamedView& state : optimizer_.state()) {
      tensors.push_back({state.name, state.view, shape_of(state.view)});
    }
    auto metadata = metadata_of(run_, state_);
    metadata[tokenizer_key] = hex(loader_->tokenizer().fingerprint());
    return checkpoint::save(checkpoints_, state_.step, tensors, metadata,
                            run_.checkpoint.keep_latest_k);
  }

  Status save() {
    if (!leads()) return {};
    last_checkpoint_ = TRY(write_save()).string();
    if (env_.reporter != nullptr) env_.reporter->saved(state_.step, last_checkpoint_);
    TRY(metrics_->write_save(state_.step, last_checkpoint_));
    if (run_.checkpoint.last_save_in_hf && state_.step == run_.training.steps) {
      TRY(checkpoint::export_huggingface(folder_ / "huggingface", run_.model, parameters_,
                                         {.dtype = DType::f32}, run_.data.tokenizer));
    }
    return {};
  }

  // debug.detect_anomaly: every part's output of every microbatch.
  Status check_anomaly(const model::Input& input, int64_t number) {
    const std::string where = model_.first_not_finite(input);
    if (where.empty()) return {};
    return fail(Error::Code::not_finite, "step {}: the output of {} is not finite{}", number, where,
                advice());
  }

  std::string advice() const {
    return fmt::format("; nothing of this step was kept. Last good checkpoint: {}. Lower optimizer.lr, "
                       "lengthen lr_scheduler.warmup_steps or check the data",
                       last_checkpoint_.empty() ? "none" : last_checkpoint_);
  }

  // Says where it began: the first rank that finds an output of its forward pass that is not finite
  // names it, otherwise a gradient is named.
  Status not_finite(int64_t number, double loss, double norm) {
    const std::string numbers = fmt::format("loss {}, gradient norm {}", loss, norm);
    std::string where = TRY(not_finite_output());
    double first_rank = where.empty() ? double(ranks()) : double(env_.world.rank());
    TRY(env_.world.all_reduce(View(&first_rank, DType::f64, {1}), comm::Reduce::min));
    if (!where.empty()) {
      where = "the output of " + where;
    } else if (first_rank < double(ranks())) {
      where = fmt::format("an output on rank {}", int(first_rank));
    } else {
      where = "a gradient";
      // The backward pass goes from the last parameter to the first.
      for (size_t i = parameters_.all().size(); i-- > 0;) {
        const Parameter& p = parameters_.all()[i];
        if (model::all_finite(parameters_.gradient(p))) continue;
        where = "the gradient of " + p.spec.name;
        break;
      }
    }
    return fail(Error::Code::not_finite, "step {}: {} is not finite ({}){}", number, where, numbers,
                advice());
  }

  // The part of the model, over all microbatches of this rank's step; empty when all are finite.
  Result<std::string> not_finite_output() {
    const auto request_at = requests();  // state_ is still that of the step before
    for (int64_t m = 0; m < batch_.accumulation_steps; ++m) {
      const data::Prefetcher::Request request = request_at(m);
      const data::Batch batch =
          TRY(loader_->load(request.split, request.first, request.count));
      std::string where = model_.first_not_finite(input_of(batch, true));
      if (!where.empty()) return where;
    }
    return std::string();
  }

  Status report_end() {
    if (!leads()) return {};
    Summary summary;
    summary.last_step = state_.step;
    summary.loss = last_loss_;
    summary.validation_loss = validation_.loss;
    summary.validation_bits_per_byte = validation_.bits_per_byte;
    summary.seconds = seconds_since(started_);
    const double steps = double(state_.step - first_step_ + 1);
    const double tokens = steps * double(batch_.global_batch_size * run_.training.seq_len);
    summary.tokens_per_second = training_seconds_ > 0 ? tokens / training_seconds_ : 0;
    summary.mfu = summary.tokens_per_second * flops_per_token_ / peak_;
    summary.peak = memory_.peak();
    summary.at_total_peak = memory_.at_total_peak();
    summary.expected = expected_;
    summary.weights_hash = hash_of(parameters_.values());
    summary.comm_bytes_sent = env_.world.meter().bytes_sent +
                              (reducer_ ? reducer_->meter().bytes_sent : 0);
    summary.last_checkpoint = last_checkpoint_;
    summary.interrupted = interrupted_ && state_.step < run_.training.steps;
    if (env_.reporter != nullptr) env_.reporter->finished(summary);
    return metrics_->write(summary);
  }

  const spec::RunSpec& run_;
  const Environment& env_;
  const spec::BatchPlan batch_;
  Memory memory_;
  kernels::ThreadPool pool_;
  kernels::Context ctx_;
  ParameterSet parameters_;
  model::Model model_;
  optim::AdamWOptimizer optimizer_;
  Path folder_, checkpoints_;

  std::unique_ptr<data::Loader> loader_;
  std::optional<data::Prefetcher> prefetcher_;
  data::Batch batch_in_use_;
  std::unique_ptr<parallel::GradientReducer> reducer_;
  std::optional<FolderLock> lock_;
  std::optional<MetricsLog> metrics_;

  RunState state_;
  std::vector<std::string> changed_;
  std::string weights_from_, last_checkpoint_;
  bool interrupted_ = false;
  step::MemoryLedger expected_;
  ValidationReport validation_;
  Clock::time_point started_;
  int64_t first_step_ = 1;
  double peak_ = 0, flops_per_token_ = 0, seconds_a_step_ = 0, training_seconds_ = 0;
  double last_loss_ = 0;
};

}  // namespace

Status train(const spec::RunSpec& run, const Environment& environment) {
  const spec::BatchPlan batch = TRY(spec::plan_batch(run, environment.world.size()));
  return Trainer(run, environment, batch).run();
}

}  // namespace fivefold::train
