/// A device made of strings of hashes: it checks that what a row reads is what was computed for it,
/// and draws tokens that depend on all of it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

#include "kvcache/kv_manager.h"
#include "sched/step_plan.h"

namespace holmes::sched {

inline std::uint64_t Mix(std::uint64_t h, std::uint64_t value) {
  h = (h ^ value) * 0x9E3779B97F4A7C15ULL;
  return h ^ (h >> 29);
}

/// The token that follows `history` in a vocabulary of `vocab` tokens.
inline TokenId NextToken(std::span<const TokenId> history,
                         std::uint64_t seed,
                         int sample_index,
                         int vocab) {
  std::uint64_t h = Mix(seed, static_cast<std::uint64_t>(sample_index));
  for (const TokenId token : history) h = Mix(h, static_cast<std::uint64_t>(token) + 1);
  return static_cast<TokenId>(h % static_cast<std::uint64_t>(vocab));
}

class FakeExecutor {
 public:
  FakeExecutor(const std::vector<kvcache::GroupOptions>& groups, int vocab)
      : groups_(groups), vocab_(vocab) {
    for (const auto& group : groups) {
      slots_.emplace_back(
          static_cast<std::size_t>(group.num_blocks) * static_cast<std::size_t>(group.block_tokens),
          0);
    }
  }

  StepResult Execute(const StepPlan& plan) {
    StepResult result{.step = plan.step};
    for (const BlockCopy& copy : plan.copies) {
      const int block_tokens = groups_[static_cast<std::size_t>(copy.kv_group)].block_tokens;
      for (int i = 0; i < block_tokens; ++i) {
        Slot(copy.kv_group, copy.to, i) = Slot(copy.kv_group, copy.from, i);
      }
    }
    for (const PlanRow& row : plan.rows) result.rows.push_back(ExecuteRow(row));
    CheckNobodyWritesWhereAnotherReads(plan);
    return result;
  }
  /// How often each position was computed.
  const std::map<SequenceId, std::vector<int>>& computed() const { return computed_; }
  /// No more computed(), and so memory that does not grow with the sequences.
  void StopCounting() { counts_ = false; }

 private:
  RowResult ExecuteRow(const PlanRow& row) {
    EXPECT_EQ(static_cast<int>(row.tokens.size()), row.num_tokens);
    EXPECT_EQ(row.tables.size(), groups_.size());
    std::vector<std::uint64_t> prefix;  // element p: hash of history[0..p]
    std::uint64_t h = 1;
    for (const TokenId token : row.history)
      prefix.push_back(h = Mix(h, static_cast<std::uint64_t>(token) + 1));
    std::vector<int> uncounted;
    std::vector<int>& counts = counts_ ? computed_[row.sequence] : uncounted;
    counts.resize(std::max(counts.size(), row.history.size()), 0);
    for (int i = 0; i < row.num_tokens; ++i) {
      const auto p = static_cast<std::size_t>(row.first_position + i);
      EXPECT_EQ(row.tokens[static_cast<std::size_t>(i)], row.history[p]);
      ++counts[p];
    }
    for (const BlockTable& table : row.tables) {
      for (int p = 0; p < row.first_position + row.num_tokens; ++p) {
        const int block_tokens = groups_[static_cast<std::size_t>(table.kv_group)].block_tokens;
        std::uint64_t& slot = Slot(table.kv_group,
                                   table.blocks[static_cast<std::size_t>(p / block_tokens)],
                                   p % block_tokens);
        if (p >= row.first_position) slot = prefix[static_cast<std::size_t>(p)];
        EXPECT_EQ(slot, prefix[static_cast<std::size_t>(p)])
            << "sequence " << row.sequence.value << " position " << p;
      }
    }
    RowResult out{.sequence = row.sequence};
    if (row.sample) {
      EXPECT_EQ(row.first_position + row.num_tokens, static_cast<int>(row.history.size()));
      out.tokens.push_back(
          {.id = NextToken(row.history, row.sampling->seed, row.sample_index, vocab_)});
    }
    return out;
  }

  void CheckNobodyWritesWhereAnotherReads(const StepPlan& plan) {
    std::map<std::pair<int, BlockId>, SequenceId> writers;
    for (const PlanRow& row : plan.rows) {
      for (const BlockTable& table : row.tables) {
        const int block_tokens = groups_[static_cast<std::size_t>(table.kv_group)].block_tokens;
        for (auto i = static_cast<std::size_t>(row.first_position / block_tokens);
             i < table.blocks.size();
             ++i) {
          EXPECT_TRUE(
              writers.emplace(std::pair(table.kv_group, table.blocks[i]), row.sequence).second)
              << "two writers of a block";
        }
      }
    }
    for (const PlanRow& row : plan.rows) {
      for (const BlockTable& table : row.tables) {
        for (const BlockId block : table.blocks) {
          const auto writer = writers.find({table.kv_group, block});
          EXPECT_TRUE(writer == writers.end() || writer->second == row.sequence)
              << "a shared block is written";
        }
      }
    }
  }

  std::uint64_t& Slot(int group, BlockId block, int offset) {
    const auto g = static_cast<std::size_t>(group);
    return slots_[g][static_cast<std::size_t>(block.value * groups_[g].block_tokens + offset)];
  }

  std::vector<kvcache::GroupOptions> groups_;
  int vocab_;
  std::vector<std::vector<std::uint64_t>> slots_;  // by group; block * block_tokens + offset
  bool counts_ = true;
  std::map<SequenceId, std::vector<int>> computed_;
};

}  // namespace holmes::sched
