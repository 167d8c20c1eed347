// The items of every leaf of a forest, in the forms in which they are counted.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "checks.hpp"
#include "forest_arrays.hpp"
#include "forest_bitcount.hpp"
#include "forest_index.hpp"
#include "leaf_lists.hpp"

namespace hetcal {

constexpr std::size_t kItemsPerBlock = 64 * kWordsPerBlock;

inline std::size_t block_count(std::size_t n_items) { return (n_items + kItemsPerBlock - 1) / kItemsPerBlock; }

// The items of every leaf, as lists and, where they are many, as bit sets. What counting relies on is proven when the
// index is made and cannot be changed afterwards: items exist, and lie in a leaf once.
class LeafIndex {
  public:
    LeafIndex(VectorIn<std::int64_t> starts, VectorIn<std::int32_t> listed, std::int64_t n_items,
              std::optional<VectorIn<double>> trees)
        : n_items(check_.count(n_items, "n_items")) {
        check_.aligned(starts, "indptr");
        check_.aligned(listed, "items");
        check_.starts(starts.data(), starts.shape(0), "indptr", listed.shape(0));
        check_.length(starts.shape(0) - 1, "leaves", 0);
        check_.indices(listed.data(), listed.shape(0), "items", this->n_items);
        for (std::size_t l = 0; l + 1 < starts.shape(0); ++l)
            for (std::int64_t e = starts(l) + 1; e < starts(l + 1); ++e)
                if (listed.data()[e - 1] >= listed.data()[e])
                    check_.refuse("items", "rise in every leaf", "an item that comes late or twice");
        if (trees) set_trees(*trees);
        nb::gil_scoped_release release;
        lists = {{starts.data(), starts.data() + starts.shape(0)}, {listed.data(), listed.data() + listed.shape(0)}};
        finish();
    }

    // leaves: n_items x n_trees, -1 where an item does not count in a tree.
    static LeafIndex *from_leaves(MatrixIn<std::int32_t> leaves, std::int64_t n_leaves,
                                  std::optional<VectorIn<double>> trees) {
        auto index = std::make_unique<LeafIndex>();
        index->n_items = leaves.shape(0);
        if (trees) index->set_trees(*trees);
        nb::gil_scoped_release release;
        index->lists = invert_leaves(index->check_, leaves, index->check_.count(n_leaves, "n_leaves"));
        index->finish();
        return index.release();
    }

    LeafIndex() = default;

    std::size_t n_leaves() const { return lists.indptr.size() - 1; }

    InvertedLeaves lists;
    std::size_t n_items = 0;
    std::vector<double> n_trees;        // one per item: the denominator of its similarities; or empty
    bool few_met = false;  // whether a row meets fewer items than there are, those of several leaves counted as often

    // How many items a big leaf holds, which is a bit set too, and which row of bits it is; others hold none here.
    struct BigLeaf {
        std::uint32_t size, row;
    };

    // Calls work(lists) with the items of every leaf in the form that is read fastest.
    template <class Work>
    void with_lists(Work work) const {
        if (!shorts_.empty()) return work(shorts_.lists());
        work(LeafLists<std::int64_t, std::int32_t>{lists.indptr.data(), lists.items.data(), lists.items.size()});
    }

    const BigLeaf &as_big(std::int32_t leaf) const { return big_[static_cast<std::size_t>(leaf)]; }

    const std::uint64_t *bits_of(std::int32_t leaf) const { return bits_.data() + as_big(leaf).row * words(); }

  private:
    void set_trees(const VectorIn<double> &trees) {
        check_.shape(trees, "n_trees", {n_items});
        check_.values(trees.data(), n_items, "n_trees", "be 0 or more", [](double n) { return n >= 0; });
        n_trees.assign(trees.data(), trees.data() + n_items);
    }

    std::size_t words() const { return block_count(n_items) * kWordsPerBlock; }

    void finish() {
        double met = 0.0;  // by all rows, if they are like the items
        for (std::size_t l = 0; l < n_leaves(); ++l) {
            const double size = static_cast<double>(lists.indptr[l + 1] - lists.indptr[l]);
            met += size * size;
        }
        few_met = met < static_cast<double>(n_items) * static_cast<double>(n_items);
        if (few_met) shorts_.fill(lists, n_items);
        fill_bit_sets();
    }

    void fill_bit_sets() {
        const std::size_t share = n_items <= 16384 ? 256 : 64;  // a bit set of a large index must be worth its memory
        std::uint32_t n_big = 0;
        big_.assign(n_leaves(), {0, 0});
        for (std::size_t l = 0; l < n_leaves(); ++l) {
            const std::size_t size = static_cast<std::size_t>(lists.indptr[l + 1] - lists.indptr[l]);
            if (size > 0 && size * share >= n_items) big_[l] = {static_cast<std::uint32_t>(size), n_big++};
        }
        bits_.assign(check_.product(n_big, words(), "the bit sets"), 0);
        for (std::size_t l = 0; l < n_leaves(); ++l) {
            if (big_[l].size == 0) continue;
            std::uint64_t *row = bits_.data() + big_[l].row * words();
            for (std::int64_t e = lists.indptr[l]; e < lists.indptr[l + 1]; ++e) {
                const std::size_t item = static_cast<std::size_t>(lists.items[static_cast<std::size_t>(e)]);
                row[item >> 6] |= std::uint64_t(1) << (item & 63);
            }
        }
    }

    std::vector<BigLeaf> big_;         // one per leaf
    std::vector<std::uint64_t> bits_;  // a row of bits for each that is big
    ShortLists shorts_;  // the lists again
    static constexpr Checks check_{"LeafIndex"};
};

}  // namespace hetcal
