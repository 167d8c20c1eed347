// Rows through a forest: leaf numbers, and sums over trees of what each leaf holds.
#include <algorithm>
#include <limits>
#include <stdexcept>
#include <vector>

#include "forest_arrays.hpp"
#include "forest_nodes.hpp"
#include "forest_parallel.hpp"

namespace hetcal {
namespace {

using Nodes = MatrixIn<std::int32_t>;  // n_nodes x 4: PackedNode

float round_down(double x) {
    const float nearest = static_cast<float>(x);
    return static_cast<double>(nearest) > x ? std::nextafter(nearest, -std::numeric_limits<float>::infinity())
                                            : nearest;
}

// Packs the nodes of every tree in breadth-first order; `roots` receives the position of each tree's root.
void pack_forest(VectorIn<std::int32_t> feature, VectorIn<double> threshold, VectorIn<std::int32_t> left,
                 VectorIn<std::int32_t> right, VectorIn<std::uint8_t> missing_left,
                 VectorIn<std::int32_t> leaf_index, VectorIn<std::int64_t> tree_offset,
                 MatrixOut<std::int32_t> packed, VectorOut<std::int32_t> roots) {
    auto *nodes = reinterpret_cast<PackedNode *>(packed.data());
    const std::size_t n_trees = tree_offset.shape(0) - 1;
    std::vector<std::int32_t> queue;
    for (std::size_t t = 0; t < n_trees; ++t) {
        const std::int32_t base = static_cast<std::int32_t>(tree_offset(t));
        queue.assign(1, base);
        roots(t) = base;
        for (std::size_t q = 0; q < queue.size(); ++q) {
            const std::int32_t old = queue[q], self = base + static_cast<std::int32_t>(q);
            if (left(old) < 0) {
                nodes[self] = {std::numeric_limits<float>::infinity(), 0, self, leaf_index(old)};
                continue;
            }
            nodes[self] = {round_down(threshold(old)), feature(old),
                           base + static_cast<std::int32_t>(queue.size()), missing_left(old)};
            queue.push_back(left(old));
            queue.push_back(right(old));
        }
    }
}

// A block of rows as contiguous float32.
class RowBlock {
  public:
    template <class T>
    void load(const StridedMatrixIn<T> &Z, std::size_t first, std::size_t n_rows) {
        n_features_ = Z.shape(1);
        values_.resize(n_rows * n_features_);
        const std::int64_t down = Z.stride(0), across = Z.stride(1);
        const T *source = Z.data() + static_cast<std::int64_t>(first) * down;
        bool missing = false;
        for (std::size_t r = 0; r < n_rows; ++r, source += down) {
            float *target = values_.data() + r * n_features_;
            if (across == 1)
                for (std::size_t f = 0; f < n_features_; ++f) {
                    target[f] = static_cast<float>(source[f]);
                    missing |= target[f] != target[f];
                }
            else
                for (std::size_t f = 0; f < n_features_; ++f) {
                    target[f] = static_cast<float>(source[static_cast<std::int64_t>(f) * across]);
                    missing |= target[f] != target[f];
                }
        }
        has_missing = missing;
    }
    const float *row(std::size_t r) const { return values_.data() + r * n_features_; }

    bool has_missing = false;

