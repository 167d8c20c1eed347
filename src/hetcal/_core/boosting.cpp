// Trees of gradient boosting on binned columns. Sums run in the order of the items, so that the
// pure twin finds the same trees to the last bit.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "checks.hpp"
#include "parallel.hpp"

namespace nb = nanobind;
template <class T, std::size_t N>
using Array = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

namespace {

constexpr double least_gain = 1e-10;

struct Sums {
    double slope = 0.0;
    double curvature = 0.0;

    void operator+=(const Sums &more) {
        slope += more.slope;
        curvature += more.curvature;
    }
};

struct Split {
    double gain = least_gain;
    std::int32_t column = 0;
    std::uint8_t cut = 255;  // no bin is larger: everything goes left
};

struct Limits {
    double l2;
    double least_mass;
};

// Looks for the best cut of one node in one column.
void improve(Split &best, const Sums *bins, std::size_t n_bins, std::int32_t column, Limits limits) {
    Sums all;
    for (std::size_t b = 0; b < n_bins; ++b) all += bins[b];
    if (all.curvature < 2 * limits.least_mass) return;
    const double unsplit = all.slope * all.slope / (all.curvature + limits.l2);
    Sums left;
    for (std::size_t b = 0; b + 1 < n_bins; ++b) {
        left += bins[b];
        const Sums right{all.slope - left.slope, all.curvature - left.curvature};
        if (left.curvature < limits.least_mass || right.curvature < limits.least_mass) continue;
        const double gain = left.slope * left.slope / (left.curvature + limits.l2) +
                            right.slope * right.slope / (right.curvature + limits.l2) - unsplit;
        if (gain > best.gain) best = {gain, column, static_cast<std::uint8_t>(b)};
    }
}

// One tree in the making; histograms lie by node, column and bin.
class Tree {
  public:
    Tree(const std::uint8_t *bins, std::size_t n, const std::int32_t *drawn, std::size_t n_drawn,
         std::size_t n_bins, const double *slope, const double *curvature, std::int32_t *leaf)
        : bins_(bins), n_(n), drawn_(drawn), n_drawn_(n_drawn), n_bins_(n_bins), slope_(slope),
          curvature_(curvature), leaf_(leaf), items_(n), sums_(n_drawn * n_bins) {
        for (std::size_t i = 0; i < n; ++i) items_[i] = i;
        count();
    }

    // Finds the split of each of the level's nodes and moves the items on.
    void split(std::size_t n_nodes, Limits limits, std::int32_t *column, std::uint8_t *cut) {
        best_.assign(n_nodes, Split{});
        for (std::size_t v = 0; v < n_nodes; ++v) {
            for (std::size_t k = 0; k < n_drawn_; ++k)
                improve(best_[v], sums_of(v) + k * n_bins_, n_bins_, drawn_[k], limits);
            column[v] = best_[v].column;
            cut[v] = best_[v].cut;
        }
        for (std::size_t i = 0; i < n_; ++i) {
            const Split &split = best_[leaf_[i]];
            leaf_[i] = 2 * leaf_[i] + (bins_[std::size_t(split.column) * n_ + i] > split.cut);
        }
    }

    // Counts the smaller child of each of n_nodes nodes; the rest of the parent is the other's.
    void count_children(std::size_t n_nodes) {
        std::vector<std::size_t> size(2 * n_nodes);
        for (std::size_t i = 0; i < n_; ++i) ++size[leaf_[i]];
        auto smaller = [&](std::size_t child) {
            return size[child] < size[child ^ 1] || (size[child] == size[child ^ 1] && child % 2 == 0);
        };
        items_.clear();
        for (std::size_t i = 0; i < n_; ++i)
            if (smaller(leaf_[i])) items_.push_back(i);
        parents_.swap(sums_);
        sums_.assign(2 * parents_.size(), Sums{});
        count();
        const std::size_t width = n_drawn_ * n_bins_;
        for (std::size_t child = 0; child < 2 * n_nodes; ++child) {
            if (smaller(child)) continue;
            const Sums *parent = parents_.data() + child / 2 * width, *other = sums_of(child ^ 1);
            Sums *mine = sums_of(child);
            for (std::size_t b = 0; b < width; ++b)
                mine[b] = {parent[b].slope - other[b].slope, parent[b].curvature - other[b].curvature};
        }
    }

