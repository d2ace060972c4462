#include "data/text_source.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace fivefold::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::array<std::string_view, 5> kTextExtensions = {".txt", ".text", ".md", ".pod",
                                                             ".jsonl"};
constexpr std::array<std::string_view, 8> kPackedExtensions = {
    ".gz", ".bz2", ".xz", ".zst", ".zip", ".lz4", ".parquet", ".arrow"};

template <size_t N>
bool ends_in(const Path& path, const std::array<std::string_view, N>& extensions) {
  const std::string extension = path.extension().string();
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

bool is_jsonl(const Path& path, const spec::DataSource& source) {
  return path.extension() == ".jsonl" || source.format == "jsonl";
}

Result<std::vector<Path>> walk(const Path& folder) {
  std::vector<Path> files;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error), end;
  for (; !error && it != end; it.increment(error)) {
    std::error_code ignored;  // a dangling link is not a file; skip it
    if (it->is_regular_file(ignored) && ends_in(it->path(), kTextExtensions)) {
      files.push_back(it->path());
    }
  }
  if (error) return io_error("{}: cannot be walked: {}", folder.string(), error.message());
  if (files.empty()) {
    return invalid_input(
        "{}: no text in this folder; files ending in .txt, .text, .md, .pod or .jsonl are read",
        folder.string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string_view as_text(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// The string under `key`, or null when the object has no such key.
Result<const std::string*> string_at(const Json& object, const std::string& key,
                                     const std::string& where) {
  const auto it = object.find(key);
  if (it == object.end()) return nullptr;
  if (!it->is_string()) {
    return invalid_input("{}: \"{}\" is a {}, not a string", where, key, it->type_name());
  }
  return it->get_ptr<const std::string*>();
}

Status read_json_line(std::string_view line, const std::string& where, const spec::DataSource& keys,
                      const DocumentSink& sink) {
  Json object;
  try {
    object = Json::parse(line);
  } catch (const std::exception& e) {
    return invalid_input("{}: not JSON: {}", where, e.what());
  }
  if (!object.is_object()) {
    return invalid_input("{}: a JSON object is expected, this is a {}", where, object.type_name());
  }
  if (const std::string* text = TRY(string_at(object, keys.text_key, where))) {
    if (text->empty()) return {};
    return sink({.prompt = {}, .text = *text, .has_prompt = false});
  }
  const std::string* prompt = TRY(string_at(object, keys.prompt_key, where));
  const std::string* response = TRY(string_at(object, keys.response_key, where));
  if (prompt == nullptr || response == nullptr) {
    return invalid_input(
        "{}: has neither \"{}\" nor both \"{}\" and \"{}\"; set text_key, or prompt_key and "
        "response_key, of the source",
        where, keys.text_key, keys.prompt_key, keys.response_key);
  }
  if (response->empty()) return {};
  return sink({.prompt = *prompt, .text = *response, .has_prompt = true});
}

}  // namespace

Result<std::vector<Path>> list_text_files(const spec::DataSource& source) {
  const Path path = source.path;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    return invalid_input("{}: no such file or folder", source.path);
  }
  if (error) return io_error("{}: cannot be read: {}", source.path, error.message());
  if (fs::is_directory(status)) return walk(path);
  if (ends_in(path, kPackedExtensions)) {
    return invalid_input("{}: {} files are not read; unpack it to plain text or .jsonl first",
                         source.path, path.extension().string());
  }
  return std::vector<Path>{path};
}

Status read_json_lines(std::string_view text, const std::string& name, const spec::DataSource& keys,
                       const DocumentSink& sink) {
  int64_t line_number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line_number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    TRY(read_json_line(line, fmt::format("{}:{}", name, line_number), keys, sink));
  }
  return {};
}

Status read_documents(const spec::DataSource& source, const DocumentSink& sink) {
  for (const Path& path : TRY(list_text_files(source))) {
    const MappedFile file = TRY(MappedFile::open(path));
    const std::string_view text = as_text(file);
    if (text.starts_with("\x1f\x8b")) {
      return invalid_input("{}: is compressed by gzip; unpack it first", path.string());
    }
    if (text.empty()) continue;
    if (is_jsonl(path, source)) {
      TRY(read_json_lines(text, path.string(), source, sink));
    } else {
      TRY(sink({.prompt = {}, .text = text, .has_prompt = false}));
    }
  }
  return {};
}

}  // namespace fivefold::data
