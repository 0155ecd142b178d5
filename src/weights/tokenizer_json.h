/// Hugging Face's tokenizer.json as a VocabSpec. Source: the `tokenizers` library's serialisation
/// of its pipeline (normalizer, pre_tokenizer, model, post_processor, added_tokens).
#pragma once

#include <string_view>

#include "base/status.h"
#include "text/vocab_spec.h"

namespace holmes::weights {

/// Reads byte-level BPE pipelines: normalizer none, NFC or NFKC; pre_tokenizer ByteLevel, Split
/// (Isolated or Removed), Digits and sequences of them, ByteLevel last; post_processor ByteLevel or
/// a template that puts BOS first and EOS last; decoder ByteLevel or none. Errors: kUnimplemented
/// that names another step; kDataLoss for a field that is missing, of a wrong kind or out of range.
/// Messages have no file name.
StatusOr<text::VocabSpec> ReadTokenizerJson(std::string_view json);

}  // namespace holmes::weights
