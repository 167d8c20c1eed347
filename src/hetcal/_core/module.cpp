// The extension module: every kernel registers its functions here.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>

#include "targets.hpp"

namespace nb = nanobind;

namespace {

constexpr const char *kVectors[] = {"none", "avx2", "avx512", "vbmi2"};

void use_vectors(const std::string &most) {
    for (int i = 0; i < 4; ++i)
        if (most == kVectors[i]) {
            hetcal::usable_vectors = std::min(static_cast<hetcal::Vectors>(i), hetcal::vectors_of_processor());
            return;
        }
    throw nb::value_error("most must be one of none, avx2, avx512, vbmi2");
}

}  // namespace

void register_binned_forest(nb::module_ &m);
void register_boosting(nb::module_ &m);
void register_boosting_binned(nb::module_ &m);
void register_isotonic(nb::module_ &m);
void register_nearest(nb::module_ &m);
void register_hh_local_forests(nb::module_ &m);
void register_forest_fit(nb::module_ &m);
void register_forest_leaves(nb::module_ &m);
void register_forest_neighbours(nb::module_ &m);
void register_forest_walk(nb::module_ &m);

NB_MODULE(_native, m) {
    m.doc() = "Compiled kernels of hetcal; see hetcal.kernels for their documentation.";
    m.def("use_vectors", &use_vectors, nb::arg("most"),
          "Let kernels use no vector instructions beyond these, nor beyond the processor's (for tests).");
    m.def("vectors", [] { return kVectors[static_cast<int>(hetcal::usable_vectors.load())]; },
          "Return the vector instructions that kernels use: none, avx2, avx512 or vbmi2.");
    register_binned_forest(m);
    register_boosting(m);
    register_boosting_binned(m);
    register_isotonic(m);
    register_nearest(m);
    register_hh_local_forests(m);
    register_forest_fit(m);
    register_forest_leaves(m);
    register_forest_neighbours(m);
    register_forest_walk(m);
}
