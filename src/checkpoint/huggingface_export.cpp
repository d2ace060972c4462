#include <cstring>
#include <nlohmann/json.hpp>

#include "checkpoint/huggingface.hpp"
#include "checkpoint/huggingface_layout.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint/transpose.hpp"
#include "spec/huggingface.hpp"

namespace fivefold::checkpoint {
namespace {

// A run of tensors that go to one file.
struct Shard {
  std::string file;
  size_t first = 0, count = 0;
};

int64_t bytes_of(const ForeignTensor& tensor, DType dtype) {
  int64_t bytes = int64_t(size_of(dtype));
  for (const int64_t size : tensor.shape) bytes *= size;
  return bytes;
}

// Whole tensors in order, as many to a file as fit; one larger than the limit gets a file of its
// own.
std::vector<Shard> shards_of(std::span<const ForeignTensor> layout, const ExportOptions& options) {
  std::vector<Shard> shards;
  int64_t filled = 0;
  for (size_t i = 0; i < layout.size(); ++i) {
    const int64_t bytes = bytes_of(layout[i], options.dtype);
    if (shards.empty() || filled + bytes > options.max_shard_bytes) {
      shards.push_back({"", i, 0});
      filled = 0;
    }
    ++shards.back().count;
    filled += bytes;
  }
  for (size_t s = 0; s < shards.size(); ++s) {
    shards[s].file = shards.size() == 1
                         ? "model.safetensors"
                         : fmt::format("model-{:05}-of-{:05}.safetensors", s + 1, shards.size());
  }
  return shards;
}

// Makes the foreign tensors one at a time in buffers that are used again.
class Maker {
 public:
  Maker(const ParameterSet& parameters, DType dtype) : parameters_(parameters), dtype_(dtype) {}

  // Valid until the next call. Errors: a value that is not finite or too large for the dtype.
  Result<ConstView> make(const ForeignTensor& foreign) {
    const int64_t element = int64_t(size_of(dtype_));
    buffer_.resize(size_t(bytes_of(foreign, dtype_)));
    int64_t column = 0;
    for (const Parameter* part : foreign.parts) {
      if (!foreign.transposed) {
        TRY(convert(*part, buffer_.data() + column * element));
        column += part->count;
        continue;
      }
      part_.resize(size_t(part->count * element));
      TRY(convert(*part, part_.data()));
      const int64_t rows = part->spec.shape[0], columns = part->spec.shape[1];
      transpose(part_.data(), columns, buffer_.data() + column * element, foreign.shape[1], rows,
                columns, element);
      column += rows;
    }
    return ConstView(buffer_.data(), dtype_, {int64_t(buffer_.size()) / element});
  }

 private:
  Status convert(const Parameter& part, std::byte* to) const {
    const View value = parameters_.value(part);
    const StoredTensor stored{
        std::string(stored_name_of(value.dtype)),
        part.spec.shape,
        {static_cast<const std::byte*>(value.data), size_t(part.count) * size_of(value.dtype)}};
    return read_into(stored, part.spec.name, View(to, dtype_, {part.count}));
  }

  const ParameterSet& parameters_;
  DType dtype_;
  std::vector<std::byte> buffer_, part_;
};

// Readers would find two sets of weights if a file of the other form stayed behind.
Status refuse_other_weights(const Path& folder, bool sharded) {
  const Path other = folder / (sharded ? "model.safetensors" : "model.safetensors.index.json");
  std::error_code error;
  if (!std::filesystem::exists(other, error)) return {};
  return invalid_input(
      "{}: holds {} of another export, which this one would not replace; remove it "
      "or choose an empty folder",
      folder.string(), other.filename().string());
}

Status write_index(const Path& path, std::span<const ForeignTensor> layout,
                   std::span<const Shard> shards, DType dtype) {
  nlohmann::json index;
  int64_t total = 0;
  for (const Shard& shard : shards) {
    for (const ForeignTensor& tensor : layout.subspan(shard.first, shard.count)) {
      index["weight_map"][tensor.name] = shard.file;
      total += bytes_of(tensor, dtype);
    }
  }
  index["metadata"]["total_size"] = total;
  return write_file(path, index.dump(2) + "\n");
}

// The model's config with the dtype of the weights, which is theirs and not the model's.
std::string config_text(const spec::ModelSpec& model, DType dtype) {
  auto config = nlohmann::ordered_json::parse(spec::to_huggingface_config(model));
  config["torch_dtype"] = name_of(dtype);
  return config.dump(2) + "\n";
}

Status copy_tokenizer(const Path& from, const Path& folder) {
  std::error_code error;
  if (std::filesystem::is_directory(from, error)) {  // a Hugging Face folder, as load_tokenizer takes it
    for (const char* name : {"tokenizer.json", "tokenizer.model", "tokenizer_config.json"}) {
      if (std::filesystem::equivalent(from / name, folder / name, error)) continue;
      if (std::filesystem::is_regular_file(from / name, error)) {
        const std::string text = TRY(read_file(from / name));
        TRY(write_file(folder / name, text));
      }
    }
    return {};
  }
  if (!std::filesystem::is_regular_file(from, error)) return {};
  const std::string ending = from.extension().string();
  const bool known = ending == ".json" || ending == ".model";
  const Path to = folder / (known ? Path("tokenizer" + ending) : from.filename());
  if (std::filesystem::equivalent(from, to, error)) return {};
  return write_file(to, TRY(read_file(from)));
}

}  // namespace

Status export_huggingface(const Path& folder, const spec::ModelSpec& model,
                          const ParameterSet& parameters, const ExportOptions& options,
                          const std::string& tokenizer_path) {
  CHECK(options.max_shard_bytes > 0, "shards of {} bytes", options.max_shard_bytes);
  const std::vector<ForeignTensor> layout = TRY(foreign_layout(model, parameters));
  const std::vector<Shard> shards = shards_of(layout, options);
  TRY(spec::check_huggingface(model));
  TRY(make_folder(folder));
  TRY(refuse_other_weights(folder, shards.size() > 1));

  // An index of an earlier export must not outlive the shards that it describes.
  const Path index = folder / "model.safetensors.index.json";
  std::error_code error;
  std::filesystem::remove(index, error);
  if (error) return io_error("{}: cannot be replaced: {}", index.string(), error.message());

  Maker maker(parameters, options.dtype);
  for (const Shard& shard : shards) {
    const std::span tensors = std::span(layout).subspan(shard.first, shard.count);
    std::vector<TensorHeader> headers;
    for (const ForeignTensor& t : tensors) headers.push_back({t.name, options.dtype, t.shape});
    TRY(write_safetensors(folder / shard.file, headers, {{"format", "pt"}},
                          [&](size_t i) { return maker.make(tensors[i]); }));
  }
  if (shards.size() > 1) TRY(write_index(index, layout, shards, options.dtype));
  TRY(write_file(folder / "config.json", config_text(model, options.dtype)));
  return copy_tokenizer(tokenizer_path, folder);
}

}  // namespace fivefold::checkpoint
