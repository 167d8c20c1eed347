// The nearest items of rows in Euclidean space, by comparing with all of them.
//
// Items lie in blocks of eight, column by column, so that one load holds a column of eight items; four rows are compared
// with eight blocks at once, and only where one of these items is near enough are they looked at one by one. A distance is the sum of squared differences in order of column: the same on every processor,
// and exactly zero for equal rows.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include <nanobind/stl/optional.h>

#include "checks.hpp"
#include "forest_arrays.hpp"
#include "forest_bitcount.hpp"
#include "parallel.hpp"

namespace hetcal {
namespace {

constexpr std::size_t kWide = 8, kRows = 4, kBlocks = 8;

struct Blocks {
    explicit Blocks(const MatrixIn<double> &items)
        : n_items(items.shape(0)), n_columns(items.shape(1)), n_blocks((n_items + kWide - 1) / kWide),
          values(n_blocks * n_columns * kWide, std::numeric_limits<double>::infinity()) {
        for (std::size_t i = 0; i < n_items; ++i)
            for (std::size_t j = 0; j < n_columns; ++j)
                values[((i / kWide) * n_columns + j) * kWide + i % kWide] = items(i, j);
    }

    std::size_t n_items, n_columns, n_blocks;
    std::vector<double> values;
};

#if defined(__GNUC__) || defined(__clang__)
typedef double Eight __attribute__((vector_size(64)));
#define HETCAL_SMALLER(a, b) ((a) < (b) ? (a) : (b))
#else
#define HETCAL_SMALLER(a, b) smaller(a, b)
struct Eight {
    double value[kWide] = {};
    friend Eight operator-(double a, const Eight &b) {
        Eight c;
        for (std::size_t lane = 0; lane < kWide; ++lane) c.value[lane] = a - b.value[lane];
        return c;
    }
    friend Eight smaller(const Eight &a, const Eight &b) {
        Eight c;
        for (std::size_t lane = 0; lane < kWide; ++lane) c.value[lane] = std::min(a.value[lane], b.value[lane]);
        return c;
    }
    friend Eight operator*(const Eight &a, const Eight &b) {
        Eight c;
        for (std::size_t lane = 0; lane < kWide; ++lane) c.value[lane] = a.value[lane] * b.value[lane];
        return c;
    }
    Eight &operator+=(const Eight &b) {
        for (std::size_t lane = 0; lane < kWide; ++lane) value[lane] += b.value[lane];
        return *this;
    }
};
#endif

// Squared distances of some rows to the items of a few blocks.
struct Found {
    double distance[kRows][kBlocks][kWide];
    double least[kRows][kWide];  // of the blocks, lane by lane
};

HETCAL_MANY_TARGETS inline void compare(const double *blocks, std::size_t n_blocks, const double *const *rows,
                                        std::size_t n_columns, Found &found) {
    Eight items, difference, least[kRows];
    for (std::size_t b = 0; b < n_blocks; ++b) {
        Eight sum[kRows] = {};
        for (std::size_t j = 0; j < n_columns; ++j, blocks += kWide) {
            std::memcpy(&items, blocks, sizeof items);
            for (std::size_t r = 0; r < kRows; ++r) {
                difference = rows[r][j] - items;
                sum[r] += difference * difference;
            }
        }
        for (std::size_t r = 0; r < kRows; ++r) {
            std::memcpy(found.distance[r][b], &sum[r], sizeof sum[r]);
            least[r] = b == 0 ? sum[r] : HETCAL_SMALLER(sum[r], least[r]);
        }
    }
    std::memcpy(found.least, least, sizeof least);
}

#undef HETCAL_SMALLER

// The k nearest so far, nearest first; of several at the same distance the lowest item.
struct Nearest {
    double *distance;
    std::int64_t *item;
    std::size_t k;
    std::size_t left_out;

    void look_at(const Found &found, std::size_t row, std::size_t first, std::size_t n_blocks) {
        const double *least = found.least[row];
        if (!(*std::min_element(least, least + kWide) < distance[k - 1])) return;
        const double *each = found.distance[row][0];
        for (std::size_t i = 0; i < n_blocks * kWide; ++i)
            if (each[i] < distance[k - 1] && first + i != left_out)
                insert(each[i], static_cast<std::int64_t>(first + i));
    }

