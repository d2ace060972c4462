#include "checkpoint/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

namespace fivefold::checkpoint {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "safetensors holds little-endian bytes");

constexpr uint64_t max_header_bytes = 100'000'000;  // the reference implementation's own limit

// Bytes of one element, 0 for a type that we do not know.
uint64_t element_bytes(std::string_view dtype) {
  constexpr std::pair<std::string_view, uint64_t> sizes[] = {
      {"F64", 8},     {"F32", 4},     {"F16", 2},     {"BF16", 2}, {"I64", 8}, {"I32", 4},
      {"I16", 2},     {"I8", 1},      {"U64", 8},     {"U32", 4},  {"U16", 2}, {"U8", 1},
      {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1}, {"BOOL", 1}, {"C64", 8}};
  for (const auto& [name, bytes] : sizes) {
    if (name == dtype) return bytes;
  }
  return 0;
}

// The header as JSON. The library keeps the last of two equal keys; we refuse them.
Result<json> parse_header(std::string_view text, const std::string& file) {
  std::set<std::string> names, fields;
  std::string duplicate;
  const auto watch = [&](int depth, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start && depth == 1) fields.clear();
    if (event == json::parse_event_t::key && depth <= 2) {
      const auto& key = value.get_ref<const std::string&>();
      const bool is_new = (depth == 1 ? names : fields).insert(key).second;
      if (!is_new && duplicate.empty()) duplicate = key;
    }
    return true;
  };
  try {
    json header = json::parse(text.begin(), text.end(), watch);
    if (!duplicate.empty()) {
      return invalid_input("{}: the header names \"{}\" twice", file, duplicate);
    }
    if (!header.is_object()) {
      return invalid_input("{}: the header is not a JSON object: not a safetensors file", file);
    }
    return header;
  } catch (const json::parse_error& error) {
    return invalid_input("{}: the header is not JSON (byte {}): not a safetensors file, or damaged",
                         file, error.byte);
  } catch (const json::exception&) {
    return invalid_input("{}: the header holds a number out of range: damaged", file);
  }
}

// One entry of the header, with its place in the data.
struct Entry {
  std::string name;
  StoredTensor tensor;
  uint64_t begin = 0, end = 0;
};

bool is_unsigned_array(const json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), [](const json& n) {
           return n.is_number_unsigned() && n.get<uint64_t>() <= uint64_t(INT64_MAX);
         });
}

Result<Entry> parse_entry(const std::string& name, const json& value, const std::string& file) {
  const auto bad = [&](std::string_view what) {
    return invalid_input("{}: tensor {}: {}", file, name, what);
  };
  if (!value.is_object()) return bad("its header entry is not an object");
  for (const auto& [key, unused] : value.items()) {
    if (key != "dtype" && key != "shape" && key != "data_offsets") {
      return bad(fmt::format("unknown key \"{}\" in the header", key));
    }
  }
  if (value.size() != 3) return bad("the header must give dtype, shape and data_offsets");
  const json &dtype = value["dtype"], &shape = value["shape"], &offsets = value["data_offsets"];
  if (!dtype.is_string()) return bad("dtype is not a string");
  if (!is_unsigned_array(shape)) return bad("shape is not a list of sizes");
  if (!is_unsigned_array(offsets) || offsets.size() != 2) {
    return bad("data_offsets is not a pair of offsets");
  }
  Entry entry;
  entry.name = name;
  entry.tensor.dtype = dtype.get<std::string>();
  entry.tensor.shape = shape.get<std::vector<int64_t>>();
  entry.begin = offsets[0].get<uint64_t>();
  entry.end = offsets[1].get<uint64_t>();
  uint64_t bytes = element_bytes(entry.tensor.dtype);
  if (bytes == 0) return bad(fmt::format("unknown dtype \"{}\"", entry.tensor.dtype));
  for (const int64_t size : entry.tensor.shape) {
    if (__builtin_mul_overflow(bytes, uint64_t(size), &bytes)) {
      return bad("its shape has more elements than any file");
    }
  }
  if (entry.end < entry.begin || entry.end - entry.begin != bytes) {
    return bad(
        fmt::format("its shape and dtype need {} bytes, its offsets {} to {} give another "
                    "number",
                    bytes, entry.begin, entry.end));
  }
  return entry;
}

Result<std::map<std::string, std::string>> parse_metadata(const json& value,
                                                          const std::string& file) {
  std::map<std::string, std::string> metadata;
  if (!value.is_object()) return invalid_input("{}: __metadata__ is not an object", file);
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) {
      return invalid_input("{}: __metadata__ entry \"{}\" is not a string", file, key);
    }
    metadata[key] = text.get<std::string>();
  }
  return metadata;
}

