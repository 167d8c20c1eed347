// Leaf-wise trees of gradient boosting on binned features, for several fits to the same items side by side.
//
// Derivatives and weights are summed as whole numbers, so that sums depend on no order and the rest of a parent is
// exactly its other child: the pure twin finds the same trees to the last bit.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "checks.hpp"
#include "forest_arrays.hpp"
#include "parallel.hpp"
#include "tree_arrays.hpp"

namespace hetcal {
namespace {

template <class T>
using CubeIn = nb::ndarray<const T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <class T>
using CubeOut = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t kSlots = 64;  // bins of a feature; the last is for missing values
constexpr std::uint8_t kMissingSlot = 63;
constexpr double kLeastGain = 1e-10;
constexpr double kMostSlope = 4503599627370496.0, kMostHalf = 4294967295.0;  // 2^52, 2^32 - 1

// Unsigned, because numbers that are too large must not be undefined.
struct Sums {
    std::uint64_t slope = 0;
    std::uint64_t halves = 0;  // curvature in the upper 32 bits, weight in the lower

    void operator+=(const Sums &more) {
        slope += more.slope;
        halves += more.halves;
    }
    void operator-=(const Sums &less) {
        slope -= less.slope;
        halves -= less.halves;
    }
    std::uint32_t weight() const { return static_cast<std::uint32_t>(halves); }
};

Sums operator+(Sums one, const Sums &other) {
    one += other;
    return one;
}

Sums operator-(Sums one, const Sums &other) {
    one -= other;
    return one;
}

struct Settings {
    double slope_unit, half_unit, l2, learning_rate;
    std::size_t most_leaves;

    double slope(const Sums &sums) const {
        return static_cast<double>(static_cast<std::int64_t>(sums.slope)) * (1 / slope_unit);
    }
    double mass(const Sums &sums) const {
        return static_cast<double>(static_cast<std::uint32_t>(sums.halves >> 32)) * (1 / half_unit) + l2;
    }
    double worth(const Sums &sums) const {
        const double G = slope(sums);
        return G * G / mass(sums);
    }
};

struct Split {
    double gain = kLeastGain;
    std::size_t feature = 0;
    std::uint8_t cut = 0;  // the last slot to the left
    bool missing_left = false, found = false;
};

// The node arrays of one tree, in the caller's memory.
struct TreeOut {
    std::int32_t *feature, *left;
    std::uint8_t *cut, *missing_left;
    double *value;
};

struct Data {
    const std::uint8_t *slots;  // by item and feature
    std::size_t n_items, n_features;
};

// Grows one tree after the other; its memory serves them all.
class LeafwiseTree {
  public:
    LeafwiseTree(const Data &data, const Settings &settings)
        : data_(data), settings_(settings), sums_(data.n_items), histograms_(settings.most_leaves) {
        items_.reserve(data.n_items);
        for (auto &histogram : histograms_) histogram.resize(data.n_features * kSlots);
    }

    // Takes what one item counts; those that do not learn are only told what the tree says of them.
    void add_item(std::size_t i, const Sums &sums) {
        items_.push_back(static_cast<std::uint32_t>(i));
        sums_[i] = sums;
    }

    void grow(double least_weight, const std::uint8_t *learning, TreeOut out, double *scores) {
        least_weight_ = least_weight * settings_.half_unit;
        Sums all;
        for (const std::uint32_t i : items_) all += sums_[i];
        nodes_.assign(1, {0, items_.size(), all, Split{}, 0});
        count(nodes_[0]);
        find_split(nodes_[0]);
        for (std::size_t n_leaves = 1; n_leaves < settings_.most_leaves; ++n_leaves) {
            const std::size_t best = most_gain();
            if (!nodes_[best].split.found) break;
            split(best, n_leaves + 1 < settings_.most_leaves, n_leaves, out);
        }
        finish(out, scores);
        for (std::size_t i = 0; i < data_.n_items; ++i)
            if (!learning[i]) scores[i] += out.value[leaf_of(i, out)];
        items_.clear();
    }

  private:
    struct Node {
        std::size_t begin, end;
        Sums sums;
        Split split;  // none once it is done
        std::size_t histogram;
        std::int32_t left = -1;
    };

    std::size_t most_gain() const {
        std::size_t best = 0;
        for (std::size_t v = 1; v < nodes_.size(); ++v)
            if (nodes_[v].split.gain > nodes_[best].split.gain) best = v;
        return best;
    }

