/// The requests that an engine answers before its first client's.
#pragma once

#include "base/status.h"
#include "engine/engine.h"

namespace holmes::app {

/// Answers a few short requests of the kinds that clients send (greedy, and drawn with logprobs),
/// so that pages, caches and lazily built tables are warm: the first client finds the engine as
/// fast as the second does. Blocks until they are answered. Errors: those of Engine::Submit and of
/// the answers.
Status WarmUp(engine::Engine& engine);

}  // namespace holmes::app
