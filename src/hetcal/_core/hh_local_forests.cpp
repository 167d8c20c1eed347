// Local forests for many neighbourhoods at once: grow, prune, vote, choose the pruning, score; nothing is kept.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cmath>
#include <exception>
#include <mutex>
#include <numeric>

#include "checks.hpp"
#include "hh_columns.hpp"
#include "hh_grow.hpp"
#include "hh_prune.hpp"
#include "parallel.hpp"

namespace nb = nanobind;

namespace hetcal::hh {
namespace {

enum Status : std::int64_t { kOk = 0, kNoNeighbours = 1, kOneClass = 2, kNoScore = 3 };
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Arrays of the call; rows of labels and outputs are label draws.
struct Problem {
    std::size_t n_items, n_draws, n_hoods, n_classes, n_members;
    const std::int32_t *codes;
    const double *proba;
    const std::int64_t *indptr, *indices;
    std::vector<std::uint32_t> seeds;
    std::vector<double> alphas;
    bool select_brier, exact;
    double *hh, *brier_model, *brier_local, *brier_oob, *alpha, *oob_score, *oob_proba;  // oob_proba may be null
    std::int64_t *status;
};

// The random numbers of the trees, drawn once for all neighbourhoods.
class TreeRandoms {
  public:
    TreeRandoms(const std::vector<std::uint32_t> &seeds, std::size_t largest) : seeds_(seeds) {
        length_ = std::min<std::size_t>(2 * largest + 256, kLongest);
        numbers_.reserve(seeds.size() * length_);
        for (const std::uint32_t seed : seeds) {
            MersenneTwister twister(seed);
            for (std::size_t i = 0; i < length_; ++i) numbers_.push_back(twister.next());
            splitters_.emplace_back(seed);
        }
    }

    const SplitterRandom &splitter(std::size_t tree) const { return splitters_[tree]; }

    // How often each of n items is drawn by a tree.
    void draw(std::size_t tree, std::uint32_t n, std::uint16_t *counts) const {
        std::fill(counts, counts + n, std::uint16_t(0));
        const std::uint32_t largest = n - 1;
        std::uint32_t mask = largest, left = n;
        for (int shift = 1; shift < 32; shift *= 2) mask |= mask >> shift;
        const std::uint32_t *number = numbers_.data() + tree * length_, *end = number + length_;
        for (; left > 0 && number != end; ++number) {
            const std::uint32_t value = *number & mask;
            const bool accepted = value <= largest;  // without a branch: it would be mispredicted
            counts[accepted ? value : 0] += accepted;
            left -= accepted;
        }
        if (left > 0) bootstrap_counts(seeds_[tree], n, counts);
    }

  private:
    static constexpr std::size_t kLongest = 16384;
    const std::vector<std::uint32_t> &seeds_;
    std::size_t length_;
    std::vector<std::uint32_t> numbers_;
    std::vector<SplitterRandom> splitters_;
};

// Everything one thread needs.
class Worker {
  public:
    Worker(const Problem &problem, const SortedColumns &columns, const TreeRandoms &randoms,
           const std::atomic<bool> &stop)
        : p_(problem), columns_(columns), randoms_(randoms), stop_(stop), grower_(columns, problem.exact),
          local_of_(problem.n_items, Item(0xffff)) {}

    void score(std::size_t h) {
        const std::int64_t *members = p_.indices + p_.indptr[h];
        const std::uint32_t size = std::uint32_t(p_.indptr[h + 1] - p_.indptr[h]);
        bool gathered = false;
        for (std::size_t draw = 0; draw < p_.n_draws && !stop_; ++draw) {
            const std::size_t at = draw * p_.n_hoods + h;
            if (size == 0) {
                p_.status[at] = kNoNeighbours;
                continue;
            }
            const std::int32_t *codes = p_.codes + draw * p_.n_items;
            read_labels(codes, members, size);
            p_.brier_model[at] = brier_of_model(codes, members, size);
            double *oob = p_.oob_proba;
            if (oob) oob += (draw * p_.n_members + std::size_t(p_.indptr[h])) * p_.n_classes;
            if (labels_.n_classes == 1) {
                p_.status[at] = kOneClass;
                if (oob) write_one_class(size, oob);
                continue;
            }
            if (!gathered) hood_.gather(columns_, members, size, local_of_);
            gathered = true;
            grow_forest();
            if (!stop_) choose_and_score(at, oob);
        }
    }