// The entries must tile the data: one after the other, from its first byte to its last.
Status check_places(std::vector<Entry>& entries, uint64_t data_bytes, const std::string& file) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t position = 0;
  for (const Entry& entry : entries) {
    if (entry.end > data_bytes) {
      return invalid_input(
          "{}: tensor {} ends at byte {} of the data, but the file holds only {}: it was cut "
          "short; "
          "copy or download it again",
          file, entry.name, entry.end, data_bytes);
    }
    if (entry.begin != position) {
      return invalid_input(
          "{}: tensor {} starts at byte {} of the data, {} the one before it, "
          "which ends at {}: damaged",
          file, entry.name, entry.begin, entry.begin < position ? "inside" : "leaving a gap after",
          position);
    }
    position = entry.end;
  }
  if (position != data_bytes) {
    return invalid_input("{}: {} bytes follow the last tensor: damaged", file,
                         data_bytes - position);
  }
  return {};
}

Result<std::string> header_text(std::span<const TensorHeader> headers,
                                const std::map<std::string, std::string>& metadata) {
  const auto quoted = [](const std::string& text) { return json(text).dump(); };
  std::set<std::string> names;
  std::string text = "{";
  uint64_t position = 0;
  try {
    if (!metadata.empty()) text += "\"__metadata__\":" + json(metadata).dump();
    for (const TensorHeader& h : headers) {
      CHECK(h.name != "__metadata__" && names.insert(h.name).second, "tensor name {} twice",
            h.name);
      uint64_t bytes = size_of(h.dtype);
      for (const int64_t size : h.shape) bytes *= uint64_t(size);
      if (text.size() > 1) text += ",";
      text += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}}",
                          quoted(h.name), stored_name_of(h.dtype), json(h.shape).dump(), position,
                          position + bytes);
      position += bytes;
    }
  } catch (const json::exception&) {
    return invalid_input(
        "a tensor's name or its metadata are not UTF-8; safetensors cannot hold "
        "them");
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data start aligned
  return text;
}

}  // namespace

int64_t StoredTensor::count() const {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return n;
}

std::string_view stored_name_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "F32";
    case DType::f64:
      return "F64";
    case DType::bf16:
      return "BF16";
    case DType::i32:
      return "I32";
    case DType::i64:
      return "I64";
  }
  return "";
}

Result<SafetensorsFile> SafetensorsFile::open(const Path& path) {
  MappedFile mapped = TRY(MappedFile::open(path));
  SafetensorsFile file = TRY(parse(mapped.bytes(), path.string()));
  file.file_ = std::move(mapped);
  return file;
}

Result<SafetensorsFile> SafetensorsFile::parse(std::span<const std::byte> bytes,
                                               const std::string& name) {
  uint64_t length = 0;
  if (bytes.size() < sizeof length) {
    return invalid_input(
        "{}: {} bytes are too few for a safetensors file: it was cut short, or is "
        "something else",
        name, bytes.size());
  }
  std::memcpy(&length, bytes.data(), sizeof length);
  bytes = bytes.subspan(sizeof length);
  if (length > bytes.size() || length > max_header_bytes) {
    return invalid_input(
        "{}: the header claims {} bytes, but only {} follow (and {} are allowed): "
        "the file was cut short, or is not a safetensors file",
        name, length, bytes.size(), max_header_bytes);
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), length);
  const json header = TRY(parse_header(text, name));

  SafetensorsFile file;
  file.data_ = bytes.subspan(length);
  std::vector<Entry> entries;
  for (const auto& [key, value] : header.items()) {
    if (key == "__metadata__") {
      file.metadata_ = TRY(parse_metadata(value, name));
    } else {
      entries.push_back(TRY(parse_entry(key, value, name)));
    }
  }
  TRY(check_places(entries, file.data_.size(), name));
  for (Entry& entry : entries) {
    entry.tensor.bytes = file.data_.subspan(entry.begin, entry.end - entry.begin);
    file.tensors_[entry.name] = std::move(entry.tensor);
  }
  return file;
}

Status write_safetensors(const Path& path, std::span<const TensorHeader> headers,
                         const std::map<std::string, std::string>& metadata,
                         const std::function<Result<ConstView>(size_t)>& make) {
  const std::string header = TRY(header_text(headers, metadata));
  const uint64_t length = header.size();
  DurableFile file = TRY(DurableFile::create(path));
  TRY(file.write(std::as_bytes(std::span(&length, 1))));
  TRY(file.write(header));
  for (size_t i = 0; i < headers.size(); ++i) {
    const ConstView view = TRY(make(i));
    int64_t count = 1;
    for (const int64_t size : headers[i].shape) count *= size;
    CHECK(view.contiguous() && view.count() == count && view.dtype == headers[i].dtype,
          "{}: {} elements of {} to store as {} of {}", headers[i].name, view.count(),
          name_of(view.dtype), count, name_of(headers[i].dtype));
    TRY(file.write(
        std::span(static_cast<const std::byte*>(view.data), size_t(count) * size_of(view.dtype))));
  }
  return file.commit();
}

Status write_safetensors(const Path& path, std::span<const TensorToStore> tensors,
                         const std::map<std::string, std::string>& metadata) {
  std::vector<TensorHeader> headers;
  for (const TensorToStore& t : tensors) headers.push_back({t.name, t.view.dtype, t.shape});
  return write_safetensors(path, headers, metadata,
                           [&](size_t i) -> Result<ConstView> { return tensors[i].view; });
}

}  // namespace fivefold::checkpoint
