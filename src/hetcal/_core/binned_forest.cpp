// Fitting a forest on binned features: targets are classes or real numbers, rows or whole groups are drawn.
#include <cmath>
#include <memory>

#include "binned_grow.hpp"
#include "checks.hpp"
#include "forest_arrays.hpp"
#include "parallel.hpp"

namespace hetcal {
namespace {

class BinnedForestFitter {
  public:
    using Bins = MatrixIn<std::uint8_t>;
    using Edges = MatrixIn<float>;
    using Units = VectorIn<std::int32_t>;
    using Weights = VectorIn<double>;

    BinnedForestFitter(Bins codes, Edges low, Edges high, VectorIn<std::int32_t> labels, std::int64_t n_classes,
                       Units units, std::int64_t n_units, Weights up_to, Weights weight, std::int64_t max_features,
                       double min_samples_leaf, bool bootstrap, bool random_threshold)
        : BinnedForestFitter(codes, low, high, units, n_units, up_to, weight, max_features, min_samples_leaf, bootstrap,
                             random_threshold) {
        kCheck.shape(labels, "labels", {data_.n_items});
        n_targets_ = kCheck.count(n_classes, "n_classes", 2);
        kCheck.indices(labels.data(), data_.n_items, "labels", n_targets_);
        labels_.assign(labels.data(), labels.data() + data_.n_items);
    }

    BinnedForestFitter(Bins codes, Edges low, Edges high, MatrixIn<double> targets, Units units, std::int64_t n_units,
                       Weights up_to, Weights weight, std::int64_t max_features, double min_samples_leaf, bool bootstrap,
                       bool random_threshold)
        : BinnedForestFitter(codes, low, high, units, n_units, up_to, weight, max_features, min_samples_leaf, bootstrap,
                             random_threshold) {
        n_targets_ = targets.shape(1);
        kCheck.length(n_targets_, "columns of targets", 1);
        kCheck.shape(targets, "targets", {data_.n_items, n_targets_});
        kCheck.values(targets.data(), targets.size(), "targets", "be finite", [](double y) { return std::isfinite(y); });
        targets_.assign(targets.data(), targets.data() + targets.size());
    }

    // Grows one tree per seed. Children count from the first of these trees; `in_bag` has a row per tree.
    nb::tuple grow(VectorIn<std::uint64_t> seeds, MatrixOut<std::uint8_t> in_bag, std::int64_t n_jobs) const {
        const Checks check("BinnedForestFitter.grow");
        const std::size_t n_trees = seeds.shape(0);
        const std::size_t n_workers = worker_count(check.count(n_jobs, "n_jobs", 1), n_trees);
        check.aligned(seeds, "seeds");
        if (options_.bootstrap) check.shape(in_bag, "in_bag", {n_trees, data_.n_items});
        std::vector<GrownTree> trees(n_trees);
        JoinedTrees joined;
        {
            nb::gil_scoped_release release;
            with_sums([&](const auto &sums) { grow_all(sums, seeds.data(), in_bag.data(), n_workers, trees); });
            joined.join(check, trees);
        }
        return joined.to_python();
    }

  private:
    static constexpr Checks kCheck{"BinnedForestFitter"};

    BinnedForestFitter(Bins codes, Edges low, Edges high, Units units, std::int64_t n_units, Weights up_to, Weights weight,
                       std::int64_t max_features, double min_samples_leaf, bool bootstrap, bool random_threshold) {
        data_.n_features = codes.shape(0);
        data_.n_items = codes.shape(1);
        kCheck.length(data_.n_items, "columns of codes", 1);
        kCheck.length(data_.n_features, "rows of codes", 1);
        kCheck.shape(low, "low", {data_.n_features, kMostBins});
        kCheck.shape(high, "high", {data_.n_features, kMostBins});
        kCheck.shape(units, "units", {data_.n_items});
        kCheck.shape(weight, "weight", {data_.n_items});
        units_.n_units = kCheck.count(n_units, "n_units", 1, data_.n_items);
        kCheck.indices(units.data(), data_.n_items, "units", units_.n_units);
        if (up_to.size() > 0) kCheck.shape(up_to, "up_to", {units_.n_units});
        kCheck.values(weight.data(), data_.n_items, "weight", "be positive and finite",
                      [](double w) { return w > 0 && std::isfinite(w); });
        if (!(min_samples_leaf >= 0)) kCheck.refuse("min_samples_leaf", "be 0 or more", min_samples_leaf);
        options_ = {kCheck.count(max_features, "max_features", 1), min_samples_leaf, bootstrap, random_threshold};
        data_.set_codes(codes.data());
        data_.low.assign(low.data(), low.data() + low.size());
        data_.high.assign(high.data(), high.data() + high.size());
        units_.unit.assign(units.data(), units.data() + data_.n_items);
        units_.up_to.assign(up_to.data(), up_to.data() + up_to.size());
        units_.weight.assign(weight.data(), weight.data() + data_.n_items);
    }