    void insert(double at, std::int64_t number) {
        std::size_t place = k - 1;
        for (; place > 0 && distance[place - 1] > at; --place) {
            distance[place] = distance[place - 1];
            item[place] = item[place - 1];
        }
        distance[place] = at;
        item[place] = number;
    }
};

// distance and index: n_rows x k, nearest first. With leave_out row r does not see item r.
void nearest_items(MatrixIn<double> items, MatrixIn<double> rows, bool leave_out, MatrixOut<double> distance,
                   MatrixOut<std::int64_t> index, std::int64_t n_jobs) {
    const Checks check("nearest_items");
    const std::size_t n = rows.shape(0), k = distance.shape(1), n_workers = check.count(n_jobs, "n_jobs", 1);
    check.aligned(items, "items");
    check.shape(rows, "rows", {n, items.shape(1)});
    check.shape(distance, "distance", {n, k});
    check.shape(index, "index", {n, k});
    if (leave_out) check.shape(rows, "rows", {items.shape(0), items.shape(1)});
    if (k == 0 || k + leave_out > items.shape(0)) check.refuse("neighbours", "be items, one or more", k);
    nb::gil_scoped_release release;
    const Blocks blocks(items);
    const std::size_t n_tasks = (n + kRows - 1) / kRows;
    parallel_for(n_tasks, worker_count(n_workers, n_tasks), [&](std::size_t task, std::size_t) {
        const double *row[kRows];
        Nearest nearest[kRows];
        const std::size_t first = task * kRows, used = std::min(kRows, n - first);
        for (std::size_t r = 0; r < kRows; ++r) {
            const std::size_t at = first + std::min(r, used - 1);
            row[r] = rows.data() + at * blocks.n_columns;
            nearest[r] = {distance.data() + at * k, index.data() + at * k, k, leave_out ? at : blocks.n_items};
            std::fill_n(nearest[r].distance, k, std::numeric_limits<double>::infinity());
            for (std::size_t p = 0; p < k; ++p)  // whom an infinite distance leaves in place
                nearest[r].item[p] = static_cast<std::int64_t>(p + (p >= nearest[r].left_out));
        }
        Found found;
        for (std::size_t b = 0; b < blocks.n_blocks; b += kBlocks) {
            const std::size_t several = std::min(kBlocks, blocks.n_blocks - b);
            compare(blocks.values.data() + b * blocks.n_columns * kWide, several, row, blocks.n_columns, found);
            for (std::size_t r = 0; r < used; ++r) nearest[r].look_at(found, r, b * kWide, several);
        }
        for (std::size_t r = 0; r < used; ++r)
            for (std::size_t place = 0; place < k; ++place)
                nearest[r].distance[place] = std::sqrt(nearest[r].distance[place]);
    });
}

// The nearest items in many columns. Products of matrices, made elsewhere in float32, bound every distance from both sides;
// only items that may be among the nearest are then compared exactly.
class NearestSearch {
  public:
    // rows: none, to compare the items with each other. `error` times the sum of both squared lengths bounds the error of
    // the distance that a product gives.
    NearestSearch(MatrixIn<double> items, std::optional<MatrixIn<double>> rows, std::int64_t k, double error)
        : items_(items), rows_(rows ? *rows : items), among_items_(!rows), n_columns_(items.shape(1)), error_(error),
          vanishing_(static_cast<double>(n_columns_) * 4.0 * std::numeric_limits<float>::min()) {
        check_.aligned(items_, "items");
        check_.aligned(rows_, "rows");
        check_.shape(rows_, "rows", {rows_.shape(0), n_columns_});
        k_ = check_.count(k, "neighbours", 1);
        if (k_ + among_items_ > items_.shape(0)) check_.refuse("neighbours", "be items, one or more", k);
        if (!(error >= 0 && error < 0.25)) check_.refuse("error", "lie in [0, 0.25)", error);
        nb::gil_scoped_release release;
        item_low_ = low_squares(items_);
        row_low_ = among_items_ ? item_low_ : low_squares(rows_);
        most_.assign(row_low_.size(), std::numeric_limits<float>::infinity());
        found_.resize(row_low_.size());
    }

    // Takes the products of some rows and some items. Of the items among each other, those of the later ones with the
    // earlier ones are left out: a product serves both.
    void look_at(MatrixIn<float> products, std::int64_t first_row, std::int64_t first_item) {
        const std::size_t n_rows = products.shape(0), n_items = products.shape(1);
        const std::size_t row = check_.count(first_row, "first_row"), item = check_.count(first_item, "first_item");
        if (row + n_rows > row_low_.size()) check_.refuse("products", "be of rows that there are", n_rows);
        if (item + n_items > item_low_.size()) check_.refuse("products", "be of items that there are", n_items);
        check_.aligned(products, "products");
        nb::gil_scoped_release release;
        for (std::size_t r = 0; r < n_rows; ++r) look_at_row(products.data() + r * n_items, row + r, item, n_items);
    }

    // distance and index: n_rows x k, nearest first; of several at the same distance the lowest item.
    void finish(MatrixOut<double> distance, MatrixOut<std::int64_t> index) {
        check_.shape(distance, "distance", {found_.size(), k_});
        check_.shape(index, "index", {found_.size(), k_});
        nb::gil_scoped_release release;
        for (std::size_t r = 0; r < found_.size(); ++r) {
            compare_exactly(r);
            if (found_[r].size() < k_) check_.refuse("products", "be of all rows and items", found_[r].size());
            for (std::size_t place = 0; place < k_; ++place) {
                distance(r, place) = std::sqrt(found_[r][place].distance);
                index(r, place) = found_[r][place].item;
            }
        }
    }

  private:
    static constexpr Checks check_{"NearestSearch"};
    static constexpr std::size_t kTogether = 16, kMostFound = 256;

    struct Candidate {
        float low, high;        // bounds of the squared distance
        std::uint32_t item;
        double distance = -1.0;  // the squared distance itself; below 0: not computed yet
        bool operator<(const Candidate &other) const {
            return distance != other.distance ? distance < other.distance : item < other.item;
        }
    };