  private:
    const Problem &p_;
    const SortedColumns &columns_;
    const TreeRandoms &randoms_;
    const std::atomic<bool> &stop_;
    TreeGrower grower_;
    Pruner pruner_;
    std::vector<Item> local_of_;
    Neighbourhood hood_;
    Labels labels_;
    std::vector<std::uint16_t> present_;  // local class -> class
    std::vector<Growing> trees_;
    std::vector<double> in_bag_, out_of_bag_, vote_;  // [item][alpha][class]
    std::vector<std::uint32_t> n_oob_;

    void read_labels(const std::int32_t *codes, const std::int64_t *members, std::uint32_t size) {
        std::vector<std::uint16_t> local(p_.n_classes, 0);
        for (std::uint32_t i = 0; i < size; ++i) local[codes[members[i]]] = 1;
        present_.clear();
        for (std::size_t c = 0; c < p_.n_classes; ++c) {
            if (!local[c]) continue;
            local[c] = std::uint16_t(present_.size());
            present_.push_back(std::uint16_t(c));
        }
        labels_.n_classes = std::uint32_t(present_.size());
        labels_.y.resize(size);
        for (std::uint32_t i = 0; i < size; ++i) labels_.y[i] = local[codes[members[i]]];
    }

    double brier_of_model(const std::int32_t *codes, const std::int64_t *members, std::uint32_t size) const {
        double sum = 0;
        for (std::uint32_t i = 0; i < size; ++i) {
            const double *row = p_.proba + std::size_t(members[i]) * p_.n_classes;
            for (std::size_t c = 0; c < p_.n_classes; ++c) {
                const double error = row[c] - (std::int32_t(c) == codes[members[i]]);
                sum += error * error;
            }
        }
        return sum / size;
    }

    void write_one_class(std::uint32_t size, double *oob) const {
        for (std::uint32_t i = 0; i < size && size > 1; ++i)
            for (std::size_t c = 0; c < p_.n_classes; ++c) oob[i * p_.n_classes + c] = c == present_[0];
    }

    void grow_forest() {
        const std::uint32_t size = hood_.size;
        const std::size_t width = p_.alphas.size() * labels_.n_classes;
        in_bag_.assign(size * width, 0.0);
        out_of_bag_.assign(size * width, 0.0);
        n_oob_.assign(size, 0);
        grower_.begin(hood_, labels_);
        trees_.resize(p_.seeds.size());
        for (std::size_t t = 0; t < trees_.size(); ++t) {
            trees_[t].seed = p_.seeds[t];
            trees_[t].random = randoms_.splitter(t);
            trees_[t].draws.resize(size);
            randoms_.draw(t, size, trees_[t].draws.data());
        }
        grower_.grow(trees_, stop_);
        // Votes are added in the order of the trees: out-of-bag ties are decided by the last bit.
        for (std::size_t t = 0; t < trees_.size() && !stop_; ++t) add_votes(trees_[t].tree);
    }

    void add_votes(const Tree &tree) {
        pruner_.prune(tree, p_.alphas);
        const std::size_t n_nodes = tree.nodes.size(), k = labels_.n_classes, width = p_.alphas.size() * k;
        vote_.resize(width);
        for (const Item item : tree.oob) ++n_oob_[item];
        for (std::size_t leaf = 0; leaf < n_nodes; ++leaf) {
            const Node &node = tree.nodes[leaf];
            if (node.left >= 0) continue;
            for (std::size_t a = 0; a < p_.alphas.size(); ++a) {
                const std::size_t stand_in = pruner_.stands_for[a * n_nodes + leaf];
                for (std::size_t c = 0; c < k; ++c)
                    vote_[a * k + c] = tree.counts[stand_in * k + c] / tree.nodes[stand_in].weight;
            }
            for (std::uint32_t i = node.oob_low; i < node.oob_high; ++i) add(out_of_bag_, tree.oob[i], width);
            for (std::uint32_t i = node.bag_low; i < node.bag_high; ++i) add(in_bag_, tree.bag[i], width);
        }
    }

