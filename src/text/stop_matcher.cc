#include "text/stop_matcher.h"

#include <queue>
#include <utility>

namespace holmes::text {

StopSet::StopSet(std::vector<std::string> strings) {
  for (std::string& s : strings) {
    if (!s.empty()) strings_.push_back(std::move(s));
  }
  nodes_.emplace_back();
  const auto child = [this](int node, unsigned char byte) {
    for (const Edge& edge : nodes_[static_cast<std::size_t>(node)].edges) {
      if (edge.byte == byte) return edge.target;
    }
    return -1;
  };
  for (std::size_t s = 0; s < strings_.size(); ++s) {
    int node = 0;
    for (const char c : strings_[s]) {
      const auto byte = static_cast<unsigned char>(c);
      int next = child(node, byte);
      if (next < 0) {
        next = static_cast<int>(nodes_.size());
        nodes_.push_back({.edges = {},
                          .fallback = 0,
                          .depth = nodes_[static_cast<std::size_t>(node)].depth + 1,
                          .match = -1});
        nodes_[static_cast<std::size_t>(node)].edges.push_back({byte, next});
      }
      node = next;
    }
    nodes_[static_cast<std::size_t>(node)].match = static_cast<int>(s);
  }
  // Breadth first: a node's fallback is shorter, so it is finished before.
  std::queue<int> todo;
  todo.push(0);
  while (!todo.empty()) {
    const int node = todo.front();
    todo.pop();
    for (const Edge& edge : nodes_[static_cast<std::size_t>(node)].edges) {
      Node& target = nodes_[static_cast<std::size_t>(edge.target)];
      target.fallback =
          node == 0 ? 0 : Step(nodes_[static_cast<std::size_t>(node)].fallback, edge.byte);
      if (target.match < 0) target.match = nodes_[static_cast<std::size_t>(target.fallback)].match;
      todo.push(edge.target);
    }
  }
}

int StopSet::Step(int node, unsigned char byte) const {
  while (true) {
    const Node& at = nodes_[static_cast<std::size_t>(node)];
    for (const Edge& edge : at.edges) {
      if (edge.byte == byte) return edge.target;
    }
    if (node == 0) return 0;
    node = at.fallback;
  }
}

std::string StopMatcher::Push(std::string_view text) {
  if (matched_) return "";
  if (set_.empty()) return std::string(text);
  for (const char c : text) {
    held_.push_back(c);
    node_ = set_.Step(node_, static_cast<unsigned char>(c));
    const int match = set_.nodes_[static_cast<std::size_t>(node_)].match;
    if (match < 0) continue;
    matched_ = set_.strings_[static_cast<std::size_t>(match)];
    held_.resize(held_.size() - matched_->size());
    return std::exchange(held_, "");
  }
  // All but the longest tail that begins a stop string.
  const auto keep = static_cast<std::size_t>(set_.nodes_[static_cast<std::size_t>(node_)].depth);
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, out.size());
  return out;
}

std::string StopMatcher::Flush() { return std::exchange(held_, ""); }

}  // namespace holmes::text
