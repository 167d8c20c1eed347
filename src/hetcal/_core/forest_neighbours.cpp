// Similarities of rows to calibration items through the inverted leaf index: how often they share a leaf.
//
// A row comes as the leaves it reached (-1: this tree does not count for the row). The similarity to an item is
// the number of shared leaves divided by a denominator that belongs to the row or, where `item_denominator` is
// given, to the item. Never more than one row of counts per thread is held. Small leaves are lists of items and
// counted one by one; big leaves are bit sets and counted 512 items at a time.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "forest_arrays.hpp"
#include "forest_bitcount.hpp"
#include "forest_parallel.hpp"

namespace hetcal {
namespace {

using Item = std::int32_t;
constexpr std::size_t kItemsPerBlock = 64 * kWordsPerBlock;

std::size_t block_count(std::size_t n_items) { return (n_items + kItemsPerBlock - 1) / kItemsPerBlock; }

struct Rows {
    const std::int32_t *leaves;       // n_rows x n_trees
    std::size_t n_rows, n_trees;
    const double *denominator;        // one per row
    const double *item_denominator;   // one per item, or null
    const std::int32_t *left_out;     // the item that each row must not see, or null
    const std::int64_t *indptr;       // inverted index: items of leaf l are items[indptr[l]:indptr[l+1]]
    const std::int32_t *items;
    const std::int32_t *bit_row;      // the row of a leaf in `bits`, or -1
    const std::uint64_t *bits;        // bit sets of the big leaves
    std::size_t n_items;
};

// For each leaf, where its bit set is: big leaves are numbered, small ones get -1. Returns how many are big.
std::size_t number_big_leaves(VectorIn<std::int64_t> indptr, std::size_t n_items,
                              VectorOut<std::int32_t> bit_row) {
    const std::size_t share = n_items <= 16384 ? 256 : 64;  // a bit set of a large index must be worth its memory
    std::int32_t n_big = 0;
    for (std::size_t l = 0; l + 1 < indptr.shape(0); ++l) {
        const std::size_t size = static_cast<std::size_t>(indptr(l + 1) - indptr(l));
        bit_row(l) = size > 0 && size * share >= n_items ? n_big++ : -1;
    }
    return static_cast<std::size_t>(n_big);
}

// Fills the bit sets of the big leaves (n_big x words, zeros must be there already).
void fill_bit_sets(VectorIn<std::int64_t> indptr, VectorIn<std::int32_t> items, VectorIn<std::int32_t> bit_row,
                   MatrixOut<std::uint64_t> bits) {
    nb::gil_scoped_release release;
    for (std::size_t l = 0; l < bit_row.shape(0); ++l) {
        if (bit_row(l) < 0) continue;
        std::uint64_t *row = bits.data() + static_cast<std::size_t>(bit_row(l)) * bits.shape(1);
        for (std::int64_t e = indptr(l); e < indptr(l + 1); ++e) {
            const std::size_t item = static_cast<std::size_t>(items.data()[e]);
            row[item >> 6] |= std::uint64_t(1) << (item & 63);
        }
    }
}

// How many leaves one row shares with each item; up to 255 trees fit a byte, more need two.
template <class Count>
class SharedLeaves {
  public:
    explicit SharedLeaves(const Rows &rows)
        : rows_(rows), n_blocks_(block_count(rows.n_items)), counts_(n_blocks_ * kItemsPerBlock),
          planes_(n_blocks_ * kPlanes * kWordsPerBlock), empty_(n_blocks_ * kWordsPerBlock, 0) {
        if (sizeof(Count) > 1) partial_.resize(counts_.size());
    }

    const Count *load(std::size_t r) {
        std::fill(counts_.begin(), counts_.end(), Count(0));
        sets_.clear();
        const std::int32_t *leaf = rows_.leaves + r * rows_.n_trees;
        for (std::size_t t = 0; t < rows_.n_trees; ++t) {
            const std::int32_t l = leaf[t];
            if (l < 0) continue;
            const std::int32_t bit_row = rows_.bit_row[l];
            if (bit_row >= 0) {
                sets_.push_back(rows_.bits + static_cast<std::size_t>(bit_row) * empty_.size());
                if (sets_.size() == kMostSets) count_sets();
                continue;
            }
            for (std::int64_t e = rows_.indptr[l]; e < rows_.indptr[l + 1]; ++e) ++counts_[rows_.items[e]];
        }
        if (!sets_.empty()) count_sets();
        if (rows_.left_out != nullptr && rows_.left_out[r] >= 0) counts_[rows_.left_out[r]] = 0;
        return counts_.data();
    }

