/// GPT-2's printable stand-ins for bytes: a byte that prints stands for itself, the others take
/// U+0100 and up in order. Source: Radford et al. 2019, encoder.py of the GPT-2 release (the
/// mapping, not the code).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace holmes::text {

/// The stand-in of each byte as UTF-8.
const std::array<std::string, 256>& ByteAlphabet();

/// The bytes that a token of the alphabet stands for; empty when a character is not of it.
std::optional<std::string> BytesOfAlphabet(std::string_view token);

}  // namespace holmes::text
