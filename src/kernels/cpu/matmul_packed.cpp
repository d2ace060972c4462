// Our own matrix product: how the work is cut, who packs what, and in which order.
//
// The operand with fewer lanes is packed once, for all threads ("shared"). The other is cut into
// strips; a thread takes a strip, packs it for itself block by block of K, and multiplies it with
// all of the shared operand while it lies in its level-2 cache ("own"). So nothing is packed twice
// and threads meet only after the shared operand is packed.
//
// K is cut in blocks by its own size alone, and each element of C is summed over the blocks in
// order, by one thread at a time: the bits do not depend on the number of threads.

#include <atomic>
#include <vector>

#include "kernels/cpu/matmul_kernels.hpp"
#include "kernels/matmul.hpp"
#include "tensor/tensor.hpp"

namespace fivefold::kernels {
namespace {

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// Sizes in elements of the computing type; see `plan`.
struct Cut {
  int64_t depth = 0;        // of a block of K
  int64_t blocks = 0;       // of K
  int64_t slab_blocks = 0;  // blocks of K whose shared operand is packed at a time
  int64_t slabs = 0;
  bool share_a = false;
  int64_t strip = 0;  // lanes of the own operand
  int64_t strips = 0;
  int64_t part = 0;  // lanes of the shared operand that one unit of work takes
  int64_t parts = 0;
  int64_t step = 0;  // rows of A that are multiplied before the next: they stay in cache
};

// Cuts `lanes` into at least `wanted` equal pieces of at most `most`, multiples of `width`.
int64_t piece(int64_t lanes, int64_t most, int64_t wanted, int64_t width) {
  const int64_t pieces = std::max(ceil_div(lanes, most), wanted);
  return std::min(round_up(ceil_div(lanes, pieces), width), round_up(lanes, width));
}

template <class Source>
Cut plan(const detail::MatmulProblem& p, const MatmulKernels<Source>& kernels, int threads) {
  constexpr int64_t scale = int64_t(sizeof(Accumulator<Source>)) / 4;
  Cut cut;
  cut.blocks = std::max<int64_t>(1, ceil_div(p.k, 384 / scale));
  cut.depth = round_up(ceil_div(p.k, cut.blocks), 4);
  cut.blocks = std::max<int64_t>(1, cut.depth == 0 ? 1 : ceil_div(p.k, cut.depth));
  cut.slab_blocks = std::min<int64_t>(cut.blocks, 8);
  cut.slabs = ceil_div(cut.blocks, cut.slab_blocks);
  cut.share_a = p.m <= p.n;
  const int64_t own = cut.share_a ? p.n : p.m, shared = cut.share_a ? p.m : p.n;
  const int64_t own_width = cut.share_a ? kernels.columns : kernels.rows;
  const int64_t shared_width = cut.share_a ? kernels.rows : kernels.columns;
  const int64_t wanted = threads == 1 ? 1 : 4 * threads;
  cut.strip = piece(own, 96, wanted, own_width);
  cut.strips = ceil_div(own, cut.strip);
  cut.part = cut.strips >= 2 * threads
                 ? shared
                 : piece(shared, shared, ceil_div(wanted, cut.strips), shared_width);
  cut.parts = ceil_div(shared, cut.part);
  cut.step = cut.share_a ? std::min(cut.part, round_up(160, kernels.rows)) : cut.strip;
  return cut;
}

template <class Source>
class Product {
  using T = Accumulator<Source>;

