/// Unicode normal forms.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holmes::text {

enum class NormalForm : std::uint8_t { kNone, kNfc, kNfkc };

/// Precondition: valid UTF-8. Characters that Unicode 15 does not know stay as they are.
/// Cost: n log n at worst (a run of combining marks is sorted), a scan for text that is composed
/// already. Source: Unicode Standard Annex 15.
std::string Normalize(std::string_view utf8, NormalForm form);

}  // namespace holmes::text
