/// One sample's tokens as text that may be sent.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/request.h"
#include "text/detokenizer.h"
#include "text/stop_matcher.h"

namespace holmes::engine {

/// Invariants: the text of all chunks concatenates to the decoded tokens up to the first stop
/// string; nothing of a stop string is in it; each chunk is whole characters. A token's logprobs
/// come with the chunk that completes its text; a token that lies wholly in what a stop string cut
/// off has none. The bytes in logprobs entries are those of the text: empty for a hidden special
/// token. One thread at a time. Borrows tokenizer and stop set.
class SampleOutput {
 public:
  struct Options {
    bool skip_special_tokens = true;
    bool logprobs = false;
  };
  struct Chunk {
    std::vector<TokenId> ids;
    std::string text;
    std::vector<TokenLogprobs> logprobs;
  };
  /// A character that the prompt ends inside of is given out whole when the first tokens complete
  /// it; nothing else of the prompt is. `prompt_tail` is the prompt's
  /// end: all of it, or its last four bytes of text or more.
  SampleOutput(const text::Tokenizer& tokenizer,
               const text::StopSet& stops,
               Options options,
               std::span<const TokenId> prompt_tail)
      : tokenizer_(tokenizer),
        options_(options),
        detokenizer_(tokenizer, options.skip_special_tokens),
        matcher_(stops) {
    detokenizer_.Prime(prompt_tail);
  }

  /// Appends what the token adds to `out`. Precondition: no stop string has matched.
  void Push(const sched::SampledToken& token, Chunk& out);
  /// A token that ends the sample: it counts, but is no text.
  void PushEnd(const sched::SampledToken& token, Chunk& out);
  /// Appends what was held back. Call once, at the end, also after a match.
  void Finish(Chunk& out);

  /// The stop string that ended the text.
  const std::optional<std::string>& matched_stop() const { return matcher_.matched(); }
  int num_tokens() const { return num_tokens_; }

 private:
  /// A token's logprobs until its text is out. Positions are in the decoded text.
  struct Held {
    TokenLogprobs entry;
    std::size_t begin = 0;
    std::optional<std::size_t> end;  // unset while its last character is incomplete
  };
  void Give(const std::string& piece, Chunk& out);
  TokenText Describe(TokenId id, float logprob) const;

  const text::Tokenizer& tokenizer_;
  const Options options_;
  text::Detokenizer detokenizer_;
  text::StopMatcher matcher_;
  std::deque<Held> held_;
  std::size_t decoded_ = 0;  // bytes of text so far
  std::size_t given_ = 0;    // of them in chunks
  int num_tokens_ = 0;
};

}  // namespace holmes::engine