    void count(const Node &node) {
        Sums *histogram = histograms_[node.histogram].data();
        std::fill_n(histogram, data_.n_features * kSlots, Sums{});
        for (std::size_t p = node.begin; p < node.end; ++p) {
            const std::uint8_t *slot = data_.slots + items_[p] * data_.n_features, *end = slot + data_.n_features;
            const Sums sums = sums_[items_[p]];
            Sums *of_feature = histogram;
            // Four at a time: addresses are then constants beside one pointer.
            for (; end - slot >= 4; slot += 4, of_feature += 4 * kSlots) {
                of_feature[slot[0]] += sums;
                of_feature[kSlots + slot[1]] += sums;
                of_feature[2 * kSlots + slot[2]] += sums;
                of_feature[3 * kSlots + slot[3]] += sums;
            }
            for (; slot < end; ++slot, of_feature += kSlots) of_feature[*slot] += sums;
        }
    }

    bool may_split(const Node &node) const { return node.sums.weight() >= 2 * least_weight_; }

    void find_split(Node &node) const {
        if (!may_split(node)) return;
        const Sums *histogram = histograms_[node.histogram].data();
        const double unsplit = settings_.worth(node.sums);
        for (std::size_t f = 0; f < data_.n_features; ++f) improve(node, histogram + f * kSlots, f, unsplit);
    }

    void improve(Node &node, const Sums *slots, std::size_t f, double unsplit) const {
        const Sums &missing = slots[kMissingSlot];
        const bool any_missing = missing.weight() > 0;
        Sums left;
        auto consider = [&](const Sums &here, std::size_t b, bool missing_left) {
            const Sums rest = node.sums - here;
            if (here.weight() < least_weight_ || rest.weight() < least_weight_) return;
            const double gain = settings_.worth(here) + settings_.worth(rest) - unsplit;
            if (gain > node.split.gain)
                node.split = {gain, f, static_cast<std::uint8_t>(b),
                              any_missing ? missing_left : here.weight() > rest.weight(), true};
        };
        for (std::size_t b = 0; b < kMissingSlot; ++b) {
            left += slots[b];
            if (slots[b].weight() == 0) continue;
            consider(left, b, false);
            if (any_missing) consider(left + missing, b, true);
        }
    }

    void split(std::size_t parent, bool may_go_on, std::size_t fresh, TreeOut out) {
        const Split split = nodes_[parent].split;
        const std::size_t begin = nodes_[parent].begin, end = nodes_[parent].end;
        const std::size_t middle = partition(begin, end, split);
        Node one{begin, middle, Sums{}, Split{}, fresh}, two{middle, end, Sums{}, Split{}, fresh};
        for (std::size_t p = begin; p < middle; ++p) one.sums += sums_[items_[p]];
        two.sums = nodes_[parent].sums - one.sums;
        const bool left_is_smaller = middle - begin <= end - middle;
        Node &smaller = left_is_smaller ? one : two, &larger = left_is_smaller ? two : one;
        larger.histogram = nodes_[parent].histogram;
        if (may_go_on && (may_split(one) || may_split(two))) {
            count(smaller);
            Sums *rest = histograms_[larger.histogram].data();
            const Sums *taken = histograms_[smaller.histogram].data();
            for (std::size_t b = 0; b < data_.n_features * kSlots; ++b) rest[b] -= taken[b];
            find_split(one);
            find_split(two);
        }
        out.feature[parent] = static_cast<std::int32_t>(split.feature);
        out.cut[parent] = split.cut;
        out.missing_left[parent] = split.missing_left;
        nodes_[parent].left = static_cast<std::int32_t>(nodes_.size());
        nodes_[parent].split = Split{};
        nodes_.push_back(one);
        nodes_.push_back(two);
    }

    bool goes_left(std::size_t item, std::size_t feature, std::uint8_t cut, bool missing_left) const {
        const std::uint8_t slot = data_.slots[item * data_.n_features + feature];
        return slot == kMissingSlot ? missing_left : slot <= cut;
    }

    std::size_t partition(std::size_t begin, std::size_t end, const Split &split) {
        moved_.clear();
        std::size_t middle = begin;
        for (std::size_t p = begin; p < end; ++p) {
            const std::uint32_t item = items_[p];
            if (goes_left(item, split.feature, split.cut, split.missing_left))
                items_[middle++] = item;
            else
                moved_.push_back(item);
        }
        std::copy(moved_.begin(), moved_.end(), items_.begin() + static_cast<std::ptrdiff_t>(middle));
        return middle;
    }

