/// Names from outside files as they may appear in a message.
#pragma once

#include <string>
#include <string_view>

namespace holmes::weights {

/// `text` in quotes, at most 80 bytes of it, everything outside printable ASCII as \xNN: a hostile
/// name must not garble a terminal or log.
std::string Quoted(std::string_view text);

}  // namespace holmes::weights
