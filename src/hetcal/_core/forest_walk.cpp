// Rows through a forest: leaf numbers, and sums over trees of what each leaf holds.
#include <algorithm>
#include <limits>
#include <vector>

#include "checks.hpp"
#include "forest_arrays.hpp"
#include "forest_nodes.hpp"
#include "forest_packets.hpp"
#include "parallel.hpp"
#include "tree_arrays.hpp"

namespace hetcal {
namespace {

float round_down(double x) {
    const float nearest = static_cast<float>(x);
    return static_cast<double>(nearest) > x ? std::nextafter(nearest, -std::numeric_limits<float>::infinity())
                                            : nearest;
}

// The nodes of all trees, each tree in breadth-first order. What a walk relies on is proven when the forest is made
// and cannot be changed afterwards.
class PackedForest {
  public:
    PackedForest(VectorIn<std::int32_t> feature, VectorIn<double> threshold, VectorIn<std::int32_t> left,
                 VectorIn<std::int32_t> right, VectorIn<std::uint8_t> missing_left,
                 VectorIn<std::int32_t> leaf_index, VectorIn<std::int64_t> tree_offset, std::int64_t n_features) {
        const Checks check("PackedForest");
        check.shape(leaf_index, "leaf_index", {left.shape(0)});
        nb::gil_scoped_release release;
        const TreeArrays trees(check, feature, threshold, left, right, missing_left, tree_offset, n_features);
        this->n_features = trees.n_features;
        if (this->n_features > kMostFeatures) check.refuse("n_features", "be at most a billion", n_features);
        nodes.resize(trees.n_nodes);
        for (std::size_t node = 0; node < trees.n_nodes; ++node) n_leaves += left(node) < 0;
        for (std::size_t node = 0; node < trees.n_nodes; ++node)
            if (left(node) < 0) check.indices(leaf_index.data() + node, 1, "leaf_index of a leaf", n_leaves);
        for (std::size_t t = 0; t < trees.n_trees; ++t) pack_tree(trees, t, leaf_index.data());
        narrow.fill(nodes, roots, this->n_features);
    }

    std::vector<PackedNode> nodes;
    std::vector<std::int32_t> roots;  // the place of each tree's root
    NarrowForest narrow;              // the same nodes again, where they fit
    std::size_t n_features = 0, n_leaves = 0;

  private:
    void pack_tree(const TreeArrays &trees, std::size_t t, const std::int32_t *leaf_index) {
        const std::int32_t base = static_cast<std::int32_t>(trees.offset[t]);
        roots.push_back(base);
        std::vector<std::int32_t> queue(1, base);
        for (std::size_t q = 0; q < queue.size(); ++q) {
            const std::int32_t old = queue[q], self = base + static_cast<std::int32_t>(q);
            PackedNode &node = nodes[static_cast<std::size_t>(self)];
            if (trees.left[old] < 0) {
                node = {std::numeric_limits<float>::infinity(), value_place(0, true), self, leaf_index[old]};
                continue;
            }
            node = {round_down(trees.threshold[old]), value_place(trees.feature[old], trees.missing_left[old] != 0),
                    base + static_cast<std::int32_t>(queue.size()), 0};
            queue.push_back(trees.left[old]);
            queue.push_back(trees.right[old]);
        }
    }
};

// A block of rows as contiguous float32, each value twice: see forest_nodes.hpp.
class RowBlock {
  public:
    template <class T>
    void load(const StridedMatrixIn<T> &Z, std::size_t first, std::size_t n_rows) {
        const std::size_t n_features = Z.shape(1);
        width_ = kCopies * n_features;
        values_.resize(n_rows * width_);
        const std::int64_t down = Z.stride(0), across = Z.stride(1);
        const T *source = Z.data() + static_cast<std::int64_t>(first) * down;
        for (std::size_t r = 0; r < n_rows; ++r, source += down)
            for (std::size_t f = 0; f < n_features; ++f)
                store_value(static_cast<float>(source[static_cast<std::int64_t>(f) * across]), f,
                            values_.data() + r * width_);
    }
    const float *row(std::size_t r) const { return values_.data() + r * width_; }

  private:
    std::vector<float> values_;
    std::size_t width_ = 0;
};

// A block of rows in packets, the last one filled up with its last row.
class RowPackets {
  public:
    // Returns how many copies of each value there are: one where none is missing.
    template <class T>
    std::size_t load(const StridedMatrixIn<T> &Z, std::size_t first, std::size_t n_rows) {
        const std::int64_t across = Z.stride(1);
        const bool missing = each_packet(Z, first, n_rows, 1, [&](const T *const *row, std::uint32_t *packet) {
            return across == 1 ? fill_packet(row, Z.shape(1), packet) : fill_packet(row, 0, Z.shape(1), across, packet);
        });
        if (!missing) return 1;
        each_packet(Z, first, n_rows, kCopies, [&](const T *const *row, std::uint32_t *packet) {
            fill_packet_with_copies(row, Z.shape(1), across, packet);
            return false;
        });
        return kCopies;
    }
    const std::uint32_t *data() const { return values_.data(); }