    void add(std::vector<double> &sums, Item item, std::size_t width) const {
        double *sum = sums.data() + item * width;
        for (std::size_t j = 0; j < width; ++j) sum[j] += vote_[j];
    }

    double squared_error(const double *proba, std::uint32_t item) const {
        double sum = 0;
        for (std::uint32_t c = 0; c < labels_.n_classes; ++c) {
            const double error = proba[c] - (c == labels_.y[item]);
            sum += error * error;
        }
        return sum;
    }

    void choose_and_score(std::size_t at, double *oob) {
        const std::uint32_t size = hood_.size, k = labels_.n_classes;
        const std::size_t n_alphas = p_.alphas.size();
        std::uint32_t n_seen = 0, best_correct = 0;
        for (const std::uint32_t n : n_oob_) n_seen += n > 0;
        double best_brier = std::numeric_limits<double>::infinity(), brier_of_best = kNaN;
        std::int64_t best = -1;
        for (std::size_t a = 0; a < n_alphas; ++a) {
            std::uint32_t correct = 0;
            double brier = 0;
            for (std::uint32_t i = 0; i < size; ++i) {
                double *proba = out_of_bag_.data() + (i * n_alphas + a) * k;
                for (std::uint32_t c = 0; c < k && n_oob_[i]; ++c) proba[c] /= n_oob_[i];
                correct += std::max_element(proba, proba + k) - proba == labels_.y[i];
                if (n_oob_[i]) brier += squared_error(proba, i);
            }
            brier = n_seen ? brier / n_seen : kNaN;
            if (p_.select_brier ? brier < best_brier : correct > best_correct) {
                best = std::int64_t(a);
                best_correct = correct;
                best_brier = brier_of_best = brier;
            }
        }
        if (oob) write_oob(std::size_t(std::max<std::int64_t>(best, 0)), oob);
        if (best < 0) {
            p_.status[at] = kNoScore;
            return;
        }
        double brier_local = 0;
        for (std::uint32_t i = 0; i < size; ++i) {
            double *sum = in_bag_.data() + (i * n_alphas + best) * k;
            const double *mean_oob = out_of_bag_.data() + (i * n_alphas + best) * k;
            for (std::uint32_t c = 0; c < k; ++c) sum[c] = (sum[c] + mean_oob[c] * n_oob_[i]) / double(p_.seeds.size());
            brier_local += squared_error(sum, i);
        }
        brier_local /= size;
        p_.status[at] = kOk;
        p_.brier_local[at] = brier_local;
        p_.brier_oob[at] = brier_of_best;
        p_.alpha[at] = p_.alphas[best];
        p_.oob_score[at] = double(best_correct) / size;
        p_.hh[at] = std::max(p_.brier_model[at] - brier_local, 0.0);
    }

    void write_oob(std::size_t a, double *oob) const {
        const std::size_t n_alphas = p_.alphas.size(), k = labels_.n_classes;
        for (std::uint32_t i = 0; i < hood_.size; ++i) {
            if (n_oob_[i] == 0) continue;  // stays NaN
            double *row = oob + i * p_.n_classes;
            std::fill(row, row + p_.n_classes, 0.0);
            for (std::size_t c = 0; c < k; ++c) row[present_[c]] = out_of_bag_[(i * n_alphas + a) * k + c];
        }
    }
};

// Runs the workers, largest neighbourhoods first. The calling thread holds the GIL only to look for an interrupt
// and to report progress.
class Crew {
  public:
    Crew(const Problem &problem, const SortedColumns &columns, const TreeRandoms &randoms)
        : p_(problem), columns_(columns), randoms_(randoms), order_(problem.n_hoods) {
        std::iota(order_.begin(), order_.end(), std::size_t(0));
        std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
            return p_.indptr[a + 1] - p_.indptr[a] > p_.indptr[b + 1] - p_.indptr[b];
        });
    }