    // Values of the leaves, and what they add to the scores of the items in them.
    void finish(TreeOut out, double *scores) const {
        for (std::size_t v = 0; v < nodes_.size(); ++v) {
            const Node &node = nodes_[v];
            out.left[v] = node.left;
            if (node.left >= 0) continue;
            out.value[v] = -settings_.learning_rate * (settings_.slope(node.sums) / settings_.mass(node.sums));
            for (std::size_t p = node.begin; p < node.end; ++p) scores[items_[p]] += out.value[v];
        }
    }

    std::size_t leaf_of(std::size_t item, TreeOut out) const {
        std::size_t v = 0;
        while (out.left[v] >= 0) {
            const auto feature = static_cast<std::size_t>(out.feature[v]);
            const bool left = goes_left(item, feature, out.cut[v], out.missing_left[v] != 0);
            v = static_cast<std::size_t>(out.left[v]) + !left;
        }
        return v;
    }

    const Data data_;
    const Settings settings_;
    double least_weight_ = 0;
    std::vector<Sums> sums_;
    std::vector<std::uint32_t> items_, moved_;
    std::vector<std::vector<Sums>> histograms_;
    std::vector<Node> nodes_;
};

// Grows the trees of one round, one per fit and score, and adds what they say to the scores of all items.
void grow_leafwise_trees(MatrixIn<std::uint8_t> slots, MatrixIn<std::uint8_t> learns, VectorIn<double> weight,
                         VectorIn<double> least_weight, CubeIn<double> slope, CubeIn<double> curvature,
                         double slope_unit, double half_unit, double l2, double learning_rate,
                         CubeOut<std::int32_t> feature, CubeOut<std::int32_t> left, CubeOut<std::uint8_t> cut,
                         CubeOut<std::uint8_t> missing_left, CubeOut<double> value, CubeOut<double> scores,
                         std::int64_t n_threads) {
    const Checks check("grow_leafwise_trees");
    const std::size_t n = slots.shape(0), n_features = slots.shape(1);
    const std::size_t n_fits = slope.shape(0), n_scores = slope.shape(1), n_nodes = feature.shape(2);
    check.length(n, "items", 1);
    check.length(n_features, "features", 1);
    if (n_nodes % 2 == 0) check.refuse("feature", "have an odd number of nodes in a tree", n_nodes);
    check.shape(learns, "learns", {n_fits, n});
    check.shape(weight, "weight", {n});
    check.shape(least_weight, "least_weight", {n_fits});
    check.shape(slope, "slope", {n_fits, n_scores, n});
    check.shape(curvature, "curvature", {n_fits, n_scores, n});
    check.shape(scores, "scores", {n_fits, n_scores, n});
    check.shape(feature, "feature", {n_fits, n_scores, n_nodes});
    check.shape(left, "left", {n_fits, n_scores, n_nodes});
    check.shape(cut, "cut", {n_fits, n_scores, n_nodes});
    check.shape(missing_left, "missing_left", {n_fits, n_scores, n_nodes});
    check.shape(value, "value", {n_fits, n_scores, n_nodes});
    check.indices(slots.data(), slots.size(), "slots", kSlots);
    const double numbers[] = {slope_unit, half_unit, l2, learning_rate};
    auto positive = [](double number) { return number > 0 && std::isfinite(number); };
    check.values(numbers, 4, "slope_unit, half_unit, l2, learning_rate", "be positive", positive);
    check.values(least_weight.data(), n_fits, "least_weight", "be positive", positive);
    const std::size_t n_trees = n_fits * n_scores, most_leaves = n_nodes / 2 + 1;
    check.product(check.product(n_features, kSlots * sizeof(Sums), "features"), most_leaves, "leaves");
    const std::size_t n_workers = worker_count(check.count(n_threads, "n_threads", 1), n_trees);
    auto good_slope = [=](double x) { return std::fabs(x) * slope_unit <= kMostSlope; };
    auto good_half = [=](double x) { return x >= 0 && x * half_unit <= kMostHalf; };
    nb::gil_scoped_release release;
    check.values(slope.data(), slope.size(), "slope", "be at most 2**52 units", good_slope);
    check.values(curvature.data(), curvature.size(), "curvature", "be less than 2**32 units", good_half);
    check.values(weight.data(), n, "weight", "be less than 2**32 units", good_half);
    const Data data{slots.data(), n, n_features};
    std::vector<LeafwiseTree> growers;
    for (std::size_t w = 0; w < n_workers; ++w)
        growers.emplace_back(data, Settings{slope_unit, half_unit, l2, learning_rate, most_leaves});
    parallel_for(n_trees, n_workers, [&](std::size_t t, std::size_t worker) {
        const std::uint8_t *learning = learns.data() + t / n_scores * n;
        const double *G = slope.data() + t * n, *H = curvature.data() + t * n;
        LeafwiseTree &grower = growers[worker];
        for (std::size_t i = 0; i < n; ++i) {
            if (!learning[i]) continue;
            const auto whole = static_cast<std::uint64_t>(static_cast<std::int64_t>(G[i] * slope_unit));
            const auto upper = static_cast<std::uint64_t>(H[i] * half_unit) << 32;
            grower.add_item(i, {whole, upper | static_cast<std::uint64_t>(weight(i) * half_unit)});
        }
        const std::size_t at = t * n_nodes;
        const TreeOut out{feature.data() + at, left.data() + at, cut.data() + at, missing_left.data() + at,
                          value.data() + at};
        grower.grow(least_weight(t / n_scores), learning, out, scores.data() + t * n);
    });
}

// Trees with values, proven when they are made and not changed afterwards.
class PackedBoosting {
  public:
    PackedBoosting(VectorIn<std::int32_t> feature, VectorIn<double> threshold, VectorIn<std::int32_t> left,
                   VectorIn<std::int32_t> right, VectorIn<std::uint8_t> missing_left, VectorIn<double> value,
                   VectorIn<std::int64_t> tree_offset, std::int64_t n_features) {
        const Checks check("PackedBoosting");
        check.shape(value, "value", {left.shape(0)});
        const TreeArrays trees(check, feature, threshold, left, right, missing_left, tree_offset, n_features);
        n_features_ = trees.n_features;
        roots_.assign(trees.offset, trees.offset + trees.n_trees);
        nodes_.reserve(trees.n_nodes);
        for (std::size_t v = 0; v < trees.n_nodes; ++v) {
            const double number = left(v) < 0 ? value(v) : threshold(v);
            nodes_.push_back({number, feature(v), left(v), right(v), missing_left(v)});
        }
    }

