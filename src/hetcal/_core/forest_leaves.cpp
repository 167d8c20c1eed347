// What lies in the leaves: the weight of each class.
#include <algorithm>
#include <vector>

#include "forest_index.hpp"

namespace hetcal {
namespace {

void check_items(const Checks &check, const MatrixIn<std::int32_t> &leaves, const VectorIn<std::int32_t> &codes,
                 const VectorIn<double> &weight, std::size_t n_classes) {
    const std::size_t n = leaves.shape(0);
    check.shape(codes, "codes", {n});
    check.shape(weight, "weight", {n});
    check.indices(codes.data(), n, "codes", n_classes);
}

void leaf_mass_dense(MatrixIn<std::int32_t> leaves, VectorIn<std::int32_t> codes, VectorIn<double> weight,
                     MatrixOut<double> mass) {
    const Checks check("leaf_mass_dense");
    nb::gil_scoped_release release;
    const std::size_t n_trees = leaves.shape(1), K = mass.shape(1);
    check_items(check, leaves, codes, weight, K);
    check.aligned(mass, "mass");
    check.aligned(leaves, "leaves");
    const std::size_t n_leaves = mass.shape(0);
    const std::int32_t *leaf = leaves.data();
    for (std::size_t i = 0; i < leaves.shape(0); ++i) {
        double *of_class = mass.data() + codes(i);
        const double w = weight(i);
        for (std::size_t t = 0; t < n_trees; ++t, ++leaf)
            if (static_cast<std::uint32_t>(*leaf) < n_leaves)
                of_class[static_cast<std::size_t>(*leaf) * K] += w;
            else if (*leaf >= 0)
                check.refuse_index(i * n_trees + t, *leaf, "leaves", n_leaves, true);
    }
}

// (indptr, classes, values) with the classes of each leaf in increasing order.
nb::tuple leaf_mass_sparse(MatrixIn<std::int32_t> leaves, VectorIn<std::int32_t> codes, VectorIn<double> weight,
                           std::int64_t n_leaves, std::int64_t n_classes) {
    const Checks check("leaf_mass_sparse");
    std::vector<std::int64_t> indptr{0};
    std::vector<std::int32_t> classes;
    std::vector<double> values;
    {
        nb::gil_scoped_release release;
        const std::size_t K = check.count(n_classes, "n_classes");
        check_items(check, leaves, codes, weight, K);
        const InvertedLeaves index = invert_leaves(check, leaves, check.count(n_leaves, "n_leaves"));
        std::vector<double> sum(K, 0.0);
        std::vector<std::uint8_t> present(K, 0);
        std::vector<std::int32_t> found;
        indptr.reserve(index.indptr.size());
        for (std::size_t l = 0; l + 1 < index.indptr.size(); ++l) {
            found.clear();
            for (std::int64_t e = index.indptr[l]; e < index.indptr[l + 1]; ++e) {
                const std::size_t item = static_cast<std::size_t>(index.items[static_cast<std::size_t>(e)]);
                const std::int32_t k = codes(item);
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
    m.def("leaf_mass_dense", &hetcal::leaf_mass_dense, nb::arg("leaves"), nb::arg("codes"), nb::arg("weight"),
          nb::arg("mass").noconvert());
    m.def("leaf_mass_sparse", &hetcal::leaf_mass_sparse, nb::arg("leaves"), nb::arg("codes"), nb::arg("weight"),
          nb::arg("n_leaves"), nb::arg("n_classes"));
}
