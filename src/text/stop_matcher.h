/// Stop strings, found in text whatever the tokens are.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holmes::text {

/// The automaton of one request's stop strings (Aho and Corasick 1975). Immutable, shared by the
/// request's samples.
class StopSet {
 public:
  /// Empty strings are ignored. Cost: the strings' total length.
  explicit StopSet(std::vector<std::string> strings);
  bool empty() const { return strings_.empty(); }
  const std::vector<std::string>& strings() const { return strings_; }

 private:
  friend class StopMatcher;
  struct Edge {
    unsigned char byte;
    int target;
  };
  struct Node {
    std::vector<Edge> edges;
    int fallback = 0;
    int depth = 0;   // bytes of a stop string that have matched
    int match = -1;  // the longest stop string that ends here
  };
  int Step(int node, unsigned char byte) const;

  std::vector<std::string> strings_;
  std::vector<Node> nodes_;
};

/// Feeds text through a StopSet. One per sample; one thread at a time. Borrows the set.
/// Invariants: nothing of a stop string is ever given out; text is held back only while it is a
/// prefix of one. The match that ends first wins; of those that end together the longest.
class StopMatcher {
 public:
  explicit StopMatcher(const StopSet& set) : set_(set) {}

  /// Text that can be given out now. After a match, all that follows is dropped.
  std::string Push(std::string_view text);
  /// What is still held back, at the end of a text that was not stopped.
  std::string Flush();
  /// The stop string that ended the text.
  const std::optional<std::string>& matched() const { return matched_; }
  std::size_t held_bytes() const { return held_.size(); }

 private:
  const StopSet& set_;
  int node_ = 0;
  std::string held_;
  std::optional<std::string> matched_;
};

}  // namespace holmes::text
