// What lies in the leaves: the items themselves (inverted index) and the weight of each class.
#include <algorithm>
#include <vector>

#include "forest_arrays.hpp"

namespace hetcal {
namespace {

// leaves: n_items x n_trees, -1 where an item does not count in a tree. Returns (indptr, items): the items of leaf
// l, in increasing order, are items[indptr[l]:indptr[l + 1]].
nb::tuple invert_leaves(MatrixIn<std::int32_t> leaves, std::size_t n_leaves) {
    std::vector<std::int64_t> indptr(n_leaves + 1, 0);
    std::vector<std::int32_t> items;
    {
        nb::gil_scoped_release release;
        const std::size_t n = leaves.shape(0), n_trees = leaves.shape(1);
        const std::int32_t *leaf = leaves.data();
        for (std::size_t e = 0; e < n * n_trees; ++e)
            if (leaf[e] >= 0) ++indptr[static_cast<std::size_t>(leaf[e]) + 1];
        for (std::size_t l = 0; l < n_leaves; ++l) indptr[l + 1] += indptr[l];
        items.resize(static_cast<std::size_t>(indptr[n_leaves]));
        std::vector<std::int64_t> next(indptr.begin(), indptr.end() - 1);
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t t = 0; t < n_trees; ++t, ++leaf)
                if (*leaf >= 0) items[static_cast<std::size_t>(next[*leaf]++)] = static_cast<std::int32_t>(i);
    }
    return nb::make_tuple(to_numpy(std::move(indptr)), to_numpy(std::move(items)));
}

void leaf_mass_dense(MatrixIn<std::int32_t> leaves, VectorIn<std::int32_t> codes, VectorIn<double> weight,
                     MatrixOut<double> mass) {
    nb::gil_scoped_release release;
    const std::size_t n_trees = leaves.shape(1), K = mass.shape(1);
    const std::int32_t *leaf = leaves.data();
    for (std::size_t i = 0; i < leaves.shape(0); ++i)
        for (std::size_t t = 0; t < n_trees; ++t, ++leaf)
            if (*leaf >= 0) mass.data()[static_cast<std::size_t>(*leaf) * K + codes(i)] += weight(i);
}

// From the inverted index: (indptr, classes, values) with the classes of each leaf in increasing order.
nb::tuple leaf_mass_sparse(VectorIn<std::int64_t> item_indptr, VectorIn<std::int32_t> items,
                           VectorIn<std::int32_t> codes, VectorIn<double> weight, std::size_t n_classes) {
    std::vector<std::int64_t> indptr{0};
    std::vector<std::int32_t> classes;
    std::vector<double> values;
    {
        nb::gil_scoped_release release;
        const std::size_t n_leaves = item_indptr.shape(0) - 1;
        std::vector<double> sum(n_classes, 0.0);
        std::vector<std::uint8_t> present(n_classes, 0);
        std::vector<std::int32_t> found;
        indptr.reserve(n_leaves + 1);
        for (std::size_t l = 0; l < n_leaves; ++l) {
            found.clear();
            for (std::int64_t e = item_indptr(l); e < item_indptr(l + 1); ++e) {
                const std::int32_t item = items(static_cast<std::size_t>(e)), k = codes(item);
                if (!present[k]) {
                    present[k] = 1;
                    found.push_back(k);
                }
                sum[k] += weight(item);
            }
            std::sort(found.begin(), found.end());
            for (std::int32_t k : found) {
                classes.push_back(k);
                values.push_back(sum[k]);
                sum[k] = 0.0;
                present[k] = 0;
            }
            indptr.push_back(static_cast<std::int64_t>(classes.size()));
        }
    }
    return nb::make_tuple(to_numpy(std::move(indptr)), to_numpy(std::move(classes)), to_numpy(std::move(values)));
}

}  // namespace
}  // namespace hetcal

void register_forest_leaves(nanobind::module_ &m) {
    namespace nb = nanobind;
    m.def("invert_leaves", &hetcal::invert_leaves, nb::arg("leaves"), nb::arg("n_leaves"));
    m.def("leaf_mass_dense", &hetcal::leaf_mass_dense, nb::arg("leaves"), nb::arg("codes"), nb::arg("weight"),
          nb::arg("mass").noconvert());
    m.def("leaf_mass_sparse", &hetcal::leaf_mass_sparse, nb::arg("item_indptr"), nb::arg("items"),
          nb::arg("codes"), nb::arg("weight"), nb::arg("n_classes"));
}