  private:
    // Calls fill(rows, packet) for each packet until it returns true; returns whether it did.
    template <class T, class Fill>
    bool each_packet(const StridedMatrixIn<T> &Z, std::size_t first, std::size_t n_rows, std::size_t n_copies, Fill fill) {
        const std::size_t size = kPacket * n_copies * Z.shape(1);
        values_.resize((n_rows + kPacket - 1) / kPacket * size);
        const T *row[kPacket];
        for (std::size_t done = 0; done < n_rows; done += kPacket) {
            for (std::size_t r = 0; r < kPacket; ++r)
                row[r] = Z.data() + static_cast<std::int64_t>(first + std::min(done + r, n_rows - 1)) * Z.stride(0);
            if (fill(row, values_.data() + done / kPacket * size)) return true;
        }
        return false;
    }

    std::vector<std::uint32_t> values_;
};

// Calls visit(row, tree, leaf) for every pair of the block; for each row trees come in order.
template <class Visit>
void visit_leaves(const PackedForest &forest, const RowBlock &block, std::size_t n_rows, Visit visit) {
    const PackedNode *nodes = forest.nodes.data();
    const std::int32_t *roots = forest.roots.data();
    const std::size_t n_trees = forest.roots.size();
    std::int32_t at[kLanes];
    const float *row[kLanes];
    const std::size_t whole = n_rows - n_rows % kLanes;
    for (std::size_t t = 0; t < n_trees; ++t)
        for (std::size_t r = 0; r < whole; r += kLanes) {
            for (int lane = 0; lane < kLanes; ++lane) {
                at[lane] = roots[t];
                row[lane] = block.row(r + lane);
            }
            walk(nodes, at, row);
            for (int lane = 0; lane < kLanes; ++lane) visit(r + lane, t, nodes[at[lane]].leaf);
        }
    for (std::size_t r = whole; r < n_rows; ++r)  // the rest: several trees at once instead of several rows
        for (std::size_t t = 0; t < n_trees; t += kLanes) {
            const int used = static_cast<int>(std::min<std::size_t>(kLanes, n_trees - t));
            for (int lane = 0; lane < kLanes; ++lane) {
                at[lane] = roots[t + std::min(lane, used - 1)];
                row[lane] = block.row(r);
            }
            walk(nodes, at, row);
            for (int lane = 0; lane < used; ++lane) visit(r, t + lane, nodes[at[lane]].leaf);
        }
}

// Splits the rows of Z into blocks that fit the cache and calls visit(row, tree, leaf) for all of them.
template <class T, class Visit>
void visit_forest(const PackedForest &forest, const StridedMatrixIn<T> &Z, std::size_t n_jobs, Visit visit) {
    constexpr std::size_t kBlockBytes = 384 * 1024, kFewRows = 4;
    const std::size_t n = Z.shape(0), row_bytes = kCopies * sizeof(float) * std::max<std::size_t>(Z.shape(1), 1);
    const std::size_t rows = std::min<std::size_t>(std::max<std::size_t>(kBlockBytes / row_bytes, 32), 4096) / 16 * 16;
    const std::size_t n_tasks = (n + rows - 1) / rows, n_workers = worker_count(n_jobs, n_tasks);
    std::vector<RowBlock> blocks(n_workers);
    std::vector<RowPackets> packets(n_workers);
    parallel_for(n_tasks, n_workers, [&](std::size_t task, std::size_t worker) {
        const std::size_t first = task * rows, count = std::min(rows, n - first);
        auto shifted = [&](std::size_t r, std::size_t t, std::int32_t leaf) { visit(first + r, t, leaf); };
        if (count >= kFewRows && forest.narrow.takes(1)) {
            const std::size_t n_copies = packets[worker].load(Z, first, count);
            if (forest.narrow.takes(n_copies))
                return forest.narrow.walk(packets[worker].data(), n_copies, forest.nodes, count, shifted);
        }
        RowBlock &block = blocks[worker];
        block.load(Z, first, count);
        visit_leaves(forest, block, count, shifted);
    });
}

template <class T>
void check_rows(const Checks &check, const PackedForest &forest, const StridedMatrixIn<T> &Z) {
    check.shape(Z, "Z", {Z.shape(0), forest.n_features});
}

template <class T>
void apply_forest(const PackedForest &forest, StridedMatrixIn<T> Z, MatrixOut<std::int32_t> leaves,
                  std::int64_t n_jobs) {
    const Checks check("PackedForest.apply");
    const std::size_t n_trees = forest.roots.size(), n_workers = check.count(n_jobs, "n_jobs", 1);
    check_rows(check, forest, Z);
    check.shape(leaves, "leaves", {Z.shape(0), n_trees});
    nb::gil_scoped_release release;
    std::int32_t *out = leaves.data();
    visit_forest(forest, Z, n_workers,
                 [=](std::size_t r, std::size_t t, std::int32_t leaf) { out[r * n_trees + t] = leaf; });
}

// votes[row] += sum over trees of mass[leaf], mass dense (n_leaves x n_classes).
template <class T>
void vote_dense(const PackedForest &forest, StridedMatrixIn<T> Z, MatrixIn<double> mass, MatrixOut<double> votes,
                std::int64_t n_jobs) {
    const Checks check("PackedForest.vote_dense");
    const std::size_t K = mass.shape(1), n_workers = check.count(n_jobs, "n_jobs", 1);
    check_rows(check, forest, Z);
    check.shape(mass, "mass", {forest.n_leaves, K});
    check.shape(votes, "votes", {Z.shape(0), K});
    nb::gil_scoped_release release;
    const double *held = mass.data();
    double *out = votes.data();
    if (K == 2) {
        visit_forest(forest, Z, n_workers, [=](std::size_t r, std::size_t, std::int32_t leaf) {
            out[2 * r] += held[2 * static_cast<std::size_t>(leaf)];
            out[2 * r + 1] += held[2 * static_cast<std::size_t>(leaf) + 1];
        });
        return;
    }
    visit_forest(forest, Z, n_workers, [=](std::size_t r, std::size_t, std::int32_t leaf) {
        for (std::size_t k = 0; k < K; ++k) out[r * K + k] += held[static_cast<std::size_t>(leaf) * K + k];
    });
}

// The same with mass by rows of (class, value) pairs: leaves hold few of many classes. All leaves are checked before
// many rows; few rows reach few leaves, which are checked when they do.
template <class T>
void vote_sparse(const PackedForest &forest, StridedMatrixIn<T> Z, VectorIn<std::int64_t> indptr,
                 VectorIn<std::int32_t> classes, VectorIn<double> values, MatrixOut<double> votes,
                 std::int64_t n_jobs) {
    const Checks check("PackedForest.vote_sparse");
    const std::size_t K = votes.shape(1), n_values = values.shape(0), n_workers = check.count(n_jobs, "n_jobs", 1);
    check_rows(check, forest, Z);
    check.shape(indptr, "indptr", {forest.n_leaves + 1});
    check.aligned(values, "values");
    check.shape(classes, "classes", {n_values});
    check.shape(votes, "votes", {Z.shape(0), K});
    nb::gil_scoped_release release;
    const std::int64_t *start = indptr.data();
    const std::int32_t *k = classes.data();
    const double *held = values.data();
    double *out = votes.data();
    auto add = [=](std::size_t r, std::size_t, std::int32_t leaf) {
        for (std::int64_t e = start[leaf]; e < start[leaf + 1]; ++e) out[r * K + k[e]] += held[e];
    };
    if (Z.shape(0) > n_values / std::max<std::size_t>(forest.roots.size(), 1)) {
        check.starts(start, indptr.shape(0), "indptr", n_values);
        check.indices(k, n_values, "classes", K);
        visit_forest(forest, Z, n_workers, add);
        return;
    }
    visit_forest(forest, Z, n_workers, [=](std::size_t r, std::size_t, std::int32_t leaf) {
        const std::int64_t begin = start[leaf], end = start[leaf + 1];
        if (begin < 0 || begin > end || static_cast<std::size_t>(end) > n_values)
            check.refuse("indptr", "rise from 0 to the number of values", begin);
        for (std::int64_t e = begin; e < end; ++e) {
            if (static_cast<std::uint32_t>(k[e]) >= K)
                check.refuse_index(static_cast<std::size_t>(e), k[e], "classes", K);
            out[r * K + static_cast<std::size_t>(k[e])] += held[e];
        }
    });
}

template <class T>
void register_for(nb::class_<PackedForest> &forest) {
    forest
        .def("apply", &apply_forest<T>, nb::arg("Z").noconvert(), nb::arg("leaves").noconvert(), nb::arg("n_jobs"))
        .def("vote_dense", &vote_dense<T>, nb::arg("Z").noconvert(), nb::arg("mass"), nb::arg("votes").noconvert(),
             nb::arg("n_jobs"))
        .def("vote_sparse", &vote_sparse<T>, nb::arg("Z").noconvert(), nb::arg("indptr"), nb::arg("classes"),
             nb::arg("values"), nb::arg("votes").noconvert(), nb::arg("n_jobs"));
}

}  // namespace
}  // namespace hetcal

void register_forest_walk(nanobind::module_ &m) {
    namespace nb = nanobind;
    using hetcal::PackedForest;
    using hetcal::VectorIn;
    nb::class_<PackedForest> forest(m, "PackedForest");
    forest.def(nb::init<VectorIn<std::int32_t>, VectorIn<double>, VectorIn<std::int32_t>, VectorIn<std::int32_t>,
                        VectorIn<std::uint8_t>, VectorIn<std::int32_t>, VectorIn<std::int64_t>, std::int64_t>(),
               nb::arg("feature"), nb::arg("threshold"), nb::arg("left"), nb::arg("right"), nb::arg("missing_left"),
               nb::arg("leaf_index"), nb::arg("tree_offset"), nb::arg("n_features"));
    hetcal::register_for<float>(forest);
    hetcal::register_for<double>(forest);
}
