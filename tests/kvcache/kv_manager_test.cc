#include "kvcache/kv_manager.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace holmes::kvcache {
namespace {

std::unique_ptr<KvManager> Make(int num_blocks,
                                int block_tokens,
                                bool prefix_reuse = false,
                                int num_groups = 1) {
  KvOptions options{.groups = {}, .prefix_reuse = prefix_reuse};
  for (int g = 0; g < num_groups; ++g)
    options.groups.push_back({.num_blocks = num_blocks, .block_tokens = block_tokens});
  auto made = KvManager::Create(options);
  EXPECT_TRUE(made.ok()) << made.status().ToString();
  return *std::move(made);
}

std::vector<TokenId> Iota(int count, int from = 0) {
  std::vector<TokenId> ids(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) ids[static_cast<std::size_t>(i)] = from + i;
  return ids;
}

TEST(KvManagerTest, RefusesOptionsThatCannotWork) {
  EXPECT_EQ(KvManager::Create({}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(KvManager::Create({.groups = {{.num_blocks = 0, .block_tokens = 4}}}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(KvManager::Create({.groups = {{.num_blocks = 4, .block_tokens = 4},
                                          {.num_blocks = 4, .block_tokens = 8}},
                               .prefix_reuse = true})
                .status()
                .code(),
            StatusCode::kInvalidArgument);
}

TEST(KvManagerTest, ReservesAllGroupsOrNothing) {
  auto made = KvManager::Create(
      {.groups = {{.num_blocks = 8, .block_tokens = 2}, {.num_blocks = 2, .block_tokens = 4}}});
  KvManager& kv = **made;
  kv.Add(SequenceId{1}, "");
  std::vector<Copy> copies;
  EXPECT_FALSE(kv.TryReserve(SequenceId{1}, 0, 9, 0, copies));  // fits group 0 only
  EXPECT_TRUE(kv.table(SequenceId{1}, 0).empty());
  EXPECT_TRUE(kv.TryReserve(SequenceId{1}, 0, 8, 0, copies));
  EXPECT_EQ(kv.table(SequenceId{1}, 0).size(), 4U);
  EXPECT_EQ(kv.table(SequenceId{1}, 1).size(), 2U);
  EXPECT_EQ(kv.capacity_tokens(), 8);
  kv.Free(SequenceId{1});
  EXPECT_EQ(kv.stats(0).free, 8);
}

TEST(KvManagerTest, SpareBlocksAreLeftAlone) {
  auto kv = Make(4, 2);
  kv->Add(SequenceId{1}, "");
  std::vector<Copy> copies;
  EXPECT_FALSE(kv->TryReserve(SequenceId{1}, 0, 6, 2, copies));
  EXPECT_TRUE(kv->TryReserve(SequenceId{1}, 0, 6, 1, copies));
  EXPECT_TRUE(
      kv->TryReserve(SequenceId{1}, 5, 6, 9, copies));  // needs nothing, so nothing is refused
  kv->Free(SequenceId{1});
}

TEST(KvManagerTest, FirstWriteIntoASharedBlockCopiesItForAllButTheLast) {
  auto kv = Make(8, 4);
  std::vector<Copy> copies;
  kv->Add(SequenceId{1}, "");
  ASSERT_TRUE(kv->TryReserve(SequenceId{1}, 0, 6, 0, copies));
  for (std::uint64_t child = 2; child <= 3; ++child) {
    kv->Add(SequenceId{child}, "");
    kv->Fork(SequenceId{1}, SequenceId{child}, 5);
  }
  EXPECT_EQ(kv->stats(0).held, 2);
  const BlockId shared = kv->table(SequenceId{1}, 0)[1];
  ASSERT_TRUE(kv->TryReserve(SequenceId{1}, 6, 7, 0, copies));
  ASSERT_EQ(copies.size(), 1U);
  EXPECT_EQ(copies[0].from, shared);
  EXPECT_EQ(copies[0].to, kv->table(SequenceId{1}, 0)[1]);
  ASSERT_TRUE(kv->TryReserve(SequenceId{2}, 5, 6, 0, copies));
  ASSERT_TRUE(kv->TryReserve(SequenceId{3}, 5, 6, 0, copies));
  EXPECT_EQ(copies.size(), 2U);  // the last holder writes in place
  EXPECT_EQ(kv->table(SequenceId{3}, 0)[1], shared);
  EXPECT_EQ(kv->stats(0).held, 4);  // one full block for all, one partial each
  EXPECT_TRUE(kv->CheckIntegrity().ok());
  for (std::uint64_t id = 1; id <= 3; ++id) kv->Free(SequenceId{id});
}

TEST(KvManagerTest, PrefixIsFoundInFullBlocksAndLeavesOneTokenToCompute) {
  auto kv = Make(8, 4, true);
  std::vector<Copy> copies;
  const std::vector<TokenId> text = Iota(9);
  kv->Add(SequenceId{1}, "a");
  ASSERT_TRUE(kv->TryReserve(SequenceId{1}, 0, 9, 0, copies));
  kv->Seal(SequenceId{1}, text);
  for (int length = 1; length <= 9; ++length) {
    const std::span<const TokenId> prompt(text.data(), static_cast<std::size_t>(length));
    EXPECT_EQ(kv->MatchPrefix("a", prompt), (length - 1) / 4 * 4) << length;
    EXPECT_EQ(kv->MatchPrefix("b", prompt), 0);
  }
  kv->Free(SequenceId{1});
  EXPECT_EQ(kv->stats(0).cached, 2);
  EXPECT_EQ(kv->stats(0).free, 6);
  kv->Add(SequenceId{2}, "a");
  EXPECT_EQ(kv->AdoptPrefix(SequenceId{2}, text), 8);
  EXPECT_EQ(kv->stats(0).held, 2);
  EXPECT_TRUE(kv->CheckIntegrity().ok());
  kv->Free(SequenceId{2});
}

TEST(KvManagerTest, EvictsTheOldestChainFromItsEnd) {
  auto kv = Make(4, 2, true);
  std::vector<Copy> copies;
  kv->Add(SequenceId{1}, "");
  ASSERT_TRUE(kv->TryReserve(SequenceId{1}, 0, 6, 0, copies));
  kv->Seal(SequenceId{1}, Iota(6));
  kv->Free(SequenceId{1});
  kv->Add(SequenceId{2}, "");
  ASSERT_TRUE(kv->TryReserve(SequenceId{2}, 0, 4, 0, copies));  // one free block, one evicted
  EXPECT_EQ(kv->MatchPrefix("", Iota(7)), 4);
  EXPECT_TRUE(kv->CheckIntegrity().ok());
  kv->Free(SequenceId{2});
}

std::uint64_t AlwaysEqual(PrefixIndex::Serial, std::span<const TokenId>) { return 7; }

TEST(KvManagerTest, EqualHashesOfDifferentTextsNeverShare) {
  auto made = KvManager::Create({.groups = {{.num_blocks = 32, .block_tokens = 2}},
                                 .prefix_reuse = true,
                                 .hash = &AlwaysEqual});
  KvManager& kv = **made;
  std::vector<Copy> copies;
  for (std::uint64_t id = 0; id < 4; ++id) {
    kv.Add(SequenceId{id}, id < 2 ? "tenant a" : "tenant b");
    ASSERT_TRUE(kv.TryReserve(SequenceId{id}, 0, 4, 0, copies));
    kv.Seal(SequenceId{id}, Iota(4, static_cast<int>(10 * (id % 2))));
  }
  EXPECT_EQ(kv.MatchPrefix("tenant a", Iota(5)), 4);
  EXPECT_EQ(kv.MatchPrefix("tenant a", Iota(5, 1)), 0);
  EXPECT_EQ(kv.MatchPrefix("tenant c", Iota(5)), 0);
  kv.Add(SequenceId{9}, "tenant b");
  EXPECT_EQ(kv.AdoptPrefix(SequenceId{9}, Iota(5)), 4);
  EXPECT_EQ(kv.table(SequenceId{9}, 0)[0], kv.table(SequenceId{2}, 0)[0]);
  for (const std::uint64_t id : {0, 1, 2, 3, 9}) kv.Free(SequenceId{id});
  EXPECT_TRUE(kv.CheckIntegrity().ok());
}

/// What every block holds, written the naive way: the token at each of its slots with all that came
/// before it.
class KvHistory {
 public:
  KvHistory(int num_blocks, int block_tokens, int num_groups, bool prefix_reuse, std::uint32_t seed)
      : block_tokens_(block_tokens),
        num_groups_(num_groups),
        random_(seed),
        kv_(Make(num_blocks, block_tokens, prefix_reuse, num_groups)) {
    content_.assign(static_cast<std::size_t>(num_groups),
                    std::vector<std::vector<std::string>>(static_cast<std::size_t>(num_blocks)));
    for (auto& group : content_) {
      for (auto& block : group) block.resize(static_cast<std::size_t>(block_tokens));
    }
  }

  void Step() {
    const int what = Uniform(0, 9);
    if (texts_.empty() || what <= 1) {
      AddOne();
    } else if (what <= 6) {
      Extend(Any());
    } else if (what == 7) {
      ForkOne(Any());
    } else if (what == 8) {
      const SequenceId id = Any();
      kv_->Free(id);
      texts_.erase(id);
    } else {
      const SequenceId id = Any();
      kv_->Drop(id);
      texts_[id].computed = 0;
    }
    const Status integrity = kv_->CheckIntegrity();
    ASSERT_TRUE(integrity.ok()) << integrity.ToString();
    for (const auto& [id, text] : texts_) CheckContent(id);
  }

  void Finish() {
    for (const auto& [id, text] : texts_) kv_->Free(id);
    texts_.clear();
    for (int g = 0; g < num_groups_; ++g) EXPECT_EQ(kv_->stats(g).held, 0);
    EXPECT_TRUE(kv_->CheckIntegrity().ok());
  }
  int adopted() const { return adopted_; }
  int copied() const { return copied_; }

 private:
  struct Text {
    std::string name_space;
    std::vector<TokenId> tokens;
    int computed = 0;
  };
  int Uniform(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  SequenceId Any() {
    return std::next(texts_.begin(), Uniform(0, static_cast<int>(texts_.size()) - 1))->first;
  }

  void AddOne() {
    const SequenceId id{next_++};
    Text text{.name_space = Uniform(0, 1) == 0 ? "a" : "b", .tokens = {}};
    for (int i = Uniform(1, 12); i > 0; --i) text.tokens.push_back(Uniform(0, 1));
    kv_->Add(id, text.name_space);
    texts_[id] = text;
  }

  void Extend(SequenceId id) {
    Text& text = texts_[id];
    if (text.computed == 0 && kv_->table(id, 0).empty()) {
      text.computed = kv_->AdoptPrefix(id, text.tokens);
      adopted_ += text.computed;
    }
    if (text.computed == static_cast<int>(text.tokens.size())) text.tokens.push_back(Uniform(0, 1));
    const int until = Uniform(text.computed + 1, static_cast<int>(text.tokens.size()));
    std::vector<Copy> copies;
    if (!kv_->TryReserve(id, text.computed, until, 0, copies)) return;
    for (const Copy& copy : copies) Block(copy.group, copy.to) = Block(copy.group, copy.from);
    copied_ += static_cast<int>(copies.size());
    for (int g = 0; g < num_groups_; ++g) {
      for (int p = text.computed; p < until; ++p) Slot(id, g, p) = Expected(text, p);
    }
    text.computed = until;
    kv_->Seal(id, std::span<const TokenId>(text.tokens).first(static_cast<std::size_t>(until)));
  }

  void ForkOne(SequenceId parent) {
    const SequenceId child{next_++};
    Text text = texts_[parent];
    const int shared = Uniform(0, text.computed);
    kv_->Add(child, text.name_space);
    kv_->Fork(parent, child, shared);
    text.computed = shared;
    if (text.tokens.empty()) text.tokens.push_back(0);
    texts_[child] = text;
  }

  std::vector<std::string>& Block(int g, BlockId id) {
    return content_[static_cast<std::size_t>(g)][static_cast<std::size_t>(id.value)];
  }
  std::string& Slot(SequenceId id, int g, int position) {
    const BlockId block = kv_->table(id, g)[static_cast<std::size_t>(position / block_tokens_)];
    return Block(g, block)[static_cast<std::size_t>(position % block_tokens_)];
  }
  static std::string Expected(const Text& text, int position) {
    std::string all = text.name_space;
    for (int p = 0; p <= position; ++p)
      all += static_cast<char>('0' + text.tokens[static_cast<std::size_t>(p)]);
    return all;
  }
  void CheckContent(SequenceId id) {
    const Text& text = texts_[id];
    for (int g = 0; g < num_groups_; ++g) {
      for (int p = 0; p < text.computed; ++p)
        ASSERT_EQ(Slot(id, g, p), Expected(text, p))
            << "sequence " << id.value << " position " << p;
    }
  }

  const int block_tokens_;
  const int num_groups_;
  std::mt19937 random_;
  std::unique_ptr<KvManager> kv_;
  std::vector<std::vector<std::vector<std::string>>> content_;  // group, block, slot
  std::map<SequenceId, Text> texts_;
  std::uint64_t next_ = 1;
  int adopted_ = 0;
  int copied_ = 0;
};

TEST(KvManagerPropertyTest, EverySequenceFindsItsOwnContentAfterAnyHistory) {
  int adopted = 0;
  int copied = 0;
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    KvHistory history(seed % 2 == 0 ? 12 : 60,
                      1 + static_cast<int>(seed % 4),
                      1 + static_cast<int>(seed % 3),
                      seed % 4 != 3,
                      seed);
    for (int step = 0; step < 1500; ++step) {
      history.Step();
      ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed << " step " << step;
    }
    history.Finish();
    adopted += history.adopted();
    copied += history.copied();
  }
  EXPECT_GT(adopted, 100);
  EXPECT_GT(copied, 100);
}

}  // namespace
}  // namespace holmes::kvcache
