// Pool-adjacent-violators on values that are already sorted and free of ties.
#include <cstddef>
#include <memory>

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

}  // namespace
}  // namespace hetcal

void register_isotonic(nanobind::module_ &m) {
    namespace nb = nanobind;
    m.def("pool_adjacent_violators", &hetcal::pool_adjacent_violators, nb::arg("values"),
          nb::arg("weights"), nb::arg("fitted").noconvert());
}