  private:
    void count_sets() {
        int n_planes = 0;
        while ((sets_.size() >> n_planes) != 0) ++n_planes;
        while (sets_.size() % 8 != 0) sets_.push_back(empty_.data());
        count_bit_sets(sets_.data(), sets_.size(), n_blocks_, planes_.data());
        sets_.clear();
        add(n_planes, counts_.data());
    }

    void add(int n_planes, std::uint8_t *counts) { add_planes(planes_.data(), n_blocks_, n_planes, counts); }

    void add(int n_planes, std::uint16_t *counts) {
        std::fill(partial_.begin(), partial_.end(), std::uint8_t(0));
        add_planes(planes_.data(), n_blocks_, n_planes, partial_.data());
        for (std::size_t i = 0; i < partial_.size(); ++i) counts[i] = static_cast<std::uint16_t>(counts[i] + partial_[i]);
    }

    const Rows &rows_;
    std::size_t n_blocks_;
    std::vector<Count> counts_;
    std::vector<std::uint8_t> partial_;
    std::vector<std::uint64_t> planes_, empty_;
    std::vector<const std::uint64_t *> sets_;
};

struct Neighbour {
    double similarity;
    Item item;
    bool operator<(const Neighbour &other) const {  // nearest first, then lowest item
        return similarity != other.similarity ? similarity > other.similarity : item < other.item;
    }
};

// Calls work(row, counts, scratch) for every row; each thread has its own Scratch.
template <class Count, class Scratch, class Work>
void for_each_row(const Rows &rows, std::size_t n_jobs, Work work) {
    const std::size_t step = 16, n_tasks = (rows.n_rows + step - 1) / step;
    const std::size_t n_workers = std::max<std::size_t>(std::min(n_jobs, n_tasks), 1);
    std::vector<SharedLeaves<Count>> shared(n_workers, SharedLeaves<Count>(rows));
    std::vector<Scratch> scratch(n_workers);
    parallel_for(n_tasks, n_workers, [&](std::size_t task, std::size_t worker) {
        for (std::size_t r = task * step; r < std::min(rows.n_rows, (task + 1) * step); ++r)
            work(r, shared[worker].load(r), scratch[worker]);
    });
}

// Calls visit(item, similarity) for every item with a positive similarity, in order of item.
template <class Count, class Visit>
void each_similarity(const Rows &rows, std::size_t r, const Count *counts, Visit visit) {
    constexpr std::size_t kStep = 8 / sizeof(Count);  // the counts are padded to whole blocks
    for (std::size_t first = 0; first < rows.n_items; first += kStep) {
        std::uint64_t several;
        std::memcpy(&several, counts + first, sizeof several);
        if (several == 0) continue;
        for (std::size_t item = first; item < first + kStep; ++item)
            if (counts[item] != 0)
                visit(static_cast<Item>(item),
                      counts[item] / (rows.item_denominator ? rows.item_denominator[item] : rows.denominator[r]));
    }
}

double power_of(double similarity, double power) {
    return power == 1.0 ? similarity : std::pow(similarity, power);
}

struct VoteTask {
    const std::int32_t *labels;
    const double *weight;     // one per item, or null: all equal to 1
    const double *threshold;  // one per row
    double power;
    std::size_t n_neighbours;  // 0: all
    std::size_t n_classes;
    double *votes, *sums;
};

struct VoteScratch {
    std::vector<std::uint32_t> histogram;   // items by class and count
    std::vector<std::int32_t> label_start;  // where the counts of an item's class begin in it
    std::vector<Neighbour> kept;
};

// Item by item: weights, out-of-bag denominators, a limited number of voters.
template <class Count>
void vote_by_item(const Rows &rows, const VoteTask &task, std::size_t r, const Count *counts,
                  VoteScratch &scratch) {
    double *vote = task.votes + r * task.n_classes, *sum = task.sums + r * 2;
    auto add = [&](Item item, double similarity) {
        const double weight = task.weight ? task.weight[item] : 1.0;
        const double ballot = weight * power_of(similarity, task.power);
        vote[task.labels[item]] += ballot;
        sum[0] += weight * similarity;
        sum[1] += ballot * ballot;
    };
    Neighbour nearest{0.0, -1};
    auto &kept = scratch.kept;
    kept.clear();
    each_similarity(rows, r, counts, [&](Item item, double similarity) {
        if (similarity > nearest.similarity) nearest = {similarity, item};
        if (similarity >= task.threshold[r]) kept.push_back({similarity, item});
    });
    if (kept.empty() && nearest.item >= 0) kept.push_back(nearest);
    if (task.n_neighbours > 0) {
        const std::size_t used = std::min(kept.size(), task.n_neighbours);
        std::partial_sort(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(used), kept.end());
        kept.resize(used);
    }
    for (const Neighbour &neighbour : kept) add(neighbour.item, neighbour.similarity);
}

// All items weigh the same: it is enough to know how many items of each class have each count.
template <class Count>
void vote_by_histogram(const Rows &rows, const VoteTask &task, std::size_t r, const Count *counts,
                       VoteScratch &scratch) {
    const std::size_t n_counts = rows.n_trees + 1;
    if (scratch.label_start.empty()) {
        scratch.histogram.resize(n_counts * task.n_classes);
        scratch.label_start.resize(rows.n_items);
        for (std::size_t i = 0; i < rows.n_items; ++i)
            scratch.label_start[i] = task.labels[i] * static_cast<std::int32_t>(n_counts);
    }
    auto &histogram = scratch.histogram;
    std::fill(histogram.begin(), histogram.end(), 0u);
    constexpr std::size_t kStep = 8 / sizeof(Count);
    const std::size_t whole = rows.n_items / kStep * kStep;
    std::size_t item = 0;
    for (; item < whole; item += kStep) {
        std::uint64_t several;
        std::memcpy(&several, counts + item, sizeof several);
        if (several == 0) continue;
        for (std::size_t j = item; j < item + kStep; ++j) ++histogram[scratch.label_start[j] + counts[j]];
    }
    for (; item < rows.n_items; ++item) ++histogram[scratch.label_start[item] + counts[item]];

    double *vote = task.votes + r * task.n_classes, *sum = task.sums + r * 2;
    bool any = false;
    for (std::size_t count = n_counts - 1; count > 0; --count) {
        const double similarity = static_cast<double>(count) / rows.denominator[r];
        if (similarity < task.threshold[r]) break;
        const double ballot = power_of(similarity, task.power);
        for (std::size_t k = 0; k < task.n_classes; ++k) {
            const double n = histogram[k * n_counts + count];
            if (n == 0) continue;
            any = true;
            vote[k] += n * ballot;
            sum[0] += n * similarity;
            sum[1] += n * ballot * ballot;
        }
    }
    if (any) return;
    const Count *nearest = std::max_element(counts, counts + rows.n_items);  // the lowest of several
    if (rows.n_items == 0 || *nearest == 0) return;
    const double similarity = static_cast<double>(*nearest) / rows.denominator[r];
    const double ballot = power_of(similarity, task.power);
    vote[task.labels[nearest - counts]] = ballot;
    sum[0] = similarity;
    sum[1] = ballot * ballot;
}

template <class Count>
void vote_rows(const Rows &rows, const VoteTask &task, std::size_t n_jobs) {
    const bool by_item = task.weight || rows.item_denominator || task.n_neighbours > 0;
    for_each_row<Count, VoteScratch>(rows, n_jobs, [&](std::size_t r, const Count *counts, VoteScratch &scratch) {
        if (by_item)
            vote_by_item(rows, task, r, counts, scratch);
        else
            vote_by_histogram(rows, task, r, counts, scratch);
    });
}

#define HETCAL_ROW_ARGUMENTS                                                                                  \
    MatrixIn<std::int32_t> leaves, VectorIn<double> denominator, VectorIn<double> item_denominator,           \
        VectorIn<std::int32_t> left_out, VectorIn<std::int64_t> indptr, VectorIn<std::int32_t> items,         \
        VectorIn<std::int32_t> bit_row, MatrixIn<std::uint64_t> bits, std::size_t n_items
#define HETCAL_ROWS                                                                                           \
    Rows {                                                                                                    \
        leaves.data(), leaves.shape(0), leaves.shape(1), denominator.data(),                                  \
            item_denominator.shape(0) > 0 ? item_denominator.data() : nullptr,                                \
            left_out.shape(0) > 0 ? left_out.data() : nullptr, indptr.data(), items.data(), bit_row.data(),   \
            bits.data(), n_items                                                                              \
    }

// Votes of the items with similarity >= threshold[row] (the nearest where none is), weight * similarity ** power.
// sums[row] = (sum of weight * similarity, sum of squared votes). An empty `weight` means ones.
void neighbour_vote(HETCAL_ROW_ARGUMENTS, VectorIn<std::int32_t> labels, VectorIn<double> weight,
                    VectorIn<double> threshold, double power, std::size_t n_neighbours, MatrixOut<double> votes,
                    MatrixOut<double> sums, std::size_t n_jobs) {
    nb::gil_scoped_release release;
    const Rows rows = HETCAL_ROWS;
    const VoteTask task{labels.data(), weight.shape(0) > 0 ? weight.data() : nullptr, threshold.data(), power,
                        n_neighbours, votes.shape(1), votes.data(), sums.data()};
    if (rows.n_trees <= kMostSets)
        vote_rows<std::uint8_t>(rows, task, n_jobs);
    else
        vote_rows<std::uint16_t>(rows, task, n_jobs);
}

// The items nearest to each row, nearest first, ties by lowest item; -1 where fewer have a positive similarity.
void nearest_items(HETCAL_ROW_ARGUMENTS, MatrixOut<std::int32_t> nearest, MatrixOut<double> similarities,
                   std::size_t n_jobs) {
    nb::gil_scoped_release release;
    const Rows rows = HETCAL_ROWS;
    const std::size_t top = nearest.shape(1);
    using Scratch = std::vector<Neighbour>;
    auto find = [&](std::size_t r, const std::uint16_t *counts, Scratch &found) {
        found.clear();
        each_similarity(rows, r, counts, [&](Item item, double s) { found.push_back({s, item}); });
        const std::size_t used = std::min(top, found.size());
        std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(used), found.end());
        for (std::size_t k = 0; k < top; ++k) {
            nearest(r, k) = k < used ? found[k].item : -1;
            similarities(r, k) = k < used ? found[k].similarity : 0.0;
        }
    };
    for_each_row<std::uint16_t, Scratch>(rows, n_jobs, find);
}

// The similarities themselves (n_rows x n_items; zeros must be there already).
void pairwise_similarity(HETCAL_ROW_ARGUMENTS, MatrixOut<double> similarities, std::size_t n_jobs) {
    nb::gil_scoped_release release;
    const Rows rows = HETCAL_ROWS;
    auto write = [&](std::size_t r, const std::uint16_t *counts, char &) {
        double *out = similarities.data() + r * n_items;
        each_similarity(rows, r, counts, [&](Item item, double similarity) { out[item] = similarity; });
    };
    for_each_row<std::uint16_t, char>(rows, n_jobs, write);
}

}  // namespace
}  // namespace hetcal

void register_forest_neighbours(nanobind::module_ &m) {
    namespace nb = nanobind;
    m.attr("ITEMS_PER_BIT_BLOCK") = hetcal::kItemsPerBlock;
    m.def("number_big_leaves", &hetcal::number_big_leaves, nb::arg("indptr"), nb::arg("n_items"),
          nb::arg("bit_row").noconvert());
    m.def("fill_bit_sets", &hetcal::fill_bit_sets, nb::arg("indptr"), nb::arg("items"), nb::arg("bit_row"),
          nb::arg("bits").noconvert());
    m.def("neighbour_vote", &hetcal::neighbour_vote);
    m.def("nearest_items", &hetcal::nearest_items);
    m.def("pairwise_similarity", &hetcal::pairwise_similarity);
}
