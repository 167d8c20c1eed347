// The nearest items of rows in Euclidean space, by comparing with all of them.
//
// Items lie in blocks of eight, column by column, so that one load holds a column of eight items; four rows are compared
// with eight blocks at once, and only where one of these items is near enough are they looked at one by one. A distance is the sum of squared differences in order of column: the same on every processor,
// and exactly zero for equal rows.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

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

}  // namespace
}  // namespace hetcal

void register_nearest(nanobind::module_ &m) {
    namespace nb = nanobind;
    m.def("nearest_items", &hetcal::nearest_items, nb::arg("items").noconvert(), nb::arg("rows").noconvert(),
          nb::arg("leave_out"), nb::arg("distance").noconvert(), nb::arg("index").noconvert(), nb::arg("n_jobs"));
}
