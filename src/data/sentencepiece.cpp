#include "data/sentencepiece.hpp"

#include <sentencepiece_processor.h>

#include "base/files.hpp"
#include "base/random.hpp"
#include "data/utf8.hpp"

namespace fivefold::data {
namespace {

using sentencepiece::SentencePieceProcessor;

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581 stands for a space

std::string with_spaces(const std::string& piece) {
  std::string text;
  for (size_t i = 0; i < piece.size();) {
    if (std::string_view(piece).substr(i).starts_with(kSpaceMark)) {
      text.push_back(' ');
      i += kSpaceMark.size();
    } else {
      text.push_back(piece[i++]);
    }
  }
  return text;
}

class SentencePieceTokenizer final : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(std::string name) : name_(std::move(name)) {}

  Status load(const std::string& model) {
    TRY(load_one(first_, model));
    // Protocol buffers that follow each other are merged, the later value winning: this is
    // `normalizer_spec { add_dummy_prefix: false }`, for text that goes on after other text.
    TRY(load_one(next_, model + std::string("\x1a\x02\x18\x00", 4)));
    fingerprint_ = stream_of(model);
    return read_pieces();
  }

  std::string name() const override { return name_; }
  int32_t vocab_size() const override { return int32_t(bytes_.size()); }
  int32_t end_of_text() const override { return first_.eos_id(); }
  int32_t prefix_bytes() const override { return prefix_ ? 1 : 0; }
  uint64_t fingerprint() const override { return fingerprint_; }
  int32_t byte_length(int32_t id) const override {
    return id >= 0 && id < vocab_size() ? int32_t(bytes_[size_t(id)].size()) : 0;
  }

  std::vector<int32_t> encode(std::string_view text) const override {
    return encode(text, prefix_);
  }
  std::vector<int32_t> encode_continuation(std::string_view text) const override {
    return encode(text, false);
  }

  std::string decode_continuation(std::span<const int32_t> ids) const override {
    std::string text;
    for (const int32_t id : ids) {
      if (id >= 0 && id < vocab_size()) text += bytes_[size_t(id)];
    }
    return text;
  }
  std::string decode(std::span<const int32_t> ids) const override {
    std::string text = decode_continuation(ids);
    if (prefix_ && text.starts_with(' ')) text.erase(0, 1);
    return text;
  }

 private:
  Status load_one(SentencePieceProcessor& processor, const std::string& model) {
    const auto status = processor.LoadFromSerializedProto(model);
    if (status.ok()) return {};
    return invalid_input("{}: not a SentencePiece model: {}", name_, status.ToString());
  }

  Status read_pieces() {
    bytes_.resize(size_t(first_.GetPieceSize()));
    byte_ids_.assign(256, -1);
    for (int id = 0; id < first_.GetPieceSize(); ++id) {
      const std::string& piece = first_.IdToPiece(id);
      if (first_.IsByte(id)) {  // "<0x0A>"
        const auto byte = uint8_t(std::stoi(piece.substr(3, 2), nullptr, 16));
        byte_ids_[byte] = id;
        bytes_[size_t(id)] = std::string(1, char(byte));
      } else if (!first_.IsControl(id) && !first_.IsUnknown(id) && !first_.IsUnused(id)) {
        bytes_[size_t(id)] = with_spaces(piece);
      }
    }
    for (int byte = 0; byte < 256; ++byte) {
      if (byte_ids_[size_t(byte)] < 0) {
        return invalid_input(
            "{}: has no piece for byte {}; only models trained with --byte_fallback can write any "
            "text",
            name_, byte);
      }
    }
    const std::vector<int> with_prefix = first_.EncodeAsIds("a"), without = next_.EncodeAsIds("a");
    prefix_ = with_prefix != without;
    return probe();
  }

  Status probe() const {
    for (const char* text :
         {"a  b", " a ", "a\n\tb\r\n ", "\xEF\xAC\x81\xC2\xBD", "e\xCC\x81", "\xE3\x80\x80x"}) {
      if (decode(encode(text, prefix_)) != text) {
        return invalid_input(
            "{}: its normaliser changes the text; only models with the identity rule that keep all "
            "spaces are supported",
            name_);
      }
    }
    return {};
  }

  std::vector<int32_t> encode(std::string_view text, bool prefix) const {
    std::vector<int32_t> ids;
    std::vector<int> part;
    while (!text.empty()) {
      const std::string_view valid = text.substr(0, text_prefix(text));
      if (!valid.empty()) {
        // Cannot fail once the model is loaded; the library's status says so.
        const auto status = (prefix ? first_ : next_).Encode({valid.data(), valid.size()}, &part);
        if (status.ok()) ids.insert(ids.end(), part.begin(), part.end());
        prefix = false;
        text.remove_prefix(valid.size());
      }
      while (!text.empty() && text_prefix(text) == 0) {
        ids.push_back(byte_ids_[uint8_t(text[0])]);
        text.remove_prefix(1);
        prefix = false;
      }
    }
    return ids;
  }

  // Bytes in front that the library takes as they are: valid UTF-8, without the mark itself (which
  // would come back as a space) and without NUL.
  static size_t text_prefix(std::string_view text) {
    size_t end = utf8_prefix(text);
    end = std::min(end, text.find(kSpaceMark));
    return std::min(end, text.find('\0'));
  }

  std::string name_;
  SentencePieceProcessor first_, next_;  // with the model's space before the text, and without
  std::vector<std::string> bytes_;       // by id; empty for control pieces
  std::vector<int32_t> byte_ids_;
  bool prefix_ = false;
  uint64_t fingerprint_ = 0;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> load_sentencepiece(const std::string& path) {
  const std::string model = TRY(read_file(path));
  auto tokenizer = std::make_unique<SentencePieceTokenizer>(path);
  TRY(tokenizer->load(model));
  return tokenizer;
}

}  // namespace fivefold::data
