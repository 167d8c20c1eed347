// How often rows share a leaf with each item: lists of items are counted one by one, bit sets 512 items at a time.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "forest_bitcount.hpp"
#include "leaf_index.hpp"
#include "leaf_lists.hpp"
#include "prefetch.hpp"

namespace hetcal {

// The rows of a call, and the index that they are compared with.
struct Rows {
    Rows(const Checks &check, const LeafIndex &index, const MatrixIn<std::int32_t> &leaves,
         const VectorIn<double> &denominator, const std::optional<VectorIn<std::int32_t>> &left_out,
         const std::optional<VectorIn<std::int32_t>> &groups)
        : index(index), leaves(leaves.data()), n_rows(leaves.shape(0)), n_trees(leaves.shape(1)),
          denominator(denominator.data()), left_out(left_out ? left_out->data() : nullptr) {
        check.aligned(leaves, "leaves");
        check.length(n_trees, "trees", 0);
        check.indices(leaves.data(), leaves.size(), "leaves", index.n_leaves(), true);
        check.shape(denominator, "n_trees", {n_rows});
        check.values(denominator.data(), n_rows, "n_trees", "be more than 0", [](double n) { return n > 0; });
        if (!left_out) return;
        check.shape(*left_out, "left_out", {n_rows});
        check.indices(left_out->data(), n_rows, "left_out", index.n_items, true);
        if (!groups) return;
        check.shape(*groups, "groups", {index.n_items});
        check.indices(groups->data(), index.n_items, "groups", index.n_items);
        list_members(groups->data());
    }

    const LeafIndex &index;
    const std::int32_t *leaves;  // n_rows x n_trees, negative: this tree does not count for the row
    std::size_t n_rows, n_trees;
    const double *denominator;     // one per row
    const std::int32_t *left_out;  // the item, or group of items, that each row must not see (negative: none), or null

    // Calls visit(item) for every item that a row must not see.
    template <class Visit>
    void each_left_out(std::size_t row, Visit visit) const {
        if (left_out == nullptr || left_out[row] < 0) return;
        const std::size_t number = static_cast<std::size_t>(left_out[row]);
        if (group_start_.empty()) return visit(number);
        for (std::size_t m = group_start_[number]; m < group_start_[number + 1]; ++m) visit(members_[m]);
    }

    double denominator_of(std::size_t row, std::size_t item) const {
        return index.n_trees.empty() ? denominator[row] : index.n_trees[item];
    }

  private:
    void list_members(const std::int32_t *group) {
        group_start_.assign(index.n_items + 2, 0);  // one ahead, so that filling moves each start to its place
        members_.resize(index.n_items);
        for (std::size_t i = 0; i < index.n_items; ++i) ++group_start_[static_cast<std::size_t>(group[i]) + 2];
        for (std::size_t g = 2; g < group_start_.size(); ++g) group_start_[g] += group_start_[g - 1];
        for (std::size_t i = 0; i < index.n_items; ++i)
            members_[group_start_[static_cast<std::size_t>(group[i]) + 1]++] = i;
    }

    std::vector<std::size_t> group_start_, members_;  // the items of each group; empty where items stand alone
};

// How many leaves one row shares with each item, in a Count that holds the number of trees.
template <class Count>
class SharedLeaves {
  public:
    explicit SharedLeaves(const Rows &rows)
        : rows_(rows), n_blocks_(block_count(rows.index.n_items)), counts_(n_blocks_ * kItemsPerBlock),
          planes_(n_blocks_ * kPlanes * kWordsPerBlock), empty_(n_blocks_ * kWordsPerBlock, 0),
          listed_(rows.n_trees + 1), big_(rows.n_trees + 1) {
        if (sizeof(Count) > 1) partial_.resize(counts_.size());
    }

    const Count *load(std::size_t r) {
        find_leaves(r);
        std::fill(counts_.begin(), counts_.end(), Count(0));
        rows_.index.with_lists([&](const auto &lists) {
            each_batch(lists, listed_.data(), n_listed_, [&](const auto *items, std::size_t n) {
                for (std::size_t i = 0; i < n; ++i) ++counts_[static_cast<std::size_t>(items[i])];
            });
        });
        for (std::size_t first = 0; first < sets_.size(); first += kMostSets) count_sets(first);
        rows_.each_left_out(r, [&](std::size_t item) { counts_[item] = 0; });
        return counts();
    }

    const Count *counts() const { return counts_.data(); }

  private:
    // Leaves lie anywhere in memory: what will be read is asked for in good time. Which are big cannot be foreseen, so there is
    // no branch for it. Bit sets need a look at every item in the end, so they are taken where they hold as many.
    void find_leaves(std::size_t r) {
        constexpr std::size_t kAhead = 16;
        const LeafIndex &index = rows_.index;
        const std::int32_t *leaf = rows_.leaves + r * rows_.n_trees;
        std::size_t in_sets = 0, n_big = 0, n_listed = 0;
        for (std::size_t t = 0; t < rows_.n_trees; ++t) {
            if (t + kAhead < rows_.n_trees && leaf[t + kAhead] >= 0) prefetch(&index.as_big(leaf[t + kAhead]));
            if (leaf[t] < 0) continue;
            const std::size_t size = index.as_big(leaf[t]).size;
            listed_[n_listed] = big_[n_big] = leaf[t];
            n_listed += size == 0;
            n_big += size > 0;
            in_sets += size;
        }
        const bool as_sets = in_sets >= index.n_items;
        sets_.resize(as_sets ? n_big : 0);
        for (std::size_t i = 0; i < sets_.size(); ++i) sets_[i] = index.bits_of(big_[i]);
        if (!as_sets) std::copy_n(big_.begin(), n_big, listed_.begin() + static_cast<std::ptrdiff_t>(n_listed));
        n_listed_ = as_sets ? n_listed : n_listed + n_big;
    }

    // Adds what the sets from the first on hold, as many as the planes can count.
    void count_sets(std::size_t first) {
        const std::size_t n_sets = std::min(sets_.size() - first, kMostSets);
        int n_planes = 0;
        while ((n_sets >> n_planes) != 0) ++n_planes;
        batch_.assign(sets_.begin() + static_cast<std::ptrdiff_t>(first),
                      sets_.begin() + static_cast<std::ptrdiff_t>(first + n_sets));
        while (batch_.size() % 8 != 0) batch_.push_back(empty_.data());
        count_bit_sets(batch_.data(), batch_.size(), n_blocks_, planes_.data());
        add(n_planes, counts_.data());
    }

    void add(int n_planes, std::uint8_t *counts) { add_planes(planes_.data(), n_blocks_, n_planes, counts); }

    template <class Wide>
    void add(int n_planes, Wide *counts) {
        std::fill(partial_.begin(), partial_.end(), std::uint8_t(0));
        add_planes(planes_.data(), n_blocks_, n_planes, partial_.data());
        for (std::size_t i = 0; i < partial_.size(); ++i) counts[i] = static_cast<Wide>(counts[i] + partial_[i]);
    }

    const Rows &rows_;
    std::size_t n_blocks_;
    std::vector<Count> counts_;
    std::vector<std::uint8_t> partial_;
    std::vector<std::uint64_t> planes_, empty_;
    std::vector<const std::uint64_t *> sets_, batch_;
    std::vector<std::int32_t> listed_, big_;  // leaves, of which the first n_listed_ count
    std::size_t n_listed_ = 0;
};

}  // namespace hetcal
