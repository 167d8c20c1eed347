// Similarities of rows to calibration items through the inverted leaf index: how often they share a leaf.
//
// A row comes as the leaves it reached (-1: this tree does not count for the row). The similarity to an item is
// the number of shared leaves divided by a denominator that belongs to the row or, where `item_denominator` is
// given, to the item. Never more than one row of similarities per thread is held.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "forest_arrays.hpp"
#include "forest_parallel.hpp"

namespace hetcal {
namespace {

using Item = std::int32_t;

struct Rows {
    MatrixIn<std::int32_t> leaves;      // n_rows x n_trees
    VectorIn<double> denominator;       // one per row
    VectorIn<double> item_denominator;  // one per item, or empty
    VectorIn<std::int32_t> left_out;    // the item that each row must not see, or empty
    VectorIn<std::int64_t> indptr;      // inverted index: items of leaf l are items[indptr[l]:indptr[l+1]]
    VectorIn<std::int32_t> items;
    std::size_t n_items;
};

// The similarities of one row, one row after the other.
class RowSimilarity {
  public:
    explicit RowSimilarity(const Rows &rows) : rows_(rows), shared_((rows.n_items + 3) / 4 * 4, 0) {}

    void load(std::size_t r) {
        std::fill(shared_.begin(), shared_.end(), std::uint16_t(0));
        const std::size_t n_trees = rows_.leaves.shape(1);
        const std::int32_t *leaf = rows_.leaves.data() + r * n_trees;
        const std::int64_t *start = rows_.indptr.data();
        const Item *items = rows_.items.data();
        for (std::size_t t = 0; t < n_trees; ++t) {
            if (leaf[t] < 0) continue;
            for (std::int64_t e = start[leaf[t]]; e < start[leaf[t] + 1]; ++e) ++shared_[items[e]];
        }
        if (rows_.left_out.shape(0) > 0 && rows_.left_out(r) >= 0) shared_[rows_.left_out(r)] = 0;
        denominator_ = rows_.denominator(r);
    }

    // Calls visit(item, similarity) for every item with a positive similarity, in order of item.
    template <class Visit>
    void each(Visit visit) const {
        const bool by_item = rows_.item_denominator.shape(0) > 0;
        for (std::size_t first = 0; first < shared_.size(); first += 4) {
            std::uint64_t four;
            std::memcpy(&four, shared_.data() + first, sizeof four);
            if (four == 0) continue;
            for (std::size_t item = first; item < first + 4; ++item)
                if (shared_[item] != 0)
                    visit(static_cast<Item>(item),
                          shared_[item] / (by_item ? rows_.item_denominator(item) : denominator_));
        }
    }

