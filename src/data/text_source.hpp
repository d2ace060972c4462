#pragma once
// Text of a run's sources, one document after the other.
//
// Read are single text files of any name, .jsonl files, and folders, walked recursively in the
// order of their paths, of which the files ending in .txt, .text, .md, .pod and .jsonl are taken
// and all others skipped. A file is one document as it stands (POD and Markdown markup included,
// and bytes that are not UTF-8 too); of a .jsonl file every line is one.

#include <functional>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "base/result.hpp"
#include "spec/run.hpp"

namespace fivefold::data {

// Views last until the sink returns.
struct Document {
  std::string_view prompt;  // bears no loss; empty for plain text
  std::string_view text;
  bool has_prompt = false;
};
using DocumentSink = std::function<Status(const Document&)>;

// The files that `source` stands for, in reading order.
// Errors   invalid_input: missing, no text in the folder, compressed.
Result<std::vector<Path>> list_text_files(const spec::DataSource& source);

// Calls `sink` for every document that is not empty, and stops at its first error.
// Errors   invalid_input: as list_text_files, and file:line of a damaged JSON line.
Status read_documents(const spec::DataSource& source, const DocumentSink& sink);

// The documents of one .jsonl file's text; `name` is for messages.
Status read_json_lines(std::string_view text, const std::string& name, const spec::DataSource& keys,
                       const DocumentSink& sink);

}  // namespace fivefold::data