    std::vector<float> low_squares(const MatrixIn<double> &rows) const {
        std::vector<float> low(rows.shape(0));
        for (std::size_t i = 0; i < low.size(); ++i) {
            const double *row = rows.data() + i * n_columns_;
            double sum = 0.0;
            for (std::size_t j = 0; j < n_columns_; ++j) sum += row[j] * row[j];
            low[i] = static_cast<float>(sum * (1.0 - error_) - vanishing_);
        }
        check_.values(low.data(), low.size(), "squared lengths", "be finite", [](float x) { return std::isfinite(x); });
        return low;
    }

    void look_at_row(const float *product, std::size_t row, std::size_t first, std::size_t n) {
        const float own = row_low_[row];
        const float *low = item_low_.data() + first, *most = most_.data() + first;
        std::size_t j = among_items_ && first <= row ? std::min(n, row + 1 - first) : 0;  // later items only
        for (; j < n; j += kTogether) {
            const std::size_t end = std::min(n, j + kTogether);
            const float mine = most_[row];
            unsigned any = 0;
            if (among_items_)
                for (std::size_t i = j; i < end; ++i) {
                    const float bound = own + low[i] - 2.0f * product[i];
                    any |= static_cast<unsigned>(bound <= mine) | static_cast<unsigned>(bound <= most[i]);
                }
            else
                for (std::size_t i = j; i < end; ++i)
                    any |= static_cast<unsigned>(own + low[i] - 2.0f * product[i] <= mine);
            for (std::size_t i = j; any != 0 && i < end; ++i) {
                const float bound = own + low[i] - 2.0f * product[i];
                const float high = bound + static_cast<float>(3.0 * error_) * (own + low[i]) +
                                   static_cast<float>(8.0 * vanishing_);
                offer(row, {bound, high, static_cast<std::uint32_t>(first + i)});
                if (among_items_) offer(first + i, {bound, high, static_cast<std::uint32_t>(row)});
            }
        }
    }

    void offer(std::size_t row, const Candidate &candidate) {
        if (!(candidate.low <= most_[row])) return;
        auto &found = found_[row];
        found.push_back(candidate);
        if (found.size() % (2 * k_) == 0) tighten(row);
        if (found.size() >= kMostFound + 2 * k_) compare_exactly(row);
    }

    // k items are surely not farther than the k-th of the upper bounds.
    void tighten(std::size_t row) {
        auto &found = found_[row];
        highs_.clear();
        for (const Candidate &one : found) highs_.push_back(one.high);
        std::nth_element(highs_.begin(), highs_.begin() + static_cast<std::ptrdiff_t>(k_ - 1), highs_.end());
        const float most = most_[row] = std::min(most_[row], highs_[k_ - 1]);
        found.erase(std::remove_if(found.begin(), found.end(), [most](const Candidate &one) { return one.low > most; }),
                    found.end());
    }

    // Leaves the k nearest of those found so far.
    void compare_exactly(std::size_t row) {
        auto &found = found_[row];
        if (found.size() >= k_) tighten(row);
        const double *mine = rows_.data() + row * n_columns_;
        for (Candidate &one : found) {
            if (one.distance >= 0.0) continue;
            const double *other = items_.data() + one.item * n_columns_;
            double sum = 0.0;
            for (std::size_t j = 0; j < n_columns_; ++j) sum += (mine[j] - other[j]) * (mine[j] - other[j]);
            one.distance = sum;
        }
        std::sort(found.begin(), found.end());
        if (found.size() > k_) found.resize(k_);
    }

    MatrixIn<double> items_, rows_;
    bool among_items_;
    std::size_t n_columns_, k_ = 0;
    double error_;
    double vanishing_;  // by how much products of small values may be wrong because float32 takes them for 0
    std::vector<float> item_low_, row_low_;  // squared lengths, less what a product may be wrong by
    std::vector<float> most_, highs_;        // of each row: no item beyond is among the nearest
    std::vector<std::vector<Candidate>> found_;
};

}  // namespace
}  // namespace hetcal

void register_nearest(nanobind::module_ &m) {
    namespace nb = nanobind;
    m.def("nearest_items", &hetcal::nearest_items, nb::arg("items").noconvert(), nb::arg("rows").noconvert(),
          nb::arg("leave_out"), nb::arg("distance").noconvert(), nb::arg("index").noconvert(), nb::arg("n_jobs"));
    using hetcal::MatrixIn;
    nb::class_<hetcal::NearestSearch>(m, "NearestSearch")
        .def(nb::init<MatrixIn<double>, std::optional<MatrixIn<double>>, std::int64_t, double>(),
             nb::arg("items").noconvert(), nb::arg("rows").noconvert().none(), nb::arg("k"), nb::arg("error"))
        .def("look_at", &hetcal::NearestSearch::look_at, nb::arg("products").noconvert(), nb::arg("first_row"),
             nb::arg("first_item"))
        .def("finish", &hetcal::NearestSearch::finish, nb::arg("distance").noconvert(), nb::arg("index").noconvert());
}
