/// The vocabulary in GGUF metadata (tokenizer.ggml.*) as plain data.
#pragma once

#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "text/vocab_spec.h"
#include "weights/gguf.h"

namespace holmes::weights {

/// Cost: linear; copies every token and merge.
/// Errors: kNotFound (no vocabulary in the file), kDataLoss (arrays of wrong kind or length, ids
/// out of range, malformed merges), kUnimplemented (a tokenizer model or pre-tokenizer that is not
/// known, by name). `file_name` is used in messages only.
StatusOr<text::VocabSpec> ReadGgufVocab(const GgufFile& file, std::string_view file_name);

/// The ids that end a generation: the named ones (eos, eot, eom) and control tokens with a
/// well-known end text. Ascending; empty when the file has no vocabulary. Errors: kDataLoss for an
/// id out of range.
StatusOr<std::vector<TokenId>> ReadGgufEndIds(const GgufFile& file, std::string_view file_name);

}  // namespace holmes::weights