  private:
    const Rows &rows_;
    std::vector<std::uint16_t> shared_;
    double denominator_ = 1.0;
};

struct Neighbour {
    double similarity;
    Item item;
    bool operator<(const Neighbour &other) const {  // nearest first, then lowest item
        return similarity != other.similarity ? similarity > other.similarity : item < other.item;
    }
};

template <class Work>
void for_each_row(const Rows &rows, std::size_t n_jobs, Work work) {
    const std::size_t n = rows.leaves.shape(0), step = 16;
    std::vector<RowSimilarity> similarity(std::max<std::size_t>(std::min(n_jobs, n), 1), RowSimilarity(rows));
    parallel_for((n + step - 1) / step, n_jobs, [&](std::size_t task, std::size_t worker) {
        for (std::size_t r = task * step; r < std::min(n, (task + 1) * step); ++r) {
            similarity[worker].load(r);
            work(r, similarity[worker]);
        }
    });
}

double power_of(double similarity, double power) {
    return power == 1.0 ? similarity : std::pow(similarity, power);
}

#define HETCAL_ROW_ARGUMENTS                                                                                     \
    MatrixIn<std::int32_t> leaves, VectorIn<double> denominator, VectorIn<double> item_denominator,              \
        VectorIn<std::int32_t> left_out, VectorIn<std::int64_t> indptr, VectorIn<std::int32_t> items,            \
        std::size_t n_items
#define HETCAL_ROWS \
    Rows { leaves, denominator, item_denominator, left_out, indptr, items, n_items }

// Votes of the items with similarity >= threshold[row] (the nearest where none is), weight * similarity ** power.
// sums[row] = (sum of weight * similarity, sum of squared votes).
void neighbour_vote(HETCAL_ROW_ARGUMENTS, VectorIn<std::int32_t> labels, VectorIn<double> weight,
                    VectorIn<double> threshold, double power, std::size_t n_neighbours, MatrixOut<double> votes,
                    MatrixOut<double> sums, std::size_t n_jobs) {
    nb::gil_scoped_release release;
    const Rows rows = HETCAL_ROWS;
    const std::size_t K = votes.shape(1);
    for_each_row(rows, n_jobs, [&](std::size_t r, const RowSimilarity &row) {
        double *vote = votes.data() + r * K, *sum = sums.data() + r * 2;
        const double least = threshold(r);
        auto add = [&](Item item, double similarity) {
            const double ballot = weight(item) * power_of(similarity, power);
            vote[labels(item)] += ballot;
            sum[0] += weight(item) * similarity;
            sum[1] += ballot * ballot;
        };
        Neighbour nearest{0.0, -1};
        bool any = false;
        if (n_neighbours == 0) {
            row.each([&](Item item, double similarity) {
                if (similarity > nearest.similarity) nearest = {similarity, item};
                if (similarity < least) return;
                any = true;
                add(item, similarity);
            });
        } else {
            std::vector<Neighbour> kept;
            row.each([&](Item item, double similarity) {
                if (similarity > nearest.similarity) nearest = {similarity, item};
                if (similarity >= least) kept.push_back({similarity, item});
            });
            any = !kept.empty();
            if (kept.size() > n_neighbours) {
                std::nth_element(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(n_neighbours), kept.end());
                kept.resize(n_neighbours);
            }
            std::sort(kept.begin(), kept.end());
            for (const Neighbour &neighbour : kept) add(neighbour.item, neighbour.similarity);
        }
        if (!any && nearest.item >= 0) add(nearest.item, nearest.similarity);
    });
}

// The items nearest to each row, nearest first, ties by lowest item; -1 where fewer have a positive similarity.
void nearest_items(HETCAL_ROW_ARGUMENTS, MatrixOut<std::int32_t> nearest, MatrixOut<double> similarities,
                   std::size_t n_jobs) {
    nb::gil_scoped_release release;
    const Rows rows = HETCAL_ROWS;
    const std::size_t top = nearest.shape(1);
    for_each_row(rows, n_jobs, [&](std::size_t r, const RowSimilarity &row) {
        std::vector<Neighbour> found;
        row.each([&](Item item, double similarity) { found.push_back({similarity, item}); });
        const std::size_t used = std::min(top, found.size());
        std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(used), found.end());
        for (std::size_t k = 0; k < top; ++k) {
            nearest(r, k) = k < used ? found[k].item : -1;
            similarities(r, k) = k < used ? found[k].similarity : 0.0;
        }
    });
}

// The similarities themselves (n_rows x n_items; zeros must be there already).
void pairwise_similarity(HETCAL_ROW_ARGUMENTS, MatrixOut<double> similarities, std::size_t n_jobs) {
    nb::gil_scoped_release release;
    const Rows rows = HETCAL_ROWS;
    for_each_row(rows, n_jobs, [&](std::size_t r, const RowSimilarity &row) {
        double *out = similarities.data() + r * n_items;
        row.each([&](Item item, double similarity) { out[item] = similarity; });
    });
}

}  // namespace
}  // namespace hetcal

void register_forest_neighbours(nanobind::module_ &m) {
    m.def("neighbour_vote", &hetcal::neighbour_vote);
    m.def("nearest_items", &hetcal::nearest_items);
    m.def("pairwise_similarity", &hetcal::pairwise_similarity);
}
