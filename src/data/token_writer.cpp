#include "data/token_writer.hpp"

#include <array>
#include <cstring>
#include <limits>

#include "base/check.hpp"

namespace fivefold::data {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

template <class T>
void append_number(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

}  // namespace

Result<TokenWriter> TokenWriter::create(const Path& prefix, TokenFormat format,
                                        int32_t vocab_size) {
  const bool small = vocab_size <= 65536;
  if (format == TokenFormat::nanogpt && !small) {
    return invalid_input(
        "{}: the nanogpt format holds ids up to 65535, the vocabulary has {}; use megatron or llmc",
        prefix.string(), vocab_size);
  }
  const TokenType wide = format == TokenFormat::megatron ? TokenType::int32 : TokenType::uint32;
  DurableFile bin = TRY(DurableFile::create(prefix.string() + ".bin"));
  return TokenWriter(prefix, format, small ? TokenType::uint16 : wide, std::move(bin));
}

Status TokenWriter::append(std::span<const int32_t> ids, int64_t prompt_tokens) {
  const auto count = int64_t(ids.size());
  CHECK(prompt_tokens >= 0 && prompt_tokens <= count);
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  if (count > most || (format_ == TokenFormat::llmc && tokens_ + count > most)) {
    return invalid_input("{}: more than {} tokens in one {} of the {} format", prefix_.string(),
                         most, format_ == TokenFormat::llmc ? "file" : "document",
                         name_of(format_));
  }
  if (prompt_tokens > 0) {
    if (format_ != TokenFormat::megatron) {
      return invalid_input("{}: the {} format cannot mark prompts; use megatron", prefix_.string(),
                           name_of(format_));
    }
    prompts_ = true;
    lengths_.push_back(int32_t(prompt_tokens));
  }
  lengths_.push_back(int32_t(count - prompt_tokens));
  documents_.push_back(int64_t(lengths_.size()));
  for (const int32_t id : ids) {
    if (type_ == TokenType::uint16) {
      append_number(buffer_, uint16_t(id));
    } else {
      append_number(buffer_, id);
    }
  }
  tokens_ += count;
  if (format_ != TokenFormat::llmc && buffer_.size() >= kBufferBytes) return flush();
  return {};
}

Status TokenWriter::flush() {
  TRY(bin_.write(buffer_));
  buffer_.clear();
  return {};
}

std::string TokenWriter::llmc_header() const {
  std::array<int32_t, 256> header{};
  header[0] = type_ == TokenType::uint16 ? 20240520 : 20240801;
  header[1] = type_ == TokenType::uint16 ? 1 : 7;
  header[2] = int32_t(tokens_);
  return {reinterpret_cast<const char*>(header.data()), sizeof(header)};
}

Status TokenWriter::write_index() const {
  std::string index("MMIDIDX\0\0", 9);
  append_number(index, uint64_t{1});
  append_number(index, uint8_t(type_ == TokenType::uint16 ? 8 : 4));
  append_number(index, uint64_t(lengths_.size()));
  append_number(index, uint64_t(documents_.size()));
  for (const int32_t length : lengths_) append_number(index, length);
  int64_t pointer = 0;
  for (const int32_t length : lengths_) {
    append_number(index, pointer);
    pointer += length * size_of(type_);
  }
  for (const int64_t document : documents_) append_number(index, document);
  return write_file(prefix_.string() + ".idx", index);
}

Result<TokenFileInfo> TokenWriter::finish(TokenFileInfo info) {
  if (format_ == TokenFormat::llmc) TRY(bin_.write(llmc_header()));
  TRY(flush());
  TRY(bin_.commit());
  if (format_ == TokenFormat::megatron) TRY(write_index());
  info.tokens = tokens_;
  info.documents = int64_t(documents_.size()) - 1;
  info.prompts = prompts_;
  TRY(write_file(prefix_.string() + ".json", to_json(info)));
  return info;
}

Status write_token_file(const Path& prefix, TokenFormat format, const TokenFileInfo& info,
                        std::span<const std::vector<int32_t>> documents) {
  TokenWriter writer = TRY(TokenWriter::create(prefix, format, info.vocab_size));
  for (const std::vector<int32_t>& document : documents) TRY(writer.append(document));
  TRY(writer.finish(info));
  return {};
}

}  // namespace fivefold::data
