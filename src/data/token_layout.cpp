// What the bytes of token files mean: headers, the Megatron index, and our own PREFIX.json.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "data/token_file.hpp"

namespace fivefold::data {
namespace {

using Json = nlohmann::json;
using Bytes = std::span<const std::byte>;

template <class T>
T number_at(Bytes bytes, int64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

bool starts_with(Bytes bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

// What a file is that is not tokens, or null: raw ids have no magic of their own.
const char* foreign_kind(Bytes bytes) {
  struct Kind {
    std::string_view magic;
    const char* name;
  };
  static constexpr Kind kinds[] = {
      {"MMIDIDX", "a Megatron index (give the prefix, with .bin and .idx beside each other)"},
      {"\x1f\x8b", "a gzip file"},
      {"PK\x03\x04", "a zip file (PyTorch, NumPy .npz)"},
      {"\x93NUMPY", "a NumPy .npy file"},
      {"GGUF", "a GGUF model"},
      {"\x7f"
       "ELF",
       "a program"},
  };
  for (const Kind& kind : kinds) {
    if (starts_with(bytes, kind.magic)) return kind.name;
  }
  const Bytes head = bytes.first(std::min<size_t>(bytes.size(), 512));
  const auto printable = [](std::byte b) {
    const auto c = uint8_t(b);
    return (c >= 32 && c < 127) || c == '\n' || c == '\r' || c == '\t';
  };
  // Ids below 256 leave zero bytes, so that many bytes of text alone are not ids.
  if (head.size() >= 16 && std::all_of(head.begin(), head.end(), printable)) return "text";
  return nullptr;
}

struct LlmcKind {
  int32_t magic, version;
  TokenType type;
};
constexpr int64_t kLlmcHeaderBytes = 256 * 4;
constexpr LlmcKind kLlmcKinds[] = {{20240520, 1, TokenType::uint16},
                                   {20240801, 7, TokenType::uint32}};
constexpr int32_t kLlmcEvaluation = 20240522;

Result<FlatLayout> parse_llmc(Bytes bytes, const std::string& name, const LlmcKind& kind) {
  const auto size = int64_t(bytes.size());
  if (size < kLlmcHeaderBytes) {
    return invalid_input("{}: truncated: {} bytes, the header of llm.c alone has {}", name, size,
                         kLlmcHeaderBytes);
  }
  const auto version = number_at<int32_t>(bytes, 4);
  if (version != kind.version) {
    return invalid_input("{}: version {} of llm.c's token file {} is not known, only {}", name,
                         version, kind.magic, kind.version);
  }
  const int64_t tokens = number_at<int32_t>(bytes, 8);
  const int64_t expected = kLlmcHeaderBytes + tokens * size_of(kind.type);
  if (tokens <= 0 || expected != size) {
    return invalid_input("{}: its header says {} tokens, {} bytes in all, the file has {}: {}",
                         name, tokens, expected, size,
                         size < expected ? "truncated; copy it again" : "damaged or foreign");
  }
  return FlatLayout{TokenFormat::llmc, kind.type, kLlmcHeaderBytes, tokens};
}

constexpr std::string_view kMegatronMagic("MMIDIDX\0\0", 9);
constexpr int64_t kMegatronHeaderBytes = 9 + 8 + 1 + 8 + 8;

Result<TokenType> megatron_type(int code, const std::string& name) {
  switch (code) {
    case 1:
      return TokenType::uint8;
    case 2:
      return TokenType::int8;
    case 3:
      return TokenType::int16;
    case 4:
      return TokenType::int32;
    case 5:
      return TokenType::int64;
    case 8:
      return TokenType::uint16;
    default:
      return invalid_input("{}: type code {} does not stand for token ids (1 to 5 and 8 do)", name,
                           code);
  }
}

struct Header {
  TokenType type;
  int64_t sequences, documents;  // of the index: one more than there are documents
};

Result<Header> parse_megatron_header(Bytes index, const std::string& name) {
  const auto size = int64_t(index.size());
  if (!starts_with(index, kMegatronMagic)) {
    return invalid_input("{}: not a Megatron index: it does not begin with MMIDIDX", name);
  }
  if (size < kMegatronHeaderBytes) return invalid_input("{}: truncated in its header", name);
  const auto version = number_at<uint64_t>(index, 9);
  if (version != 1) {
    return invalid_input("{}: version {} of Megatron's index is not known, only 1", name, version);
  }
  const TokenType type = TRY(megatron_type(number_at<uint8_t>(index, 17), name));
  const auto sequences = number_at<uint64_t>(index, 18), documents = number_at<uint64_t>(index, 26);
  // Bounds first: the products below must not wrap.
  const auto room = uint64_t(size - kMegatronHeaderBytes);
  if (sequences > room / 12 || documents > room / 8 || sequences * 12 + documents * 8 > room) {
    return invalid_input("{}: truncated: {} bytes cannot hold {} sequences and {} document ends",
                         name, size, sequences, documents);
  }
  if (sequences * 12 + documents * 8 != room) {
    return invalid_input(
        "{}: {} bytes follow the document ends; multimodal indices (sequence modes) are not read",
        name, room - sequences * 12 - documents * 8);
  }
  if (documents == 0) return invalid_input("{}: has no list of documents", name);
  return Header{type, int64_t(sequences), int64_t(documents)};
}

}  // namespace

Result<FlatLayout> parse_flat(Bytes bytes, const std::string& name,
                              std::optional<TokenFormat> format) {
  if (bytes.empty()) return invalid_input("{}: is empty", name);
  if (bytes.size() >= 4 && format != TokenFormat::nanogpt) {
    const auto magic = number_at<int32_t>(bytes, 0);
    for (const LlmcKind& kind : kLlmcKinds) {
      if (magic == kind.magic) return parse_llmc(bytes, name, kind);
    }
    if (magic == kLlmcEvaluation) {
      return invalid_input("{}: holds llm.c's multiple-choice questions, not text to train on",
                           name);
    }
  }
  if (format == TokenFormat::llmc) {
    return invalid_input("{}: not a token file of llm.c: its magic number is missing", name);
  }
  if (const char* kind = foreign_kind(bytes)) {
    return invalid_input("{}: not a token file, but {}", name, kind);
  }
  if (bytes.size() % 2 != 0) {
    return invalid_input("{}: {} bytes are not a whole number of uint16 ids: truncated or foreign",
                         name, bytes.size());
  }
  return FlatLayout{TokenFormat::nanogpt, TokenType::uint16, 0, int64_t(bytes.size()) / 2};
}

Result<MegatronIndex> parse_megatron_index(Bytes index, int64_t bin_bytes,
                                           const std::string& name) {
  const Header header = TRY(parse_megatron_header(index, name));
  const int64_t lengths = kMegatronHeaderBytes, pointers = lengths + 4 * header.sequences;
  const int64_t documents = pointers + 8 * header.sequences;
  const auto length_of = [&](int64_t i) { return number_at<int32_t>(index, lengths + 4 * i); };
  const int64_t id_bytes = size_of(header.type);

  MegatronIndex out{.type = header.type, .tokens = 0, .document_starts = {}, .first_sequence = {}};
  int64_t sequence = 0;
  for (int64_t d = 0; d < header.documents; ++d) {
    const auto end = number_at<int64_t>(index, documents + 8 * d);
    if (end < sequence || end > header.sequences || (d == 0 && end != 0)) {
      return invalid_input("{}: document {} begins at sequence {}, out of order (of {})", name, d,
                           end, header.sequences);
    }
    const int64_t sequences = end - sequence;
    if (d > 0) out.first_sequence.push_back(sequences > 1 ? length_of(sequence) : -1);
    for (; sequence < end; ++sequence) {
      const int64_t length = length_of(sequence);
      const auto pointer = number_at<int64_t>(index, pointers + 8 * sequence);
      if (length < 0) {
        return invalid_input("{}: sequence {} has {} tokens", name, sequence, length);
      }
      if (pointer != out.tokens * id_bytes) {
        return invalid_input(
            "{}: sequence {} lies at byte {}, {} expected; only files whose sequences follow each "
            "other are read",
            name, sequence, pointer, out.tokens * id_bytes);
      }
      out.tokens += length;
    }
    out.document_starts.push_back(out.tokens);
  }
  if (sequence != header.sequences) {
    return invalid_input("{}: the documents end at sequence {} of {}", name, sequence,
                         header.sequences);
  }
  if (bin_bytes != out.tokens * id_bytes) {
    return invalid_input("{}: describes {} bytes of ids, the .bin file has {}: {}", name,
                         out.tokens * id_bytes, bin_bytes,
                         bin_bytes < out.tokens * id_bytes ? "truncated; copy it again"
                                                           : "the two do not belong together");
  }
  if (out.document_starts.size() == 1) out.document_starts.push_back(0), out.first_sequence = {-1};
  return out;
}

Result<TokenFileInfo> parse_token_file_info(std::string_view text, const std::string& name) {
  try {
    const Json json = Json::parse(text);
    if (json.at("format") != "fivefold tokens" || json.at("version") != 1) {
      return invalid_input("{}: not the description of a token file that this version knows", name);
    }
    TokenFileInfo info;
    info.tokenizer = json.at("tokenizer");
    info.tokenizer_fingerprint =
        std::stoull(json.at("tokenizer_fingerprint").get<std::string>(), nullptr, 16);
    info.vocab_size = json.at("vocab_size");
    info.end_of_text = json.at("end_of_text");
    info.tokens = json.at("tokens");
    info.documents = json.at("documents");
    info.text_bytes = json.at("text_bytes");
    info.prompts = json.at("prompts");
    info.made_from = json.at("made_from");
    return info;
  } catch (const std::exception& e) {
    return invalid_input("{}: damaged description of a token file: {}", name, e.what());
  }
}

std::string to_json(const TokenFileInfo& info) {
  const Json json = {
      {"format", "fivefold tokens"},   {"version", 1},
      {"tokenizer", info.tokenizer},   {"tokenizer_fingerprint", hex(info.tokenizer_fingerprint)},
      {"vocab_size", info.vocab_size}, {"end_of_text", info.end_of_text},
      {"tokens", info.tokens},         {"documents", info.documents},
      {"text_bytes", info.text_bytes}, {"prompts", info.prompts},
      {"made_from", info.made_from}};
  // Paths may hold bytes that are not UTF-8; they are replaced rather than fatal.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace fivefold::data
