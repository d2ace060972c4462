#include "data/byte_level_tokenizer.hpp"

#include <algorithm>
#include <cstring>

#include "data/nfc.hpp"

namespace fivefold::data {
namespace {

// Pieces seen before with their ids. A text has few different words, and most of the time goes
// into those it repeats.
class PieceCache {
 public:
  // Null when the piece is not known.
  const int32_t* find(std::string_view piece, uint64_t hash, size_t& count) const {
    const Slot& slot = slots_[hash % kSlots];
    if (slot.hash != hash || slot.length != piece.size()) return nullptr;
    if (std::memcmp(text_.data() + slot.text, piece.data(), piece.size()) != 0) return nullptr;
    count = slot.count;
    return ids_.data() + slot.ids;
  }

  void insert(std::string_view piece, uint64_t hash, std::span<const int32_t> ids) {
    if (text_.size() > kTextBytes) *this = PieceCache();
    slots_[hash % kSlots] = {hash, uint32_t(text_.size()), uint32_t(ids_.size()),
                             uint16_t(piece.size()), uint16_t(ids.size())};
    text_ += piece;
    ids_.insert(ids_.end(), ids.begin(), ids.end());
  }

 private:
  static constexpr size_t kSlots = size_t{1} << 16, kTextBytes = size_t{4} << 20;
  struct Slot {
    uint64_t hash = 0;
    uint32_t text = 0, ids = 0;
    uint16_t length = 0, count = 0;
  };
  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
  std::string text_;
  std::vector<int32_t> ids_;
};

constexpr size_t kCachedBytes = 64;  // longer pieces seldom come again

uint64_t hash_of(std::string_view piece) {
  uint64_t hash = piece.size() * 0x9E3779B97F4A7C15;
  while (!piece.empty()) {
    uint64_t eight = 0;
    const size_t n = std::min<size_t>(piece.size(), 8);
    std::memcpy(&eight, piece.data(), n);
    hash = (hash ^ eight) * 0xD6E8FEB86659FD93;
    hash ^= hash >> 32;
    piece.remove_prefix(n);
  }
  return hash;
}

}  // namespace

struct ByteLevelTokenizer::Scratch {
  explicit Scratch(const Pretokenizer& pretokenizer) : split(pretokenizer) {}
  Pretokenizer::Scratch split;
  PieceCache cache;
};

ByteLevelTokenizer::~ByteLevelTokenizer() = default;

ByteLevelTokenizer::ByteLevelTokenizer(ByteLevelParts parts, Pretokenizer pretokenizer)
    : parts_(std::move(parts)),
      pretokenizer_(std::move(pretokenizer)),
      pairs_(parts_.byte_ids, parts_.merges) {
  std::stable_sort(parts_.added_tokens.begin(), parts_.added_tokens.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  for (const auto& [text, id] : parts_.added_tokens) starts_added_[uint8_t(text[0])] = true;
}

Result<std::unique_ptr<Tokenizer>> ByteLevelTokenizer::make(ByteLevelParts parts) {
  Result<Pretokenizer> pretokenizer = Pretokenizer::compile(parts.patterns);
  if (!pretokenizer) return invalid_input("{}: {}", parts.name, pretokenizer.error().message);
  return std::unique_ptr<Tokenizer>(
      new ByteLevelTokenizer(std::move(parts), std::move(*pretokenizer)));
}

std::unique_ptr<ByteLevelTokenizer::Scratch> ByteLevelTokenizer::take_scratch() const {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Scratch> scratch = std::move(idle_.back());
      idle_.pop_back();
      return scratch;
    }
  }
  return std::make_unique<Scratch>(pretokenizer_);
}

void ByteLevelTokenizer::give_back(std::unique_ptr<Scratch> scratch) const {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(scratch));
}

int64_t ByteLevelTokenizer::added_at(std::string_view text) const {
  if (!starts_added_[uint8_t(text[0])]) return -1;
  for (size_t i = 0; i < parts_.added_tokens.size(); ++i) {
    if (text.starts_with(parts_.added_tokens[i].first)) return int64_t(i);
  }
  return -1;
}

std::vector<int32_t> ByteLevelTokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3);
  std::unique_ptr<Scratch> scratch = take_scratch();
  size_t plain = 0;  // where the text since the last added token begins
  if (!parts_.added_tokens.empty()) {
    for (size_t at = 0; at < text.size();) {
      const int64_t added = added_at(text.substr(at));
      if (added < 0) {
        ++at;
        continue;
      }
      encode_plain(text.substr(plain, at - plain), *scratch, ids);
      ids.push_back(parts_.added_tokens[size_t(added)].second);
      at += parts_.added_tokens[size_t(added)].first.size();
      plain = at;
    }
  }
  encode_plain(text.substr(plain), *scratch, ids);
  give_back(std::move(scratch));
  return ids;
}

void ByteLevelTokenizer::encode_plain(std::string_view text, Scratch& scratch,
                                      std::vector<int32_t>& ids) const {
  std::string normal;
  if (parts_.normalise_nfc && !is_surely_nfc(text)) text = normal = to_nfc(text);
  for (const std::string_view piece : pretokenizer_.split(text, scratch.split)) {
    encode_piece(piece, scratch, ids);
  }
}

void ByteLevelTokenizer::encode_piece(std::string_view piece, Scratch& scratch,
                                      std::vector<int32_t>& ids) const {
  const bool cached = piece.size() <= kCachedBytes;
  const uint64_t hash = cached ? hash_of(piece) : 0;
  if (cached) {
    size_t count = 0;
    if (const int32_t* known = scratch.cache.find(piece, hash, count)) {
      ids.insert(ids.end(), known, known + count);
      return;
    }
  }
  const size_t before = ids.size();
  const auto whole = parts_.ignore_merges ? parts_.whole_tokens.find(std::string(piece))
                                          : parts_.whole_tokens.end();
  if (whole != parts_.whole_tokens.end()) {
    ids.push_back(whole->second);
  } else {
    pairs_.encode(piece, ids);
  }
  if (cached) scratch.cache.insert(piece, hash, std::span(ids).subspan(before));
}

std::string ByteLevelTokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) {
    if (id >= 0 && id < vocab_size()) text += parts_.token_bytes[size_t(id)];
  }
  return text;
}

int32_t ByteLevelTokenizer::byte_length(int32_t id) const {
  return id >= 0 && id < vocab_size() ? int32_t(parts_.token_bytes[size_t(id)].size()) : 0;
}

}  // namespace fivefold::data
