// Fitting a forest: the calibration set is ranked once, then trees are grown from their seeds.
#include <cmath>
#include <memory>

#include "checks.hpp"
#include "forest_arrays.hpp"
#include "forest_grow.hpp"
#include "parallel.hpp"

namespace hetcal {
namespace {

class ForestFitter {
  public:
    ForestFitter(StridedMatrixIn<float> Z, VectorIn<std::int32_t> labels, std::int64_t n_classes,
                 std::int64_t max_features, std::int64_t min_samples_leaf, bool bootstrap, bool random_threshold)
        : labels_(labels.data(), labels.data() + labels.shape(0)) {
        const Checks check("ForestFitter");
        const FloatMatrix X{Z.data(), Z.shape(0), Z.shape(1), Z.stride(0), Z.stride(1)};
        check.length(X.n_items, "rows of Z", 1, kMostFitted);
        check.length(X.n_features, "columns of Z", 1);
        check.aligned(Z, "Z");
        check.shape(labels, "labels", {X.n_items});
        n_classes_ = static_cast<std::uint32_t>(check.count(n_classes, "n_classes", 1));
        check.indices(labels_.data(), labels_.size(), "labels", n_classes_);
        options_ = {static_cast<std::uint32_t>(check.count(max_features, "max_features", 1)),
                    static_cast<std::uint32_t>(check.count(min_samples_leaf, "min_samples_leaf", 1)), bootstrap,
                    random_threshold};
        nb::gil_scoped_release release;
        check_finite(check, X);
        if (X.n_items <= 65536)
            narrow_ = std::make_unique<Codes<std::uint16_t>>(X);
        else
            wide_ = std::make_unique<Codes<std::uint32_t>>(X);
    }

    // Grows one tree per seed. Children count from the first of these trees; `in_bag` has a row per tree.
    nb::tuple grow(VectorIn<std::uint32_t> seeds, MatrixOut<std::uint8_t> in_bag, std::int64_t n_jobs) const {
        const Checks check("ForestFitter.grow");
        const std::size_t n_trees = seeds.shape(0);
        const std::size_t n_workers = worker_count(check.count(n_jobs, "n_jobs", 1), n_trees);
        check.aligned(seeds, "seeds");
        if (options_.bootstrap) check.shape(in_bag, "in_bag", {n_trees, labels_.size()});
        std::vector<GrownTree> trees(n_trees);
        JoinedTrees joined;
        {
            nb::gil_scoped_release release;
            if (narrow_)
                grow_all(*narrow_, seeds.data(), in_bag.data(), n_workers, trees);
            else
                grow_all(*wide_, seeds.data(), in_bag.data(), n_workers, trees);
            joined.join(check, trees);
        }
        return joined.to_python();
    }

  private:
    static constexpr std::size_t kMostFitted = (std::size_t(1) << 21) - 1;  // a TreeGrower counts items in 21 bits

    // A value that is no number has no place among the others; the search for splits would not end.
    static void check_finite(const Checks &check, const FloatMatrix &X) {
        for (std::size_t i = 0; i < X.n_items; ++i)
            for (std::size_t f = 0; f < X.n_features; ++f)
                if (!std::isfinite(X(i, f))) check.refuse("Z", "be finite", X(i, f));
    }

    template <class Code>
    struct Codes {
        explicit Codes(const FloatMatrix &X) : ranked(rank_codes<Code>(X)) {
            if (sizeof(Code) * ranked.codes.size() > (std::size_t(1) << 20) && ByteCodes::suit(ranked))
                bytes = std::make_unique<ByteCodes>(ranked);
        }
        RankCodes<Code> ranked;
        std::unique_ptr<ByteCodes> bytes;  // null where they would not help
    };

    template <class Code>
    void grow_all(const Codes<Code> &codes, const std::uint32_t *seeds, std::uint8_t *in_bag,
                  std::size_t n_workers, std::vector<GrownTree> &trees) const {
        std::vector<std::unique_ptr<TreeGrower<Code>>> growers(n_workers);
        parallel_for(trees.size(), n_workers, [&](std::size_t t, std::size_t worker) {
            auto &grower = growers[worker];
            if (!grower)
                grower = std::make_unique<TreeGrower<Code>>(codes.ranked, codes.bytes.get(), labels_.data(),
                                                            n_classes_, options_);
            trees[t] = grower->grow(seeds[t], in_bag + (options_.bootstrap ? t * labels_.size() : 0));
        });
    }

    std::vector<std::int32_t> labels_;
    std::uint32_t n_classes_ = 0;
    GrowOptions options_{};
    std::unique_ptr<Codes<std::uint16_t>> narrow_;
    std::unique_ptr<Codes<std::uint32_t>> wide_;
};

}  // namespace
}  // namespace hetcal

void register_forest_fit(nanobind::module_ &m) {
    namespace nb = nanobind;
    using hetcal::ForestFitter;
    nb::class_<ForestFitter>(m, "ForestFitter")
        .def(nb::init<hetcal::StridedMatrixIn<float>, hetcal::VectorIn<std::int32_t>, std::int64_t, std::int64_t,
                      std::int64_t, bool, bool>(),
             nb::arg("Z"), nb::arg("labels"), nb::arg("n_classes"), nb::arg("max_features"),
             nb::arg("min_samples_leaf"), nb::arg("bootstrap"), nb::arg("random_threshold"))
        .def("grow", &ForestFitter::grow, nb::arg("seeds"), nb::arg("in_bag").noconvert(), nb::arg("n_jobs"));
}
