#pragma once
// A collective algorithm as a value: who sends which slots to whom in which step. Made by pure
// functions (make.hpp), proved by a dry run (prove.hpp), priced (cost.hpp), and executed by
// comm/execute.hpp on any transport. Nothing else in Fivefold decides who sends what.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fivefold::collective {

enum class Op : uint8_t {
  broadcast,       // root's vector to all
  reduce,          // the reduction of all vectors to root
  all_reduce,      // … to all
  reduce_scatter,  // … block r of it to rank r
  all_gather,      // block r of rank r to all
  all_to_all,      // block d of rank s becomes block s of rank d
  gather,          // block r of rank r to root
  scatter,         // block r of root to rank r
  barrier,
};
std::string_view name_of(Op op);
bool reduces(Op op);

// Every rank has the same numbered slots, each a range of elements. Slots [0, vector_slots) are the
// caller's vector, cut into equal pieces (the first count % vector_slots are one longer) or, for the
// block ops, block by block. Those behind are scratch, as long as the slot that `like` names.
//
// Layout   broadcast, reduce, all_reduce: vector_slots pieces of the vector, chosen by the algorithm.
//          reduce_scatter, all_gather, gather, scatter: vector_slots = ranks * pieces; block r is
//          slots [r * pieces, (r + 1) * pieces).
//          all_to_all: 2 * ranks slots: slot d is the block for rank d, slot ranks + s the block
//          that came from rank s.
//          barrier: no slots; messages are empty.
struct Exchange {
  int peer = 0;
  std::vector<int> slots;  // in this order in one message
};

// One step of one rank. Its sends read what the slots held when the step began; then its receives
// are taken in, in their order.
struct Step {
  struct Receive : Exchange {
    bool combine = false;  // slot = slot (op) incoming, instead of slot = incoming
  };
  struct Copy {
    int from = 0, to = 0;
  };
  std::vector<Copy> copies;  // within this rank, before anything is sent
  std::vector<Exchange> sends;
  std::vector<Receive> receives;
};

struct Algorithm {
  Op op = Op::barrier;
  std::string name;  // "ring", "rabenseifner", …
  int ranks = 1;
  int root = 0;          // of the rooted ops
  int vector_slots = 0;  // of the caller's vector
  std::vector<int> like; // of scratch slot i: the vector slot whose length it has
  std::vector<std::vector<Step>> programs;  // by rank

  int slots() const { return vector_slots + int(like.size()); }
};

// Elements [begin, end) of piece `index` of `pieces`: equal shares, the first count % pieces take one
// more.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
};
Range piece_of(int64_t count, int pieces, int index);

// Elements of every slot (scratch too) when the vector has `count` elements (all_reduce, broadcast,
// reduce) or every block `count` (the block ops; of all_to_all every block of the 2 * ranks).
std::vector<int64_t> slot_counts(const Algorithm& algorithm, int64_t count);
// The same for blocks of unequal length: counts[r] elements in block r (ragged all_gather, gather,
// scatter, reduce_scatter).
std::vector<int64_t> slot_counts(const Algorithm& algorithm, const std::vector<int64_t>& counts);

}  // namespace fivefold::collective
