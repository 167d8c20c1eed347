// Similarities of rows to calibration items through the inverted leaf index: how often they share a leaf.
//
// A row comes as the leaves it reached (-1: this tree does not count for the row). The similarity to an item is
// the number of shared leaves divided by a denominator that belongs to the row or, where the index has `n_trees`,
// to the item. Never more than one row of counts per thread is held. Small leaves are lists of items and
// counted one by one; big leaves are bit sets and counted 512 items at a time.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include <nanobind/stl/optional.h>

#include "bits.hpp"
#include "leaf_index.hpp"
#include "leaf_lists.hpp"
#include "parallel.hpp"
#include "shared_leaves.hpp"

namespace hetcal {
namespace {

using Item = std::int32_t;

struct Neighbour {
    double similarity;
    Item item;
    bool operator<(const Neighbour &other) const {  // nearest first, then lowest item
        return similarity != other.similarity ? similarity > other.similarity : item < other.item;
    }
};

// Calls work(row, shared leaves, scratch) for every row; each thread has its own of both.
template <class Count, class Scratch, class Work>
void for_each_row(const Rows &rows, std::size_t n_jobs, Work work) {
    const std::size_t step = 16, n_tasks = (rows.n_rows + step - 1) / step;
    const std::size_t n_workers = worker_count(n_jobs, n_tasks);
    std::vector<SharedLeaves<Count>> shared(n_workers, SharedLeaves<Count>(rows));
    std::vector<Scratch> scratch(n_workers);
    parallel_for(n_tasks, n_workers, [&](std::size_t task, std::size_t worker) {
        for (std::size_t r = task * step; r < std::min(rows.n_rows, (task + 1) * step); ++r)
            work(r, shared[worker], scratch[worker]);
    });
}

// Calls visit(item, similarity) for every item with a positive similarity, in order of item.
template <class Count, class Visit>
void each_similarity(const Rows &rows, std::size_t r, const Count *counts, Visit visit) {
    constexpr std::size_t kStep = 8 / sizeof(Count);  // the counts are padded to whole blocks
    for (std::size_t first = 0; first < rows.index.n_items; first += kStep) {
        std::uint64_t several;
        std::memcpy(&several, counts + first, sizeof several);
        if (several == 0) continue;
        for (std::size_t item = first; item < first + kStep; ++item)
            if (counts[item] != 0)
                visit(static_cast<Item>(item), counts[item] / rows.denominator_of(r, item));
    }
}

double power_of(double similarity, double power) {
    return power == 1.0 ? similarity : std::pow(similarity, power);
}

struct VoteTask {
    const std::int32_t *labels;
    const double *weight;     // one per item, or null: all equal to 1
    const double *threshold;  // one per row
    const double *powers;
    std::size_t n_powers;
    std::size_t n_neighbours;  // 0: all
    std::size_t n_classes;
    double *votes, *sums;  // of the powers of the first row, then of those of the second

    double *votes_of(std::size_t r, std::size_t p) const { return votes + (r * n_powers + p) * n_classes; }
    double *sums_of(std::size_t r, std::size_t p) const { return sums + (r * n_powers + p) * 2; }
};

constexpr std::size_t kMostCells = std::size_t(1) << 24;  // of a histogram: 64 MB per thread
constexpr std::size_t kMostTreesKept = 4096;              // beyond, powers are not kept

struct VoteScratch {
    std::vector<std::uint32_t> histogram;      // items by count and class; zero between two rows
    std::vector<std::uint32_t> cells;          // of the histogram, one per item
    std::vector<std::int32_t> reached;         // leaves
    std::vector<Neighbour> kept;
    std::vector<std::vector<double>> ballots;  // by denominator; then by power and count, below 0: not computed yet