    // Adds what the leaves say, tree by tree and in order: sums of floating-point numbers depend on it.
    void add(MatrixIn<double> X, MatrixOut<double> scores) const {
        const Checks check("PackedBoosting.add");
        const std::size_t n_rows = X.shape(0), n_scores = scores.shape(1);
        check.shape(X, "X", {n_rows, n_features_});
        check.length(n_scores, "columns of scores", 1);
        check.shape(scores, "scores", {n_rows, n_scores});
        nb::gil_scoped_release release;
        for (std::size_t first = 0; first < n_rows; first += kRows)
            for (std::size_t t = 0; t < roots_.size(); ++t) {
                double *score = scores.data() + first * n_scores + t % n_scores;
                for (std::size_t i = first; i < std::min(n_rows, first + kRows); ++i, score += n_scores)
                    *score += leaf_value(X.data() + i * n_features_, roots_[t]);
            }
    }

  private:
    struct Node {
        double number;  // the threshold, or the value of a leaf
        std::int32_t feature, left, right;
        std::uint8_t missing_left;
    };
    static constexpr std::size_t kRows = 64;

    double leaf_value(const double *x, std::int64_t root) const {
        const Node *node = nodes_.data() + root;
        while (node->left >= 0) {
            const double value = x[node->feature];
            const bool left = std::isnan(value) ? node->missing_left != 0 : value <= node->number;
            node = nodes_.data() + (left ? node->left : node->right);
        }
        return node->number;
    }

    std::vector<Node> nodes_;
    std::vector<std::int64_t> roots_;
    std::size_t n_features_ = 0;
};

}  // namespace
}  // namespace hetcal

void register_boosting_binned(nanobind::module_ &m) {
    namespace nb = nanobind;
    using namespace hetcal;
    m.def("grow_leafwise_trees", &grow_leafwise_trees, nb::arg("slots"), nb::arg("learns"), nb::arg("weight"),
          nb::arg("least_weight"), nb::arg("slope"), nb::arg("curvature"), nb::arg("slope_unit"), nb::arg("half_unit"),
          nb::arg("l2"), nb::arg("learning_rate"), nb::arg("feature").noconvert(), nb::arg("left").noconvert(),
          nb::arg("cut").noconvert(), nb::arg("missing_left").noconvert(), nb::arg("value").noconvert(),
          nb::arg("scores").noconvert(), nb::arg("n_threads"));
    nb::class_<PackedBoosting>(m, "PackedBoosting")
        .def(nb::init<VectorIn<std::int32_t>, VectorIn<double>, VectorIn<std::int32_t>, VectorIn<std::int32_t>,
                      VectorIn<std::uint8_t>, VectorIn<double>, VectorIn<std::int64_t>, std::int64_t>())
        .def("add", &PackedBoosting::add, nb::arg("X"), nb::arg("scores").noconvert());
}
