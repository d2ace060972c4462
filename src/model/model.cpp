#include "model/model.hpp"

#include <cmath>

#include "model/rope_table.hpp"

namespace fivefold::model {

Model::Model(const spec::ModelSpec& spec, const ParameterSet& parameters, kernels::Context& ctx,
             std::vector<Keep> keep, int64_t max_seq_len, uint64_t seed)
    : spec_(spec),
      parameters_(parameters),
      ctx_(ctx),
      keep_(std::move(keep)),
      rope_table_(spec_.positions == spec::Positions::rope
                      ? make_rope_table(ctx.memory, spec_, max_seq_len)
                      : Tensor()),
      embedding_(spec_, parameters, seed),
      head_(spec_, parameters) {
  CHECK(int64_t(keep_.size()) == spec_.num_layers, "{} entries for {} layers", keep_.size(),
        spec_.num_layers);
  const ConstView rope = rope_table_ ? ConstView(rope_table_) : ConstView{};
  blocks_.reserve(size_t(spec_.num_layers));
  for (int64_t layer = 0; layer < spec_.num_layers; ++layer) {
    blocks_.emplace_back(spec_, parameters, layer, rope, seed);
  }
  // Parameters come in the order of the forward pass, so each part's are a range.
  block_ranges_.assign(blocks_.size(), {parameters.all().size(), 0});
  embedding_range_ = {0, 0};
  head_range_ = {parameters.all().size() - 1, parameters.all().size() - 1};
  for (size_t i = 0; i < parameters.all().size(); ++i) {
    const spec::ParameterSpec& p = parameters.all()[i].spec;
    if (p.layer >= 0) {
      Range& range = block_ranges_[size_t(p.layer)];
      range.first = std::min(range.first, i);
      range.last = std::max(range.last, i);
    } else if (p.component == "embedding") {
      embedding_range_.last = i;
    } else {
      head_range_.first = std::min(head_range_.first, i);
    }
  }
}

double Model::forward(const Input& input, Tape& tape) {
  tape.blocks.resize(blocks_.size());
  Tensor x = embedding_.forward(ctx_, input);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    x = blocks_[i].forward(ctx_, input, std::move(x), keep_[i], &tape.blocks[i]);
  }
  return head_.forward(ctx_, input, std::move(x), &tape.head);
}

Tensor Model::run_blocks(const Input& input, std::vector<KvCache>* caches) {
  Tensor x = embedding_.forward(ctx_, input);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    x = blocks_[i].forward(ctx_, input, std::move(x), Keep::all, nullptr,
                           caches == nullptr ? nullptr : &(*caches)[i]);
  }
  return x;
}

double Model::evaluate(const Input& input) {
  return head_.forward(ctx_, input, run_blocks(input, nullptr), nullptr);
}

void Model::backward(const Input& input, Tape& tape, const Ready& ready) {
  HeadWork head_work;
  Tensor d = head_.backward_input(ctx_, tape.head, head_work);
  head_.backward_weight(ctx_, tape.head, head_work);
  if (ready) ready(head_range_.first, head_range_.last);
  for (size_t i = blocks_.size(); i-- > 0;) {
    BlockWork work;
    d = blocks_[i].backward_input(ctx_, input, std::move(d), keep_[i], tape.blocks[i], work);
    blocks_[i].backward_weight(ctx_, tape.blocks[i], work);
    if (ready) ready(block_ranges_[i].first, block_ranges_[i].last);
  }
  embedding_.backward_weight(ctx_, input, std::move(d));
  if (ready) ready(embedding_range_.first, embedding_range_.last);
}

std::vector<KvCache> Model::make_caches(int64_t sequences, int64_t capacity) {
  std::vector<KvCache> caches(blocks_.size());
  for (KvCache& cache : caches) {
    const Shape shape{sequences, capacity, spec_.kv_dim()};
    cache.k = Tensor(ctx_.memory, Category::activation, parameters_.dtype(), shape);
    cache.v = Tensor(ctx_.memory, Category::activation, parameters_.dtype(), shape);
  }
  return caches;
}

Tensor Model::next_logits(const Input& input, std::vector<KvCache>& caches) {
  const Tensor x = run_blocks(input, &caches);
  Tensor last(ctx_.memory, Category::activation, x.dtype(), {input.sequences, spec_.dim});
  for (int64_t b = 0; b < input.sequences; ++b) {
    const int64_t row = (b + 1) * input.seq_len - 1;
    kernels::convert(ctx_, x.view().slice(0, row, row + 1), last.view().slice(0, b, b + 1));
  }
  return head_.logits(ctx_, last);
}

Tensor Model::logits(const Input& input) { return head_.logits(ctx_, run_blocks(input, nullptr)); }

std::string Model::first_not_finite(const Input& input) {
  Tensor x = embedding_.forward(ctx_, input);
  if (!all_finite(x)) return "model.embed_tokens";
  for (size_t i = 0; i < blocks_.size(); ++i) {
    x = blocks_[i].forward(ctx_, input, std::move(x), Keep::all, nullptr);
    if (!all_finite(x)) return blocks_[i].name();
  }
  return all_finite(head_.logits(ctx_, x)) ? "" : "lm_head";
}

bool all_finite(ConstView view) {
  const auto finite = [](const auto& values) {
    for (const auto v : values) {
      if (!std::isfinite(double(load(v)))) return false;
    }
    return true;
  };
  switch (view.dtype) {
    case DType::f32: return finite(view.flat<float>());
    case DType::f64: return finite(view.flat<double>());
    case DType::bf16: return finite(view.flat<bf16>());
    default: return true;
  }
}

}  // namespace fivefold::model
