/// Which control tokens end a generation by what they are called.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace holmes::weights {

/// True for the texts that the common chat formats end a turn or a document with ("<|im_end|>",
/// "</s>" ...). Files often name only one of a model's several end tokens, so a control token of
/// this name counts as well; an ordinary token that merely reads the same does not.
bool IsWellKnownEndText(std::string_view token_text);

/// Ascending, without duplicates.
std::vector<TokenId> SortedUnique(std::vector<TokenId> ids);

}  // namespace holmes::weights
