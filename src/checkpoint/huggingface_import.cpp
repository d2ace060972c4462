#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "checkpoint/huggingface.hpp"
#include "checkpoint/huggingface_layout.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint/transpose.hpp"

namespace fivefold::checkpoint {
namespace {

// Collects what is wrong, to say it all at once.
class Faults {
 public:
  void add(std::string text) { texts_.push_back(std::move(text)); }
  bool none() const { return texts_.empty(); }
  Status status(const Path& path) const {
    constexpr size_t shown = 20;
    if (none()) return {};
    std::string all;
    for (size_t i = 0; i < std::min(shown, texts_.size()); ++i) all += "\n  " + texts_[i];
    if (texts_.size() > shown) all += fmt::format("\n  and {} more", texts_.size() - shown);
    return invalid_input("{}: cannot be imported into this model:{}", path.string(), all);
  }

 private:
  std::vector<std::string> texts_;
};

// The tensors of one model, from however many files.
struct Weights {
  std::vector<SafetensorsFile> files;
  std::map<std::string, const StoredTensor*> tensors;
};

Result<Weights> open_single(const Path& path) {
  Weights weights;
  weights.files.push_back(TRY(SafetensorsFile::open(path)));
  for (const auto& [name, tensor] : weights.files[0].tensors()) weights.tensors[name] = &tensor;
  return weights;
}

Result<Weights> open_shards(const Path& folder, const Path& index_path) {
  const std::string text = TRY(read_file(index_path));
  const auto index = TRY(parse_index(text, index_path.string()));
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : index) shards.insert(shard);
  Weights weights;
  for (const std::string& shard : shards) {
    weights.files.push_back(TRY(SafetensorsFile::open(folder / shard)));
    for (const auto& [name, tensor] : weights.files.back().tensors()) {
      const auto listed = index.find(name);
      if (listed == index.end() || listed->second != shard) {
        return invalid_input(
            "{}: holds tensor {}, which {} {}", (folder / shard).string(), name,
            index_path.filename().string(),
            listed == index.end() ? "does not list" : "places in " + listed->second);
      }
      weights.tensors[name] = &tensor;
    }
  }
  for (const auto& [name, shard] : index) {
    if (!weights.tensors.contains(name)) {
      return invalid_input("{}: lists tensor {} in {}, which does not hold it", index_path.string(),
                           name, shard);
    }
  }
  return weights;
}

Result<Weights> open_weights(const Path& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return open_single(path);
  const Path single = path / "model.safetensors", index = path / "model.safetensors.index.json";
  const bool has_single = std::filesystem::exists(single, error);
  const bool has_index = std::filesystem::exists(index, error);
  if (has_single && has_index) {
    return invalid_input(
        "{}: holds both model.safetensors and model.safetensors.index.json; name "
        "the single file, or remove one of them",
        path.string());
  }
  if (has_single) return open_single(single);
  if (has_index) return open_shards(path, index);
  const bool pickled = std::filesystem::exists(path / "pytorch_model.bin", error) ||
                       std::filesystem::exists(path / "pytorch_model.bin.index.json", error);
  return invalid_input("{}: no model.safetensors (or model.safetensors.index.json) here{}",
                       path.string(),
                       pickled ? "; pytorch_model.bin is a pickle, which we do not run: convert it "
                                 "to safetensors"
                               : "");
}

std::string text_of(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// A tied model has one table. A file that carries the head as well must carry the same one, or
// it was trained untied and would lose its head here.
void check_tied_head(const Weights& weights, const std::string& embedding, Faults& faults) {
  const auto head = weights.tensors.find(std::string(head_name));
  const auto table = weights.tensors.find(embedding);
  if (head == weights.tensors.end() || table == weights.tensors.end()) return;
  const StoredTensor &a = *head->second, &b = *table->second;
  if (a.dtype != b.dtype || a.shape != b.shape ||
      !std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end())) {
    faults.add(
        fmt::format("{} differs from {}, but the model ties them; set tied_embeddings = false",
                    head_name, embedding));
  }
}

// Names and shapes, before any number is read.
void check_names(const spec::ModelSpec& model, const Weights& weights,
                 std::span<const ForeignTensor> layout, Faults& faults) {
  std::set<std::string_view> known;
  for (const ForeignTensor& want : layout) {
    known.insert(want.name);
    const auto have = weights.tensors.find(want.name);
    if (have == weights.tensors.end()) {
      faults.add(fmt::format("tensor {} is missing{}", want.name,
                             want.name == head_name ? "; if the head is tied to the embedding, set "
                                                      "tied_embeddings = true"
                                                    : ""));
    } else if (have->second->shape != want.shape) {
      faults.add(fmt::format("tensor {} is {} in the file, {} in the model", want.name,
                             text_of(have->second->shape), text_of(want.shape)));
    }
  }
  if (model.tied_embeddings) {
    known.insert(head_name);
    check_tied_head(weights, std::string(embedding_name(model)), faults);
  }
  for (const auto& [name, tensor] : weights.tensors) {
    if (known.contains(name) || is_known_buffer(model, name)) continue;
    faults.add(fmt::format("tensor {} is left over: the model has no such parameter", name));
  }
}

// GPT-2 files come with and without their prefix; from here on all have it.
void add_prefix(Weights& weights) {
  for (const auto& [name, tensor] : weights.tensors) {
    if (name.starts_with(gpt2_prefix)) return;
  }
  std::map<std::string, const StoredTensor*> renamed;
  for (const auto& [name, tensor] : weights.tensors) {
    renamed[name == head_name ? name : std::string(gpt2_prefix) + name] = tensor;
  }
  weights.tensors = std::move(renamed);
}

Status read_tensor(const StoredTensor& stored, const ForeignTensor& foreign,
                   const ParameterSet& parameters, std::vector<std::byte>& scratch) {
  if (foreign.parts.size() == 1 && !foreign.transposed) {
    return read_into(stored, foreign.name, parameters.value(*foreign.parts[0]));
  }
  const int64_t element = int64_t(size_of(parameters.dtype()));
  scratch.resize(size_t(stored.count() * element));
  TRY(read_into(stored, foreign.name, View(scratch.data(), parameters.dtype(), {stored.count()})));
  int64_t column = 0;
  for (const Parameter* part : foreign.parts) {
    void* to = parameters.value(*part).data;
    const int64_t rows = part->spec.shape[0];  // columns of the foreign tensor
    if (foreign.transposed) {
      transpose(scratch.data() + column * element, foreign.shape[1], to, part->spec.shape[1],
                part->spec.shape[1], rows, element);
    } else {
      std::memcpy(to, scratch.data() + column * element, size_t(part->count * element));
    }
    column += rows;
  }
  return {};
}

}  // namespace

Status import_huggingface(const Path& path, const spec::ModelSpec& model,
                          ParameterSet& parameters) {
  const std::vector<ForeignTensor> layout = TRY(foreign_layout(model, parameters));
  Weights weights = TRY(open_weights(path));
  if (model.architecture == spec::Architecture::gpt2) add_prefix(weights);
  Faults faults;
  check_names(model, weights, layout, faults);
  TRY(faults.status(path));
  std::vector<std::byte> scratch;
  for (const ForeignTensor& foreign : layout) {
    const Status read =
        read_tensor(*weights.tensors.at(foreign.name), foreign, parameters, scratch);
    if (!read) faults.add(read.error().message);
  }
  return faults.status(path);
}

Result<DType> huggingface_dtype(const Path& path) {
  const Weights weights = TRY(open_weights(path));
  bool all_bf16 = !weights.tensors.empty();
  for (const auto& [name, tensor] : weights.tensors) {
    if (tensor->dtype == "F64") return DType::f64;
    all_bf16 = all_bf16 && tensor->dtype == "BF16";
  }
  return all_bf16 ? DType::bf16 : DType::f32;
}

}  // namespace fivefold::checkpoint