    // (count / of) ** power: numbers of trees divided by numbers of trees, so the same few come again and again.
    double ballot(const VoteTask &task, std::size_t p, std::size_t count, std::size_t n_counts, double of) {
        const std::size_t whole = of < static_cast<double>(n_counts) ? static_cast<std::size_t>(of) : n_counts;
        if (static_cast<double>(whole) != of || n_counts > kMostTreesKept)
            return power_of(static_cast<double>(count) / of, task.powers[p]);
        if (ballots.empty()) ballots.resize(n_counts + 1);
        std::vector<double> &of_same = ballots[whole];
        if (of_same.empty()) of_same.assign(task.n_powers * n_counts, -1.0);
        double &known = of_same[p * n_counts + count];
        if (known < 0.0) known = power_of(static_cast<double>(count) / of, task.powers[p]);
        return known;
    }
};

// Item by item: weights, out-of-bag denominators, a limited number of voters.
template <class Count>
void vote_by_item(const Rows &rows, const VoteTask &task, std::size_t r, const Count *counts,
                  VoteScratch &scratch) {
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
    for (const auto &[similarity, item] : kept) {
        const double weight = task.weight ? task.weight[item] : 1.0;
        const double of = rows.denominator_of(r, static_cast<std::size_t>(item));
        for (std::size_t p = 0; p < task.n_powers; ++p) {
            const double ballot = weight * scratch.ballot(task, p, counts[item], rows.n_trees + 1, of);
            double *sum = task.sums_of(r, p);
            task.votes_of(r, p)[task.labels[item]] += ballot;
            sum[0] += weight * similarity;
            sum[1] += ballot * ballot;
        }
    }
}

// Adds the votes of the items in the histogram, n[count * n_classes + k] of class k, highest count first.
inline void add_votes(const Rows &rows, const VoteTask &task, std::size_t r, std::size_t least, std::size_t most,
                      const std::uint32_t *n, VoteScratch &scratch) {
    const double of = rows.denominator[r];
    for (std::size_t p = 0; p < task.n_powers; ++p) {
        double *votes = task.votes_of(r, p), *sums = task.sums_of(r, p), similar = sums[0], squares = sums[1];
        if (task.n_classes == 2 && task.powers[p] == 1.0) {  // no count is worth a branch: to add 0 changes nothing
            double votes_0 = votes[0], votes_1 = votes[1];
            for (std::size_t count = most; count >= least; --count) {
                const double ballot = static_cast<double>(count) / of;
                const double first = n[2 * count] * ballot, second = n[2 * count + 1] * ballot;
                votes_0 += first;
                votes_1 += second;
                similar = similar + first + second;
                squares = squares + first * ballot + second * ballot;
            }
            votes[0] = votes_0;
            votes[1] = votes_1;
        } else {
            for (std::size_t count = most; count >= least; --count) {
                const double similarity = static_cast<double>(count) / of;
                const double ballot = scratch.ballot(task, p, count, rows.n_trees + 1, of);
                for (std::size_t k = 0; k < task.n_classes; ++k) {
                    const double n_items = n[count * task.n_classes + k];
                    if (n_items == 0) continue;
                    votes[k] += n_items * ballot;
                    similar += n_items * similarity;
                    squares += n_items * ballot * ballot;
                }
            }
        }
        sums[0] = similar;
        sums[1] = squares;
    }
}

// Counts the items of each class with each count, which lists of items are enough for; returns the highest count there is.
inline std::size_t count_listed(const Rows &rows, const VoteTask &task, std::size_t r, VoteScratch &scratch) {
    const std::uint32_t K = static_cast<std::uint32_t>(task.n_classes);
    std::uint32_t *histogram = scratch.histogram.data();
    scratch.cells.assign(task.labels, task.labels + rows.index.n_items);  // where an item is in the histogram: count 0
    std::uint32_t *cell = scratch.cells.data();
    scratch.reached.clear();
    for (std::size_t t = 0; t < rows.n_trees; ++t)
        if (rows.leaves[r * rows.n_trees + t] >= 0) scratch.reached.push_back(rows.leaves[r * rows.n_trees + t]);
    rows.index.with_lists([&](const auto &lists) {
        each_batch(lists, scratch.reached.data(), scratch.reached.size(), [=](const auto *items, std::size_t n) {
            for (std::size_t i = 0; i < n; ++i) ++histogram[cell[items[i]] += K];
        });
    });
    std::size_t most = 0;
    const auto reached = [&](std::size_t count) {
        return std::any_of(histogram + count * K, histogram + (count + 1) * K, [](std::uint32_t n) { return n > 0; });
    };
    while (most < rows.n_trees && reached(most + 1)) ++most;
    // An item that reached a count has reached those below.
    for (std::size_t c = K; c < most * K; ++c) histogram[c] -= histogram[c + K];
    return most;
}

// Counts the items of each class with each count from `least` on; returns the highest count there is.
template <class Count>
std::size_t count_all(const Rows &rows, const VoteTask &task, std::size_t least, const Count *counts,
                      VoteScratch &scratch) {
    const std::uint32_t K = static_cast<std::uint32_t>(task.n_classes);
    if (least > rows.n_trees) return 0;
    scratch.cells.resize(rows.index.n_items + kMostAhead);
    std::uint32_t *histogram = scratch.histogram.data(), *cells = scratch.cells.data(), last = 0;
    const std::size_t n = list_cells(counts, rows.index.n_items, static_cast<Count>(least), task.labels, K, cells);
    for (std::size_t i = 0; i < n; ++i) {
        ++histogram[cells[i]];
        last = std::max(last, cells[i]);
    }
    return last / K;
}

// The smallest number of shared leaves, above 0, that reaches the row's threshold; more than there are where none does.
inline std::size_t least_count(const Rows &rows, const VoteTask &task, std::size_t r) {
    const double of = rows.denominator[r], threshold = task.threshold[r], most = static_cast<double>(rows.n_trees + 1);
    // But for rounding; infinity times no trees is no number, and counts as 1.
    std::size_t least = static_cast<std::size_t>(std::min(std::max(1.0, threshold * of), most));
    while (least > 1 && static_cast<double>(least - 1) / of >= threshold) --least;
    while (least <= rows.n_trees && static_cast<double>(least) / of < threshold) ++least;
    return least;
}

// All items weigh the same: it is enough to know how many items of each class have each count.
template <class Count>
void vote_by_histogram(const Rows &rows, const VoteTask &task, std::size_t r, SharedLeaves<Count> &shared,
                       VoteScratch &scratch) {
    const std::size_t n_items = rows.index.n_items, K = task.n_classes, least = least_count(rows, task, r);
    scratch.histogram.resize((rows.n_trees + 1) * K);
    std::uint32_t *histogram = scratch.histogram.data();
    const bool listed = least == 1 && rows.left_out == nullptr && rows.index.few_met;
    std::size_t most = listed ? count_listed(rows, task, r, scratch)
                              : count_all(rows, task, least, shared.load(r), scratch);
    add_votes(rows, task, r, least, most, histogram, scratch);
    if (most == 0 && n_items > 0 && !listed) {
        const Count *counts = shared.counts(), *nearest = std::max_element(counts, counts + n_items);  // the lowest of several
        most = *nearest;
        histogram[most * K + static_cast<std::size_t>(task.labels[nearest - counts])] = 1;
        if (most > 0) add_votes(rows, task, r, most, most, histogram, scratch);
    }
    std::fill_n(histogram, (most + 1) * K, 0u);
}

template <class Count>
void vote_rows(const Rows &rows, const VoteTask &task, std::size_t n_jobs) {
    const bool too_many_cells = task.n_classes > kMostCells / (rows.n_trees + 1);
    const bool by_item =
        task.weight || !rows.index.n_trees.empty() || task.n_neighbours > 0 || too_many_cells;
    for_each_row<Count, VoteScratch>(rows, n_jobs, [&](std::size_t r, SharedLeaves<Count> &shared, VoteScratch &scratch) {
        if (by_item)
            vote_by_item(rows, task, r, shared.load(r), scratch);
        else
            vote_by_histogram(rows, task, r, shared, scratch);
    });
}

// Calls run(Count()) with the smallest type that counts the trees without wrapping.
template <class Run>
void with_count_type(const Rows &rows, Run run) {
    if (rows.n_trees <= kMostSets)
        run(std::uint8_t());
    else if (rows.n_trees <= std::numeric_limits<std::uint16_t>::max())
        run(std::uint16_t());
    else
        run(std::uint32_t());
}

#define HETCAL_ROW_ARGUMENTS                                                                  \
    const LeafIndex &index, MatrixIn<std::int32_t> leaves, VectorIn<double> denominator,      \
        std::optional<VectorIn<std::int32_t>> left_out, std::optional<VectorIn<std::int32_t>> groups

// Votes of the items with similarity >= threshold[row] (the nearest where none is), weight * similarity ** power.
// sums[row] = (sum of weight * similarity, sum of squared votes). Without `weight` every item has 1. Every row has a
// row of votes and of sums per power, one below the other.
void neighbour_vote(HETCAL_ROW_ARGUMENTS, VectorIn<std::int32_t> labels, std::optional<VectorIn<double>> weight,
                    VectorIn<double> threshold, VectorIn<double> powers, std::int64_t n_neighbours, MatrixOut<double> votes,
                    MatrixOut<double> sums, std::int64_t n_jobs) {
    const Checks check("LeafIndex.vote");
    const std::size_t n_workers = check.count(n_jobs, "n_jobs", 1);
    const std::size_t n_voters = check.count(n_neighbours, "n_neighbours");
    nb::gil_scoped_release release;
    const Rows rows(check, index, leaves, denominator, left_out, groups);
    check.shape(labels, "labels", {index.n_items});
    check.indices(labels.data(), index.n_items, "labels", votes.shape(1));
    if (weight) check.shape(*weight, "weight", {index.n_items});
    check.shape(threshold, "threshold", {rows.n_rows});
    check.values(threshold.data(), rows.n_rows, "threshold", "be a number", [](double t) { return t == t; });
    check.aligned(powers, "powers");
    check.values(powers.data(), powers.shape(0), "powers", "be a number", [](double p) { return p == p; });
    const std::size_t n_votes = check.product(rows.n_rows, powers.shape(0), "the votes");
    check.shape(votes, "votes", {n_votes, votes.shape(1)});
    check.shape(sums, "sums", {n_votes, 2});
    const VoteTask task{labels.data(), weight ? weight->data() : nullptr, threshold.data(), powers.data(),
                        powers.shape(0), n_voters, votes.shape(1), votes.data(), sums.data()};
    with_count_type(rows, [&](auto count) { vote_rows<decltype(count)>(rows, task, n_workers); });
}

// The items nearest to each row, nearest first, ties by lowest item; -1 where fewer have a positive similarity.
void nearest_items(HETCAL_ROW_ARGUMENTS, MatrixOut<std::int32_t> nearest, MatrixOut<double> similarities,
                   std::int64_t n_jobs) {
    const Checks check("LeafIndex.nearest");
    const std::size_t n_workers = check.count(n_jobs, "n_jobs", 1);
    nb::gil_scoped_release release;
    const Rows rows(check, index, leaves, denominator, left_out, groups);
    const std::size_t top = nearest.shape(1);
    check.shape(nearest, "nearest", {rows.n_rows, top});
    check.shape(similarities, "similarities", {rows.n_rows, top});
    using Scratch = std::vector<Neighbour>;
    auto find = [&](std::size_t r, auto &shared, Scratch &found) {
        found.clear();
        each_similarity(rows, r, shared.load(r), [&](Item item, double s) { found.push_back({s, item}); });
        const std::size_t used = std::min(top, found.size());
        std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(used), found.end());
        for (std::size_t k = 0; k < top; ++k) {
            nearest(r, k) = k < used ? found[k].item : -1;
            similarities(r, k) = k < used ? found[k].similarity : 0.0;
        }
    };
    with_count_type(rows, [&](auto count) { for_each_row<decltype(count), Scratch>(rows, n_workers, find); });
}

// The similarities themselves (n_rows x n_items; zeros must be there already).
void pairwise_similarity(HETCAL_ROW_ARGUMENTS, MatrixOut<double> similarities, std::int64_t n_jobs) {
    const Checks check("LeafIndex.pairwise");
    const std::size_t n_workers = check.count(n_jobs, "n_jobs", 1);
    nb::gil_scoped_release release;
    const Rows rows(check, index, leaves, denominator, left_out, groups);
    check.shape(similarities, "similarities", {rows.n_rows, index.n_items});
    auto write = [&](std::size_t r, auto &shared, char &) {
        double *out = similarities.data() + r * index.n_items;
        each_similarity(rows, r, shared.load(r), [&](Item item, double similarity) { out[item] = similarity; });
    };
    with_count_type(rows, [&](auto count) { for_each_row<decltype(count), char>(rows, n_workers, write); });
}

#undef HETCAL_ROW_ARGUMENTS

// A view of a vector that Python may read but not change.
template <class T>
auto read_only(const std::vector<T> &values) {
    return nb::ndarray<nb::numpy, const T, nb::ndim<1>>(values.data(), {values.size()});
}

}  // namespace
}  // namespace hetcal

