#include "app/warm_up.h"

#include <algorithm>
#include <future>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

namespace holmes::app {
namespace {

constexpr int kPromptTokens = 96;
constexpr int kNewTokens = 4;

Status Answer(engine::Engine& engine, engine::Request request) {
  auto done = std::make_shared<std::promise<Status>>();
  std::future<Status> answered = done->get_future();
  HOLMES_RETURN_IF_ERROR(
      engine
          .Submit(std::move(request),
                  [done](engine::Event&& event) {
                    if (auto* error = std::get_if<engine::ErrorEvent>(&event)) {
                      done->set_value(std::move(error->status));
                    } else if (const auto* finish = std::get_if<engine::FinishEvent>(&event)) {
                      done->set_value(finish->reason == engine::FinishReason::kCancelled
                                          ? base::CancelledError("the engine was stopped")
                                          : OkStatus());
                    }
                  })
          .status());
  return answered.get();
}

/// Ordinary text over and over, at most `count` tokens.
std::vector<TokenId> PromptOf(const engine::Engine& engine, std::size_t count) {
  const std::vector<TokenId> ids =
      engine.tokenizer().Encode("The quick brown fox, aged 42, isn't in a hurry.\n", {});
  std::vector<TokenId> prompt;
  for (std::size_t i = 0; i < count; ++i) prompt.push_back(ids.empty() ? 0 : ids[i % ids.size()]);
  return prompt;
}

}  // namespace

Status WarmUp(engine::Engine& engine) {
  const int room = engine.model().context_tokens;
  const int new_tokens = std::clamp(room / 2, 1, kNewTokens);
  const int prompt_tokens = std::clamp(room - new_tokens, 1, kPromptTokens);
  for (const float temperature : {0.0F, 1.0F}) {
    engine::Request request;
    request.prompt = PromptOf(engine, static_cast<std::size_t>(prompt_tokens));
    request.sampling.temperature = temperature;
    request.sampling.top_p = temperature > 0 ? 0.9F : 1.0F;
    request.sampling.logprobs = temperature > 0;
    request.seed = 0;
    request.max_tokens = new_tokens;
    request.ignore_eos = true;
    // Different ones, none of them a client's: the second prompt is computed too, and no client's
    // is found in the cache because of these.
    request.cache_salt = temperature > 0 ? "warm-up 2" : "warm-up 1";
    HOLMES_RETURN_IF_ERROR(Answer(engine, std::move(request)));
  }
  return OkStatus();
}

}  // namespace holmes::app