 public:
  Product(Context& ctx, const detail::MatmulProblem& p)
      : ctx_(ctx),
        p_(p),
        kernels_(matmul_kernels<Source>(ctx)),
        threads_(2.0 * double(p.m) * double(p.n) * double(p.k) < 1e6 ? 1 : ctx.pool.threads()),
        cut_(plan(p, kernels_, threads_)),
        narrow_(p.c.dtype == DType::bf16),
        claims_(size_t(2 * cut_.slabs)) {
    const int64_t shared_width = cut_.share_a ? kernels_.rows : kernels_.columns;
    const int64_t own_width = cut_.share_a ? kernels_.columns : kernels_.rows;
    shared_panel_ = round_up(shared_width * cut_.depth + panel_slack, panel_slack);
    own_panel_ = round_up(own_width * cut_.depth + panel_slack, panel_slack);
    const int64_t panels = ceil_div(cut_.share_a ? p.m : p.n, shared_width);
    shared_block_ = panels * shared_panel_;
    const int64_t buffers = cut_.slabs > 1 ? 2 : 1;
    shared_ = scratch({buffers, cut_.slab_blocks * shared_block_});
    own_ = scratch({threads_, cut_.strip / own_width * own_panel_});
    if (p.extras.bias) wide_bias_ = widen_bias();
    if (narrow_) make_wide_c();
  }

  void run() {
    if (threads_ == 1) return work(0);
    ctx_.pool.run([this](int thread) { work(thread); });
  }

 private:
  Tensor scratch(const Shape& shape) {
    return Tensor(ctx_.memory, Category::workspace, DTypeOf<T>::value, shape);
  }

  Tensor widen_bias() {
    Tensor wide = scratch({p_.n});
    for (int64_t j = 0; j < p_.n; ++j) {
      wide.template flat<T>()[size_t(j)] = load(p_.extras.bias.as<Source>()[j]);
    }
    return wide;
  }

  // C in float32 until it is whole. One slab: a unit finishes what it began, so a thread's tile
  // is enough. More: all of C.
  void make_wide_c() {
    if (cut_.slabs > 1) {
      wide_stride_ = p_.n;
      wide_c_ = scratch({1, p_.m * p_.n});
      return;
    }
    wide_stride_ = round_up(cut_.share_a ? cut_.strip : cut_.part, 16);
    wide_c_ = scratch({threads_, (cut_.share_a ? cut_.part : cut_.strip) * wide_stride_});
  }

  void work(int thread) {
    pack_shared(0);
    meet();
    for (int64_t slab = 0; slab < cut_.slabs; ++slab) {
      const int64_t units = cut_.strips * cut_.parts;
      for (int64_t u = claim(2 * slab + 1); u < units;) u = unit(thread, slab, u);
      if (slab + 1 == cut_.slabs) break;
      pack_shared(slab + 1);  // into the other buffer: others may still read this one
      meet();
    }
  }

  void meet() {
    if (threads_ > 1) ctx_.pool.barrier();
  }
  int64_t claim(int64_t counter) {
    return claims_[size_t(counter)].fetch_add(1, std::memory_order_relaxed);
  }

  int64_t first_block(int64_t slab) const { return slab * cut_.slab_blocks; }
  int64_t last_block(int64_t slab) const {
    return std::min(cut_.blocks, (slab + 1) * cut_.slab_blocks);
  }
  int64_t depth_of(int64_t block) const { return std::min(cut_.depth, p_.k - block * cut_.depth); }
  T* shared_block(int64_t block) const {
    const int64_t slab = block / cut_.slab_blocks;
    return shared_.flat<T>().data() +
           ((slab & 1) * cut_.slab_blocks + block % cut_.slab_blocks) * shared_block_;
  }

  // Lanes [lane, lane + lanes) of op(a) (rows) or op(b) (columns), block of K.
  void pack(bool is_a, int64_t lane, int64_t lanes, int64_t block, T* to, int64_t panel,
            bool sums) const {
    const MatmulOperand& from = is_a ? p_.a : p_.b;
    const int64_t stride = is_a ? p_.a_stride : p_.b_stride;
    const bool contiguous = is_a == from.transposed;
    const int64_t k = block * cut_.depth;
    PackArgs<Source> args;
    args.from = from.view.as<Source>() + (contiguous ? k * stride + lane : lane * stride + k);
    args.stride = stride;
    args.lanes_contiguous = contiguous;
    args.lanes = lanes;
    args.depth = depth_of(block);
    args.to = to;
    args.panel_stride = panel;
    (is_a ? kernels_.pack_a : kernels_.pack_b)(args);
    if (is_a && sums) add_row_sums(args, lane);
  }