    // `report(n_done)` is called without any lock held and may throw to stop the work.
    template <class Report>
    void run(std::size_t n_threads, Report report) {
        ThreadGroup threads;
        const std::size_t n_started =
            threads.start(0, worker_count(n_threads, order_.size()), [this](std::size_t) { work([] {}); });
        if (n_started == 0) work([&] { report(done_.load()); });  // no thread to be had: the calling one works
        std::unique_lock<std::mutex> lock(mutex_);
        while (n_finished_ < n_started) {
            const auto all_finished = [&] { return n_finished_ == n_started; };
            if (finished_.wait_for(lock, std::chrono::milliseconds(50), all_finished)) break;
            if (stop_) continue;
            lock.unlock();
            try {
                report(done_.load());
            } catch (...) {
                fail(std::current_exception());
            }
            lock.lock();
        }
        lock.unlock();
        threads.join();
        if (failure_) std::rethrow_exception(failure_);
    }

  private:
    const Problem &p_;
    const SortedColumns &columns_;
    const TreeRandoms &randoms_;
    std::vector<std::size_t> order_;
    std::atomic<std::size_t> next_{0}, done_{0};
    std::atomic<bool> stop_{false};
    std::mutex mutex_;
    std::condition_variable finished_;
    std::size_t n_finished_ = 0;
    std::exception_ptr failure_;

    // Scores neighbourhoods until there are none left, and calls between() after each; never throws.
    template <class Between>
    void work(Between between) {
        try {
            Worker worker(p_, columns_, randoms_, stop_);
            for (std::size_t i; !stop_ && (i = next_++) < order_.size(); between()) {
                worker.score(order_[i]);
                ++done_;
            }
        } catch (...) {
            fail(std::current_exception());
        }
        const std::lock_guard<std::mutex> lock(mutex_);
        ++n_finished_;
        finished_.notify_all();
    }

    void fail(std::exception_ptr failure) {
        const std::lock_guard<std::mutex> lock(mutex_);
        failure_ = failure;
        stop_ = true;
    }
};

template <class T, int Dimensions>
using Input = nb::ndarray<const T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;
template <class T, int Dimensions>
using Output = nb::ndarray<T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t kMostMembers = 65535;  // items and their ranks are counted in 16 bits, one of them means none
constexpr std::size_t kMostEntries = std::numeric_limits<std::uint32_t>::max();  // of a neighbourhood, in 32 bits

// An item lies in a neighbourhood once: so there are never more members than items.
void check_members(const Checks &check, const Input<std::int64_t, 1> &indptr, const Input<std::int64_t, 1> &indices,
                   std::size_t n_items) {
    std::vector<std::size_t> seen_in(n_items, 0);  // the last neighbourhood with the item, counted from 1
    for (std::size_t h = 1; h < indptr.shape(0); ++h)
        for (std::int64_t i = indptr(h - 1); i < indptr(h); ++i)
            if (std::exchange(seen_in[static_cast<std::size_t>(indices.data()[i])], h) == h)
                check.refuse("indices", "hold an item once in a neighbourhood", indices.data()[i]);
}

void check_alphas(const Checks &check, const Input<double, 1> &alphas) {
    check.length(alphas.shape(0), "alphas", 1);
    check.aligned(alphas, "alphas");
    if (!(alphas(0) >= 0)) check.refuse("alphas[0]", "be 0 or more", alphas(0));
    for (std::size_t a = 1; a < alphas.shape(0); ++a)
        if (!(alphas(a) > alphas(a - 1))) check.refuse("alphas", "rise", alphas(a));
}