  private:
    Sums *sums_of(std::size_t node) { return sums_.data() + node * n_drawn_ * n_bins_; }

    // Four columns at a time share what is known of an item; every sum still runs in the order of the items.
    void count() {
        std::size_t k = 0;
        for (; k + 4 <= n_drawn_; k += 4) count_columns<4>(k);
        for (; k < n_drawn_; ++k) count_columns<1>(k);
    }

    template <std::size_t kColumns>
    void count_columns(std::size_t k) {
        const std::uint8_t *bin[kColumns];
        for (std::size_t c = 0; c < kColumns; ++c) bin[c] = bins_ + std::size_t(drawn_[k + c]) * n_;
        const std::size_t width = n_drawn_ * n_bins_, n_bins = n_bins_;
        Sums *sums = sums_.data() + k * n_bins;
        for (const std::size_t i : items_) {
            const Sums more{slope_[i], curvature_[i]};
            Sums *of_column = sums + static_cast<std::size_t>(leaf_[i]) * width;
            for (std::size_t c = 0; c < kColumns; ++c) of_column[c * n_bins + bin[c][i]] += more;
        }
    }

    const std::uint8_t *bins_;
    std::size_t n_;
    const std::int32_t *drawn_;
    std::size_t n_drawn_, n_bins_;
    const double *slope_, *curvature_;
    std::int32_t *leaf_;
    std::vector<std::size_t> items_;
    std::vector<Sums> sums_, parents_;
    std::vector<Split> best_;
};

void check_growth(const Array<const std::uint8_t, 2> &bins, const Array<const std::int32_t, 1> &drawn,
                  const Array<const double, 2> &slope, const Array<const double, 2> &curvature, std::int64_t depth,
                  const Array<std::int32_t, 2> &column, const Array<std::uint8_t, 2> &cut,
                  const Array<std::int32_t, 2> &leaf, std::int64_t n_threads) {
    const hetcal::Checks check("grow_boosted_trees");
    const std::size_t n = bins.shape(1), n_scores = slope.shape(0);
    const std::size_t n_leaves = std::size_t(1) << check.count(depth, "depth", 0, 24);
    check.count(n_threads, "n_threads", 1);
    check.length(n, "items", 1);
    check.length(bins.shape(0), "columns of bins", 1);
    check.length(drawn.shape(0), "drawn columns", 1);
    check.aligned(drawn, "drawn");
    check.indices(drawn.data(), drawn.shape(0), "drawn", bins.shape(0));
    check.shape(slope, "slope", {n_scores, n});
    check.shape(curvature, "curvature", {n_scores, n});
    check.shape(column, "column", {n_scores, n_leaves - 1});
    check.shape(cut, "cut", {n_scores, n_leaves - 1});
    check.shape(leaf, "leaf", {n_scores, n});
    check.product(check.product(drawn.shape(0), 256 * sizeof(Sums), "drawn"), n_leaves, "the sums of a level");
}

// Grows the trees of one round, one per score.
void grow_boosted_trees(Array<const std::uint8_t, 2> bins, Array<const std::int32_t, 1> drawn,
                        Array<const double, 2> slope, Array<const double, 2> curvature, std::int64_t depth,
                        double l2, double least_mass, Array<std::int32_t, 2> column,
                        Array<std::uint8_t, 2> cut, Array<std::int32_t, 2> leaf,
                        std::int64_t n_threads) {
    nb::gil_scoped_release release;
    const std::size_t n = bins.shape(1), n_scores = slope.shape(0);
    check_growth(bins, drawn, slope, curvature, depth, column, cut, leaf, n_threads);
    const std::size_t n_levels = static_cast<std::size_t>(depth), n_nodes = column.shape(1);
    const std::size_t n_workers = hetcal::worker_count(static_cast<std::size_t>(n_threads), n_scores);
    std::fill_n(leaf.data(), leaf.size(), 0);
    std::uint8_t largest = 0;
    for (std::size_t k = 0; k < drawn.shape(0); ++k) {
        const std::uint8_t *bin = bins.data() + std::size_t(drawn(k)) * n;
        largest = std::max(largest, *std::max_element(bin, bin + n));
    }
    hetcal::parallel_for(n_scores, n_workers, [&](std::size_t s, std::size_t) {
        Tree tree(bins.data(), n, drawn.data(), drawn.shape(0), std::size_t(largest) + 1,
                  slope.data() + s * n, curvature.data() + s * n, leaf.data() + s * n);
        for (std::size_t level = 0; level < n_levels; ++level) {
            const std::size_t width = std::size_t(1) << level, first = s * n_nodes + width - 1;
            if (level > 0) tree.count_children(width / 2);
            tree.split(width, {l2, least_mass}, column.data() + first, cut.data() + first);
        }
    });
}

// Adds what the leaves of all trees say to the scores of each item. All nodes are checked before many rows; few rows
// meet few nodes, which are checked when they do.
void add_boosted_leaves(Array<const double, 2> X, Array<const std::int32_t, 3> column,
                        Array<const double, 3> threshold, Array<const double, 3> value,
                        Array<double, 2> scores) {
    const hetcal::Checks check("add_boosted_leaves");
    const std::size_t n_rounds = column.shape(0), n_scores = column.shape(1), n_nodes = column.shape(2);
    const std::size_t n_trees = n_rounds * n_scores, n_columns = X.shape(1);
    check.aligned(X, "X");
    check.aligned(column, "column");
    if (((n_nodes + 1) & n_nodes) != 0) check.refuse("column", "have 2**depth - 1 nodes in a tree", n_nodes);
    check.shape(threshold, "threshold", {n_rounds, n_scores, n_nodes});
    check.shape(value, "value", {n_rounds, n_scores, n_nodes + 1});
    check.shape(scores, "scores", {X.shape(0), n_scores});
    nb::gil_scoped_release release;
    const bool check_all = X.shape(0) > n_nodes;
    if (check_all) check.indices(column.data(), column.size(), "column", n_columns);
    auto add = [=](auto checked, double *score) {
        for (std::size_t i = 0; i < X.shape(0); ++i, score += n_scores) {
            const double *x = X.data() + i * n_columns, *bound = threshold.data(), *held = value.data();
            const std::int32_t *at = column.data();
            for (std::size_t t = 0; t < n_trees; ++t, at += n_nodes, bound += n_nodes, held += n_nodes + 1) {
                std::size_t node = 0;
                while (node < n_nodes) {
                    const std::uint32_t k = static_cast<std::uint32_t>(at[node]);
                    if (!checked && k >= n_columns)
                        check.refuse_index(t * n_nodes + node, at[node], "column", n_columns);
                    node = 2 * node + 1 + (x[k] > bound[node]);
                }
                score[t % n_scores] += held[node - n_nodes];
            }
        }
    };
    if (check_all)
        add(std::true_type(), scores.data());
    else
        add(std::false_type(), scores.data());
}

}  // namespace

void register_boosting(nb::module_ &m) {
    m.def("grow_boosted_trees", &grow_boosted_trees, nb::arg("bins"), nb::arg("drawn"),
          nb::arg("slope"), nb::arg("curvature"), nb::arg("depth"), nb::arg("l2"),
          nb::arg("least_mass"), nb::arg("column").noconvert(), nb::arg("cut").noconvert(),
          nb::arg("leaf").noconvert(), nb::arg("n_threads"));
    m.def("add_boosted_leaves", &add_boosted_leaves, nb::arg("X"), nb::arg("column"),
          nb::arg("threshold"), nb::arg("value"), nb::arg("scores").noconvert());
}