  void add_row_sums(const PackArgs<Source>& packed, int64_t lane) const {
    T* sums = p_.extras.row_sums.as<T>() + lane;
    for (int64_t first = 0; first < packed.lanes; first += kernels_.rows) {
      const T* panel = packed.to + first / kernels_.rows * packed.panel_stride;
      T some[16] = {};
      for (int64_t k = 0; k < packed.depth; ++k) {
        for (int64_t i = 0; i < kernels_.rows; ++i) some[i] += panel[k * kernels_.rows + i];
      }
      const int64_t lanes = std::min(kernels_.rows, packed.lanes - first);
      for (int64_t i = 0; i < lanes; ++i) sums[first + i] += some[i];
    }
  }

  void pack_shared(int64_t slab) {
    const int64_t width = cut_.share_a ? kernels_.rows : kernels_.columns;
    const int64_t lanes = cut_.share_a ? p_.m : p_.n;
    const int64_t group = round_up(32, width);
    for (int64_t g; (g = claim(2 * slab) * group) < lanes;) {
      for (int64_t block = first_block(slab); block < last_block(slab); ++block) {
        pack(cut_.share_a, g, std::min(group, lanes - g), block,
             shared_block(block) + g / width * shared_panel_, shared_panel_,
             bool(p_.extras.row_sums));
      }
    }
  }

  // What `pack` will read.
  Ahead ahead(bool is_a, int64_t lane, int64_t lanes, int64_t block) const {
    const MatmulOperand& from = is_a ? p_.a : p_.b;
    const int64_t stride = is_a ? p_.a_stride : p_.b_stride;
    const bool contiguous = is_a == from.transposed;
    const int64_t k = block * cut_.depth, depth = depth_of(block);
    constexpr auto size = int64_t(sizeof(Source));
    const auto* first = static_cast<const std::byte*>(from.view.data);
    if (contiguous) {
      return {first + (k * stride + lane) * size, stride * size, depth, lanes * size};
    }
    return {first + (lane * stride + k) * size, stride * size, lanes, depth * size};
  }
  int64_t own_lanes(int64_t own) const {
    return std::min(cut_.strip, (cut_.share_a ? p_.n : p_.m) - own);
  }

