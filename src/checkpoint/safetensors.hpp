#pragma once
// Hugging Face's safetensors: an 8-byte header length, a JSON header, then the tensors' bytes.
// Source: the format's own description (huggingface/safetensors README).

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.hpp"
#include "tensor/view.hpp"

namespace fivefold::checkpoint {

// One tensor of a file, still on disk (mapped).
struct StoredTensor {
  std::string dtype;  // "F32", "F64", "BF16", "F16", "I64", …
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
  int64_t count() const;
};

// A mapped file whose header was checked whole: lengths within the file, offsets in order without
// gaps or overlaps, byte counts equal to shape times dtype.
// Errors   invalid_input with the file, the tensor and what is wrong (truncated, foreign, a header
//          longer than the file, duplicate names).
class SafetensorsFile {
 public:
  static Result<SafetensorsFile> open(const Path& path);
  static Result<SafetensorsFile> parse(std::span<const std::byte> bytes, const std::string& name);
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // Everything after the header: the tensors' bytes in the order of the file.
  std::span<const std::byte> data() const { return data_; }

 private:
  MappedFile file_;
  std::span<const std::byte> data_;
  std::map<std::string, StoredTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

struct TensorToStore {
  std::string name;
  ConstView view;              // f32, f64, bf16, i32, i64; flat
  std::vector<int64_t> shape;  // as it is to be written (any rank)
};

// Writes all tensors, in the order given, durably (DurableFile): the old file or the new one.
// Errors   io.
Status write_safetensors(const Path& path, std::span<const TensorToStore> tensors,
                         const std::map<std::string, std::string>& metadata);

// What the header says of one tensor.
struct TensorHeader {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
};

// The same for tensors that are made one at a time (converted, transposed), so that a model is
// never held twice: `make(i)` gives tensor i, valid until the next call.
// Errors   io, or what `make` returns; the old file stays.
Status write_safetensors(const Path& path, std::span<const TensorHeader> headers,
                         const std::map<std::string, std::string>& metadata,
                         const std::function<Result<ConstView>(size_t)>& make);

// The format's name of a dtype ("F32", "BF16", …).
std::string_view stored_name_of(DType dtype);

// Copies (and converts: F32, F64, BF16, F16 to f32, f64, bf16) a stored tensor's elements into
// `to`. F16 and BF16 to f32 or f64 are exact; narrowing rounds to nearest, ties to even. I32 and
// I64 are copied to their own kind.
// Requires `to` contiguous.
// Errors   invalid_input: element counts differ, unknown dtype, or a value that is NaN, Inf or too
//          large for the narrower type, with its name and index.
Status read_into(const StoredTensor& from, const std::string& name, View to);

}  // namespace fivefold::checkpoint