  private:
    std::vector<float> values_;
    std::size_t n_features_ = 0;
};

// Calls visit(row, tree, leaf) for every pair of the block; for each row trees come in order.
template <bool kMissing, class Visit>
void visit_leaves(const PackedNode *nodes, const std::int32_t *roots, std::size_t n_trees, const RowBlock &block,
                  std::size_t n_rows, Visit visit) {
    std::int32_t at[kLanes];
    const float *row[kLanes];
    const std::size_t whole = n_rows - n_rows % kLanes;
    for (std::size_t t = 0; t < n_trees; ++t)
        for (std::size_t r = 0; r < whole; r += kLanes) {
            for (int lane = 0; lane < kLanes; ++lane) {
                at[lane] = roots[t];
                row[lane] = block.row(r + lane);
            }
            walk<kMissing>(nodes, at, row);
            for (int lane = 0; lane < kLanes; ++lane) visit(r + lane, t, nodes[at[lane]].extra);
        }
    for (std::size_t r = whole; r < n_rows; ++r)  // the rest: several trees at once instead of several rows
        for (std::size_t t = 0; t < n_trees; t += kLanes) {
            const int used = static_cast<int>(std::min<std::size_t>(kLanes, n_trees - t));
            for (int lane = 0; lane < kLanes; ++lane) {
                at[lane] = roots[t + std::min(lane, used - 1)];
                row[lane] = block.row(r);
            }
            walk<kMissing>(nodes, at, row);
            for (int lane = 0; lane < used; ++lane) visit(r, t + lane, nodes[at[lane]].extra);
        }
}

// Splits the rows of Z into blocks that fit the cache and calls visit(row, tree, leaf) for all of them.
template <class T, class Visit>
void visit_forest(const PackedNode *nodes, const VectorIn<std::int32_t> &roots, const StridedMatrixIn<T> &Z,
                  std::size_t n_jobs, Visit visit) {
    constexpr std::size_t kBlockBytes = 192 * 1024;
    const std::size_t n = Z.shape(0), row_bytes = sizeof(float) * std::max<std::size_t>(Z.shape(1), 1);
    const std::size_t rows = std::min<std::size_t>(std::max<std::size_t>(kBlockBytes / row_bytes, 32), 4096) / 8 * 8;
    std::vector<RowBlock> blocks(std::max<std::size_t>(n_jobs, 1));
    parallel_for((n + rows - 1) / rows, n_jobs, [&](std::size_t task, std::size_t worker) {
        const std::size_t first = task * rows, count = std::min(rows, n - first);
        RowBlock &block = blocks[worker];
        block.load(Z, first, count);
        auto shifted = [&](std::size_t r, std::size_t t, std::int32_t leaf) { visit(first + r, t, leaf); };
        if (block.has_missing)
            visit_leaves<true>(nodes, roots.data(), roots.shape(0), block, count, shifted);
        else
            visit_leaves<false>(nodes, roots.data(), roots.shape(0), block, count, shifted);
    });
}

const PackedNode *as_nodes(const Nodes &packed) { return reinterpret_cast<const PackedNode *>(packed.data()); }

template <class T>
void apply_forest(Nodes packed, VectorIn<std::int32_t> roots, StridedMatrixIn<T> Z, MatrixOut<std::int32_t> leaves,
                  std::size_t n_jobs) {
    nb::gil_scoped_release release;
    const std::size_t n_trees = roots.shape(0);
    std::int32_t *out = leaves.data();
    visit_forest(as_nodes(packed), roots, Z, n_jobs,
                 [=](std::size_t r, std::size_t t, std::int32_t leaf) { out[r * n_trees + t] = leaf; });
}

// votes[row] += sum over trees of mass[leaf], mass dense (n_leaves x n_classes).
template <class T>
void vote_dense(Nodes packed, VectorIn<std::int32_t> roots, StridedMatrixIn<T> Z, MatrixIn<double> mass,
                MatrixOut<double> votes, std::size_t n_jobs) {
    nb::gil_scoped_release release;
    const std::size_t K = mass.shape(1);
    const double *held = mass.data();
    double *out = votes.data();
    if (K == 2) {
        visit_forest(as_nodes(packed), roots, Z, n_jobs, [=](std::size_t r, std::size_t, std::int32_t leaf) {
            out[2 * r] += held[2 * static_cast<std::size_t>(leaf)];
            out[2 * r + 1] += held[2 * static_cast<std::size_t>(leaf) + 1];
        });
        return;
    }
    visit_forest(as_nodes(packed), roots, Z, n_jobs, [=](std::size_t r, std::size_t, std::int32_t leaf) {
        for (std::size_t k = 0; k < K; ++k) out[r * K + k] += held[static_cast<std::size_t>(leaf) * K + k];
    });
}

// The same with mass by rows of (class, value) pairs: leaves hold few of many classes.
template <class T>
void vote_sparse(Nodes packed, VectorIn<std::int32_t> roots, StridedMatrixIn<T> Z, VectorIn<std::int64_t> indptr,
                 VectorIn<std::int32_t> classes, VectorIn<double> values, MatrixOut<double> votes,
                 std::size_t n_jobs) {
    nb::gil_scoped_release release;
    const std::size_t K = votes.shape(1);
    const std::int64_t *start = indptr.data();
    const std::int32_t *k = classes.data();
    const double *held = values.data();
    double *out = votes.data();
    visit_forest(as_nodes(packed), roots, Z, n_jobs, [=](std::size_t r, std::size_t, std::int32_t leaf) {
        for (std::int64_t e = start[leaf]; e < start[leaf + 1]; ++e) out[r * K + k[e]] += held[e];
    });
}

template <class T>
void register_for(nb::module_ &m) {
    m.def("apply_forest", &apply_forest<T>, nb::arg("packed"), nb::arg("roots"), nb::arg("Z").noconvert(),
          nb::arg("leaves").noconvert(), nb::arg("n_jobs"));
    m.def("vote_dense", &vote_dense<T>, nb::arg("packed"), nb::arg("roots"), nb::arg("Z").noconvert(),
          nb::arg("mass"), nb::arg("votes").noconvert(), nb::arg("n_jobs"));
    m.def("vote_sparse", &vote_sparse<T>, nb::arg("packed"), nb::arg("roots"), nb::arg("Z").noconvert(),
          nb::arg("indptr"), nb::arg("classes"), nb::arg("values"), nb::arg("votes").noconvert(),
          nb::arg("n_jobs"));
}

}  // namespace
}  // namespace hetcal

void register_forest_walk(nanobind::module_ &m) {
    namespace nb = nanobind;
    m.def("pack_forest", &hetcal::pack_forest, nb::arg("feature"), nb::arg("threshold"), nb::arg("left"),
          nb::arg("right"), nb::arg("missing_left"), nb::arg("leaf_index"), nb::arg("tree_offset"),
          nb::arg("packed").noconvert(), nb::arg("roots").noconvert());
    hetcal::register_for<float>(m);
    hetcal::register_for<double>(m);
}
