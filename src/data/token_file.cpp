#include "data/token_file.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"

namespace fivefold::data {
namespace {

// Calls `visit` with the ids as a span of their own type.
template <class Visit>
auto with_type(TokenType type, std::span<const std::byte> bytes, Visit visit) {
  const auto typed = [&]<class T>(T) {
    return visit(
        std::span<const T>(reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)));
  };
  switch (type) {
    case TokenType::uint8:
      return typed(uint8_t{});
    case TokenType::int8:
      return typed(int8_t{});
    case TokenType::int16:
      return typed(int16_t{});
    case TokenType::uint16:
      return typed(uint16_t{});
    case TokenType::int32:
      return typed(int32_t{});
    case TokenType::uint32:
      return typed(uint32_t{});
    case TokenType::int64:
      return typed(int64_t{});
  }
  CHECK(false, "unknown token type {}", int(type));
}

}  // namespace

// Puts a TokenFile together from the files of a prefix.
class TokenFileReader {
 public:
  static Result<TokenFile> megatron(const Path& prefix) {
    TokenFile out;
    out.format_ = TokenFormat::megatron;
    out.path_ = prefix.string() + ".bin";
    const std::string index_name = prefix.string() + ".idx";
    const MappedFile index = TRY(MappedFile::open(index_name));
    out.file_ = TRY(MappedFile::open(out.path_));
    out.ids_ = out.file_.bytes();
    MegatronIndex layout =
        TRY(parse_megatron_index(index.bytes(), int64_t(out.ids_.size()), index_name));
    out.type_ = layout.type;
    out.tokens_ = layout.tokens;
    out.document_starts_ = std::move(layout.document_starts);
    TRY(add_info(prefix, out));
    if (out.info_ && out.info_->prompts) {
      out.prompt_tokens_ = std::move(layout.first_sequence);
      for (int64_t& tokens : out.prompt_tokens_) tokens = std::max<int64_t>(tokens, 0);
    }
    return out;
  }

  static Result<TokenFile> flat(const Path& path, const Path& prefix,
                                std::optional<TokenFormat> format) {
    TokenFile out;
    out.path_ = path;
    out.file_ = TRY(MappedFile::open(path));
    const FlatLayout layout = TRY(parse_flat(out.file_.bytes(), path.string(), format));
    out.format_ = layout.format;
    out.type_ = layout.type;
    out.tokens_ = layout.tokens;
    out.ids_ = out.file_.bytes().subspan(size_t(layout.offset));
    out.document_starts_ = {0, layout.tokens};
    TRY(add_info(prefix, out));
    if (out.info_ && out.info_->end_of_text >= 0) out.split_documents(out.info_->end_of_text);
    return out;
  }

 private:
  static Status add_info(const Path& prefix, TokenFile& out) {
    const std::string name = prefix.string() + ".json";
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(name, ignored)) return {};
    const std::string text = TRY(read_file(name));
    out.info_ = TRY(parse_token_file_info(text, name));
    if (out.info_->tokens != out.tokens_) {
      return invalid_input("{}: speaks of {} tokens, {} holds {}; the two do not belong together",
                           name, out.info_->tokens, out.path_.string(), out.tokens_);
    }
    return {};
  }
};

const char* name_of(TokenFormat format) {
  switch (format) {
    case TokenFormat::megatron:
      return "megatron";
    case TokenFormat::llmc:
      return "llmc";
    case TokenFormat::nanogpt:
      return "nanogpt";
  }
  return "?";
}

const char* name_of(TokenType type) {
  switch (type) {
    case TokenType::uint8:
      return "uint8";
    case TokenType::int8:
      return "int8";
    case TokenType::int16:
      return "int16";
    case TokenType::uint16:
      return "uint16";
    case TokenType::int32:
      return "int32";
    case TokenType::uint32:
      return "uint32";
    case TokenType::int64:
      return "int64";
  }
  return "?";
}

int64_t size_of(TokenType type) {
  switch (type) {
    case TokenType::uint8:
    case TokenType::int8:
      return 1;
    case TokenType::int16:
    case TokenType::uint16:
      return 2;
    case TokenType::int32:
    case TokenType::uint32:
      return 4;
    case TokenType::int64:
      return 8;
  }
  return 0;
}

Path token_file_prefix(const std::string& path) {
  Path prefix = path;
  const std::string extension = prefix.extension().string();
  if (extension == ".bin" || extension == ".idx") prefix.replace_extension();
  return prefix;
}

Result<TokenFile> TokenFile::open(const std::string& path, std::optional<TokenFormat> format) {
  const Path prefix = token_file_prefix(path);
  std::error_code ignored;
  if (!format && std::filesystem::exists(prefix.string() + ".idx", ignored)) {
    format = TokenFormat::megatron;
  }
  if (format == TokenFormat::megatron) return TokenFileReader::megatron(prefix);
  Path file = path;
  if (!std::filesystem::exists(file, ignored)) file = prefix.string() + ".bin";
  return TokenFileReader::flat(file, prefix, format);
}

void TokenFile::split_documents(int32_t end_of_text) {
  if (format_ == TokenFormat::megatron || end_of_text < 0) return;
  document_starts_ = {0};
  with_type(type_, ids_, [&](auto ids) {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (int64_t(ids[i]) == end_of_text && i + 1 < ids.size()) {
        document_starts_.push_back(int64_t(i) + 1);
      }
    }
  });
  document_starts_.push_back(tokens_);
}

void TokenFile::read(int64_t first, std::span<int32_t> out) const {
  CHECK(first >= 0 && first + int64_t(out.size()) <= tokens_, "tokens {} to {} of {}", first,
        first + int64_t(out.size()), tokens_);
  with_type(type_, ids_, [&](auto ids) {
    const auto from = ids.subspan(size_t(first), out.size());
    for (size_t i = 0; i < out.size(); ++i) out[i] = int32_t(from[i]);
  });
}

Status TokenFile::check_ids(int64_t limit) const {
  return with_type(type_, ids_, [&](auto ids) -> Status {
    // As unsigned numbers negative ids are too large as well: one comparison a token.
    const auto bad = [limit](auto id) { return uint64_t(int64_t(id)) >= uint64_t(limit); };
    const auto it = std::find_if(ids.begin(), ids.end(), bad);
    if (it == ids.end()) return {};
    return invalid_input(
        "{}: token {} at position {} is out of range: ids of the vocabulary are 0 to {}; the file "
        "was made with another tokenizer, or is not a {} file",
        path_.string(), int64_t(*it), it - ids.begin(), limit - 1, name_of(format_));
  });
}

int64_t TokenFile::largest_id() const {
  return with_type(type_, ids_, [](auto ids) -> int64_t {
    const auto it = std::max_element(ids.begin(), ids.end());
    return it == ids.end() ? -1 : int64_t(*it);
  });
}

}  // namespace fivefold::data