    // Calls use(sums) with the kind of sums that costs least.
    template <class Use>
    void with_sums(Use use) const {
        const std::int32_t *label = labels_.data();
        const double *target = targets_.data();
        if (!labels_.empty() && packs<2>()) return use(PackedSums<2>(label));
        if (!labels_.empty() && packs<3>()) return use(PackedSums<3>(label));
        if (!labels_.empty() && n_targets_ == 2) return use(ClassSums<1>(label, 2));
        if (!labels_.empty() && n_targets_ == 3) return use(ClassSums<3>(label, 3));
        if (!labels_.empty()) return use(ClassSums<0>(label, n_targets_));
        if (n_targets_ == 1) return use(TargetSums<1>(target, 1));
        if (n_targets_ == 2) return use(TargetSums<2>(target, 2));
        use(TargetSums<0>(target, n_targets_));
    }

    // Whether so many classes without weights fit into the fields of PackedSums, whatever is drawn.
    template <std::size_t kClasses>
    bool packs() const {
        if (n_targets_ != kClasses) return false;
        for (double weight : units_.weight)
            if (weight != 1.0) return false;
        std::vector<std::size_t> size(units_.n_units);
        for (std::int32_t unit : units_.unit) ++size[static_cast<std::size_t>(unit)];
        return *std::max_element(size.begin(), size.end()) <= PackedSums<kClasses>::kField / units_.n_units;
    }

    template <class Sums>
    void grow_all(const Sums &sums, const std::uint64_t *seeds, std::uint8_t *in_bag, std::size_t n_workers,
                  std::vector<GrownTree> &trees) const {
        std::vector<std::unique_ptr<BinnedGrower<Sums>>> growers(n_workers);
        parallel_for(trees.size(), n_workers, [&](std::size_t t, std::size_t worker) {
            auto &grower = growers[worker];
            if (!grower)
                grower = std::make_unique<BinnedGrower<Sums>>(data_, sums, units_, options_);
            trees[t] = grower->grow(seeds[t], in_bag + (options_.bootstrap ? t * data_.n_items : 0));
        });
    }

    BinnedColumns data_;
    BinnedOptions options_{};
    DrawnUnits units_;
    std::size_t n_targets_ = 0;
    std::vector<double> targets_;
    std::vector<std::int32_t> labels_;
};

}  // namespace
}  // namespace hetcal

void register_binned_forest(nanobind::module_ &m) {
    namespace nb = nanobind;
    using Fitter = hetcal::BinnedForestFitter;
    nb::class_<Fitter>(m, "BinnedForestFitter")
        .def(nb::init<Fitter::Bins, Fitter::Edges, Fitter::Edges, hetcal::VectorIn<std::int32_t>, std::int64_t,
                      Fitter::Units, std::int64_t, Fitter::Weights, Fitter::Weights, std::int64_t, double, bool, bool>(),
             nb::arg("codes"), nb::arg("low"), nb::arg("high"), nb::arg("labels").noconvert(), nb::arg("n_classes"),
             nb::arg("units"), nb::arg("n_units"), nb::arg("up_to"), nb::arg("weight"), nb::arg("max_features"),
             nb::arg("min_samples_leaf"), nb::arg("bootstrap"), nb::arg("random_threshold"))
        .def(nb::init<Fitter::Bins, Fitter::Edges, Fitter::Edges, hetcal::MatrixIn<double>, Fitter::Units,
                      std::int64_t, Fitter::Weights, Fitter::Weights, std::int64_t, double, bool, bool>(),
             nb::arg("codes"), nb::arg("low"), nb::arg("high"), nb::arg("targets").noconvert(), nb::arg("units"),
             nb::arg("n_units"), nb::arg("up_to"), nb::arg("weight"), nb::arg("max_features"), nb::arg("min_samples_leaf"),
             nb::arg("bootstrap"), nb::arg("random_threshold"))
        .def("grow", &Fitter::grow, nb::arg("seeds"), nb::arg("in_bag").noconvert(), nb::arg("n_jobs"));
}
