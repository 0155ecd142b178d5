#include "engine/sample_output.h"

#include <utility>

namespace holmes::engine {

TokenText SampleOutput::Describe(TokenId id, float logprob) const {
  const bool hidden = options_.skip_special_tokens && tokenizer_.IsSpecial(id);
  return {.id = id,
          .bytes = hidden ? std::string() : std::string(tokenizer_.TokenBytes(id)),
          .logprob = logprob};
}

void SampleOutput::PushEnd(const sched::SampledToken& token, Chunk& out) {
  ++num_tokens_;
  out.ids.push_back(token.id);
}

void SampleOutput::Push(const sched::SampledToken& token, Chunk& out) {
  ++num_tokens_;
  out.ids.push_back(token.id);
  if (options_.logprobs) {
    Held held{.entry = {.token = Describe(token.id, token.logprob), .top = {}},
              .begin = decoded_,
              .end = std::nullopt};
    for (const sched::TokenLogprob& top : token.top_logprobs)
      held.entry.top.push_back(Describe(top.id, top.logprob));
    held_.push_back(std::move(held));
  }
  const std::string piece = detokenizer_.Push(token.id);
  decoded_ += piece.size();
  // Text comes out in order: whatever comes out now completes the characters that earlier tokens
  // began.
  for (auto held = held_.rbegin(); held != held_.rend() && !held->end; ++held) {
    const bool is_new = held == held_.rbegin();
    if (is_new ? !detokenizer_.holds_bytes() : !piece.empty()) held->end = decoded_;
  }
  Give(piece, out);
}

void SampleOutput::Finish(Chunk& out) {
  if (!matched_stop()) {
    const std::string rest = detokenizer_.Flush();
    decoded_ += rest.size();
    for (Held& held : held_) {
      if (!held.end) held.end = decoded_;
    }
    Give(rest, out);
  }
  if (!matched_stop()) {
    const std::string rest = matcher_.Flush();
    given_ += rest.size();
    out.text += rest;
    Give("", out);
  }
}

void SampleOutput::Give(const std::string& piece, Chunk& out) {
  const std::string text = matcher_.Push(piece);
  given_ += text.size();
  out.text += text;
  while (!held_.empty()) {
    Held& first = held_.front();
    const bool complete = first.end && *first.end <= given_;
    const bool cut =
        matched_stop() && first.begin < given_;  // by the stop string: some of its text is out
    if (!complete && !cut) break;
    out.logprobs.push_back(std::move(first.entry));
    held_.pop_front();
  }
  if (matched_stop()) held_.clear();
}

}  // namespace holmes::engine