void local_forest_scores(Input<float, 2> X, Input<std::int32_t, 2> codes, Input<double, 2> P,
                         Input<std::int64_t, 1> indptr, Input<std::int64_t, 1> indices, Input<std::uint32_t, 1> seeds,
                         Input<double, 1> alphas, bool select_brier, bool exact, std::int64_t n_threads,
                         nb::object progress, nb::list outputs, Output<std::int64_t, 2> status,
                         Output<double, 3> oob_proba) {
    const Checks check("local_forest_scores");
    Problem p{};
    p.n_items = X.shape(0);
    p.n_draws = codes.shape(0);
    p.n_classes = P.shape(1);
    p.n_members = indices.shape(0);
    check.length(p.n_items, "rows of X", 0, kMostMembers);
    check.length(X.shape(1), "columns of X", 1, kMostEntries / std::max<std::size_t>(p.n_items, 1));
    check.length(p.n_classes, "columns of P", 1, std::numeric_limits<std::uint16_t>::max());
    check.aligned(X, "X");
    check.values(X.data(), X.size(), "X", "be finite", [](float x) { return std::isfinite(x); });
    check.shape(codes, "codes", {p.n_draws, p.n_items});
    check.indices(codes.data(), codes.size(), "codes", p.n_classes);
    check.shape(P, "P", {p.n_items, p.n_classes});
    check.aligned(indptr, "indptr");
    check.aligned(indices, "indices");
    check.starts(indptr.data(), indptr.shape(0), "indptr", p.n_members);
    check.indices(indices.data(), p.n_members, "indices", p.n_items);
    check_members(check, indptr, indices, p.n_items);
    check.aligned(seeds, "seeds");
    check.length(seeds.shape(0), "seeds", 1);
    check_alphas(check, alphas);
    p.n_hoods = indptr.shape(0) - 1;
    p.codes = codes.data();
    p.proba = P.data();
    p.indptr = indptr.data();
    p.indices = indices.data();
    p.seeds.assign(seeds.data(), seeds.data() + seeds.shape(0));
    p.alphas.assign(alphas.data(), alphas.data() + alphas.shape(0));
    p.select_brier = select_brier;
    p.exact = exact;
    double **const slots[] = {&p.hh, &p.brier_model, &p.brier_local, &p.brier_oob, &p.alpha, &p.oob_score};
    if (outputs.size() != 6) check.refuse("outputs", "be six arrays", outputs.size());
    for (std::size_t i = 0; i < 6; ++i) {
        Output<double, 2> output;
        if (!nb::try_cast(outputs[i], output, false)) check.refuse("outputs", "be arrays of float64", "something else");
        check.shape(output, "outputs", {p.n_draws, p.n_hoods});
        *slots[i] = output.data();
    }
    check.shape(status, "status", {p.n_draws, p.n_hoods});
    if (oob_proba.size() > 0) check.shape(oob_proba, "oob_proba", {p.n_draws, p.n_members, p.n_classes});
    const std::size_t n_workers = check.count(n_threads, "n_threads", 1);
    p.status = status.data();
    p.oob_proba = oob_proba.size() ? oob_proba.data() : nullptr;
    const FloatMatrix matrix{X.data(), X.shape(0), X.shape(1), std::ptrdiff_t(X.shape(1)), 1};

    const auto report = [&](std::size_t n_done) {
        nb::gil_scoped_acquire held;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!progress.is_none()) progress(n_done, p.n_hoods);
    };
    {
        nb::gil_scoped_release released;
        std::int64_t largest = 1;
        for (std::size_t h = 0; h < p.n_hoods; ++h) largest = std::max(largest, p.indptr[h + 1] - p.indptr[h]);
        const SortedColumns columns(matrix);
        const TreeRandoms randoms(p.seeds, std::size_t(largest));
        Crew(p, columns, randoms).run(n_workers, report);
    }
    if (!progress.is_none()) progress(p.n_hoods, p.n_hoods);
}

}  // namespace
}  // namespace hetcal::hh

void register_hh_local_forests(nb::module_ &m) {
    m.def("local_forest_scores", &hetcal::hh::local_forest_scores, nb::arg("X"), nb::arg("codes"), nb::arg("P"),
          nb::arg("indptr"), nb::arg("indices"), nb::arg("seeds"), nb::arg("alphas"), nb::arg("select_brier"),
          nb::arg("exact"), nb::arg("n_threads"), nb::arg("progress").none(), nb::arg("outputs"),
          nb::arg("status").noconvert(), nb::arg("oob_proba").noconvert());
}