void register_forest_neighbours(nanobind::module_ &m) {
    namespace nb = nanobind;
    using hetcal::LeafIndex;
    const auto inside = nb::rv_policy::reference_internal;
    const auto none = nb::none();
    nb::class_<LeafIndex>(m, "LeafIndex")
        .def(nb::init<hetcal::VectorIn<std::int64_t>, hetcal::VectorIn<std::int32_t>, std::int64_t,
                      std::optional<hetcal::VectorIn<double>>>(),
             nb::arg("indptr"), nb::arg("items"), nb::arg("n_items"), nb::arg("n_trees") = none)
        .def_static("from_leaves", &LeafIndex::from_leaves, nb::rv_policy::take_ownership, nb::arg("leaves"),
                    nb::arg("n_leaves"), nb::arg("n_trees") = none)
        .def_prop_ro("indptr", [](const LeafIndex &index) { return hetcal::read_only(index.lists.indptr); }, inside)
        .def_prop_ro("items", [](const LeafIndex &index) { return hetcal::read_only(index.lists.items); }, inside)
        .def("vote", &hetcal::neighbour_vote, nb::arg("leaves"), nb::arg("n_trees"), nb::arg("left_out").none(),
             nb::arg("groups").none(), nb::arg("labels"), nb::arg("weight").none(), nb::arg("threshold"), nb::arg("powers"),
             nb::arg("n_neighbours"), nb::arg("votes").noconvert(), nb::arg("sums").noconvert(), nb::arg("n_jobs"))
        .def("nearest", &hetcal::nearest_items, nb::arg("leaves"), nb::arg("n_trees"), nb::arg("left_out").none(),
             nb::arg("groups").none(), nb::arg("nearest").noconvert(), nb::arg("similarities").noconvert(), nb::arg("n_jobs"))
        .def("pairwise", &hetcal::pairwise_similarity, nb::arg("leaves"), nb::arg("n_trees"),
             nb::arg("left_out").none(), nb::arg("groups").none(), nb::arg("similarities").noconvert(), nb::arg("n_jobs"));
}
