// The extension module: every kernel registers its functions here.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

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
