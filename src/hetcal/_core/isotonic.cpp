// Isotonic regression on values that are already sorted and free of ties: of the items, and with one more added.
#include <cstddef>
#include <memory>
#include <vector>

#include "checks.hpp"
#include "forest_arrays.hpp"

namespace hetcal {
namespace {

struct Block {
    double weighted_sum;
    double weight;
    std::size_t end;  // one past the last item of the block
};

double mean(const Block &block) { return block.weighted_sum / block.weight; }

// Writes the non-decreasing least-squares fit of `values` (weights > 0) into `fitted`.
void pool_adjacent_violators(VectorIn<double> values, VectorIn<double> weights, VectorOut<double> fitted) {
    const Checks check("pool_adjacent_violators");
    const std::size_t n = values.shape(0);
    check.aligned(values, "values");
    check.shape(weights, "weights", {n});
    check.shape(fitted, "fitted", {n});
    const std::unique_ptr<Block[]> blocks(new Block[n]);
    Block *end = blocks.get();
    for (std::size_t i = 0; i < n; ++i) {
        const double weight = weights(i);
        if (!(weight > 0)) check.refuse("weights", "be more than 0", weight);
        Block current{values(i) * weight, weight, i + 1};
        while (end != blocks.get() && mean(end[-1]) >= mean(current)) {
            --end;
            current.weighted_sum += end->weighted_sum;
            current.weight += end->weight;
        }
        *end++ = current;
    }
    std::size_t i = 0;
    for (const Block *block = blocks.get(); block != end; ++block) {
        const double level = mean(*block);
        for (; i < block->end; ++i) fitted(i) = level;
    }
}

struct Corner {
    double x, y;
};

bool convex(const Corner &a, const Corner &b, const Corner &c) {
    return (b.y - a.y) * (c.x - b.x) < (c.y - b.y) * (b.x - a.x);
}

// Puts a point in front of a convex chain, whose first corner is the last of the list.
void push(std::vector<Corner> &corners, const Corner &point) {
    while (corners.size() > 1 && !convex(point, corners.back(), corners[corners.size() - 2])) corners.pop_back();
    corners.push_back(point);
}

// levels[i]: the fit at place i if one positive item were added there, from the corners (x, y) of the cumulative sum
// diagram. The chain never has fewer than two corners: its end stays, and whoever is popped is replaced.
void levels_with_one_added(VectorIn<double> x, VectorIn<double> y, VectorOut<double> levels) {
    const Checks check("levels_with_one_added");
    const std::size_t n = levels.shape(0);
    check.shape(x, "x", {n + 1});
    check.shape(y, "y", {n + 1});
    check.aligned(levels, "levels");
    Corner before{-1.0, -1.0};  // the added item stands in front of all others
    std::vector<Corner> corners;
    for (std::size_t i = n + 1; i-- > 0;) push(corners, {x(i), y(i)});
    push(corners, before);
    for (std::size_t i = 0; i < n; ++i) {
        const Corner left = corners.back(), right = corners[corners.size() - 2];
        levels(i) = (right.y - left.y) / (right.x - left.x);
        before = {before.x + x(i + 1) - x(i), before.y + y(i + 1) - y(i)};
        if (!convex(left, before, right)) continue;
        corners.pop_back();
        push(corners, before);
    }
}

}  // namespace
}  // namespace hetcal

void register_isotonic(nanobind::module_ &m) {
    namespace nb = nanobind;
    m.def("pool_adjacent_violators", &hetcal::pool_adjacent_violators, nb::arg("values"),
          nb::arg("weights"), nb::arg("fitted").noconvert());
    m.def("levels_with_one_added", &hetcal::levels_with_one_added, nb::arg("x"), nb::arg("y"),
          nb::arg("levels").noconvert());
}