  // One strip of the own operand by one part of the shared one, over the blocks of K of a slab.
  // Returns the unit to do next: it is claimed early, so that its operand can be fetched.
  int64_t unit(int thread, int64_t slab, int64_t u) {
    const int64_t own = u / cut_.parts * cut_.strip, shared = u % cut_.parts * cut_.part;
    const int64_t lanes = own_lanes(own);
    int64_t next = 0;
    const int64_t shared_lanes = std::min(cut_.part, (cut_.share_a ? p_.m : p_.n) - shared);
    const int64_t shared_width = cut_.share_a ? kernels_.rows : kernels_.columns;
    T* own_panels = own_.flat<T>().data() + thread * own_.shape()[1];

    const int64_t row = cut_.share_a ? shared : own, column = cut_.share_a ? own : shared;
    BlockArgs<T> args;
    const int64_t rows = cut_.share_a ? shared_lanes : lanes;
    args.columns = cut_.share_a ? lanes : shared_lanes;
    args.a_panel_stride = cut_.share_a ? shared_panel_ : own_panel_;
    args.b_panel_stride = cut_.share_a ? own_panel_ : shared_panel_;
    T* c = target(thread, row, column, args.c_stride);
    for (int64_t block = first_block(slab); block < last_block(slab); ++block) {
      pack(!cut_.share_a, own, lanes, block, own_panels, own_panel_,
           p_.extras.row_sums && shared == 0);
      const T* shared_panels = shared_block(block) + shared / shared_width * shared_panel_;
      args.depth = depth_of(block);
      args.add = block > 0 || (p_.extras.write == Write::accumulate && !narrow_);
      args.bias = block == 0 && wide_bias_ ? wide_bias_.flat<T>().data() + column : nullptr;
      args.b = cut_.share_a ? own_panels : shared_panels;
      Ahead ahead_of;
      if (block + 1 < last_block(slab)) {
        ahead_of = ahead(!cut_.share_a, own, lanes, block + 1);
      } else {
        next = claim(2 * slab + 1);
        const int64_t next_own = next / cut_.parts * cut_.strip;
        if (next < cut_.strips * cut_.parts) {
          ahead_of = ahead(!cut_.share_a, next_own, own_lanes(next_own), first_block(slab));
        }
      }
      for (int64_t i = 0; i < rows; i += cut_.step) {
        args.rows = std::min(cut_.step, rows - i);
        args.ahead = share_of(ahead_of, i, args.rows, rows);
        args.a =
            (cut_.share_a ? shared_panels : own_panels) + i / kernels_.rows * args.a_panel_stride;
        args.c = c + i * args.c_stride;
        kernels_.multiply(args);
      }
    }
    if (narrow_ && slab + 1 == cut_.slabs) {
      narrow(c, args.c_stride, row, rows, column, args.columns);
    }
    return next;
  }

  // The rows of `all` that fall to `count` of `total` steps.
  static Ahead share_of(const Ahead& all, int64_t from, int64_t count, int64_t total) {
    const int64_t begin = all.rows * from / total, end = all.rows * (from + count) / total;
    return {all.from + begin * all.stride, all.stride, end - begin, all.row_bytes};
  }

  // Where element (row, column) of C is summed.
  T* target(int thread, int64_t row, int64_t column, int64_t& stride) const {
    stride = narrow_ ? wide_stride_ : p_.c_stride;
    if (!narrow_) return static_cast<T*>(p_.c.data) + row * stride + column;
    T* wide = wide_c_.flat<T>().data();
    if (cut_.slabs > 1) return wide + row * stride + column;
    return wide + thread * wide_c_.shape()[1];
  }

  void narrow(const T* from, int64_t stride, int64_t row, int64_t rows, int64_t column,
              int64_t columns) const {
    if constexpr (std::is_same_v<Source, bf16>) {
      bf16* to = p_.c.as<bf16>() + row * p_.c_stride + column;
      const bool add = p_.extras.write == Write::accumulate;
      for (int64_t i = 0; i < rows; ++i, from += stride, to += p_.c_stride) {
        for (int64_t j = 0; j < columns; ++j) {
          store(to[j], add ? load(to[j]) + from[j] : from[j]);
        }
      }
    }
  }

  Context& ctx_;
  const detail::MatmulProblem& p_;
  MatmulKernels<Source> kernels_;
  int threads_;
  Cut cut_;
  bool narrow_;
  std::vector<std::atomic<int64_t>> claims_;  // of each slab: groups packed, units taken
  int64_t shared_panel_ = 0, own_panel_ = 0, shared_block_ = 0;
  int64_t wide_stride_ = 0;
  Tensor shared_, own_, wide_bias_, wide_c_;
};

}  // namespace

void detail::matmul_packed(Context& ctx, const MatmulProblem& problem) {
  switch (problem.a.view.dtype) {
    case DType::f32:
      return Product<float>(ctx, problem).run();
    case DType::f64:
      return Product<double>(ctx, problem).run();
    case DType::bf16:
      return Product<bf16>(ctx, problem).run();
    default:
      CHECK(false, "matmul of {}", name_of(problem.a.view.dtype));
  }
}

}  // namespace fivefold::kernels
