// Pool-adjacent-violators on values that are already sorted and free of ties.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <vector>

namespace nb = nanobind;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutVector = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

namespace {

struct Block {
    double weighted_sum;
    double weight;
    std::size_t end;  // one past the last item of the block
};

double mean(const Block &block) { return block.weighted_sum / block.weight; }

// Writes the non-decreasing least-squares fit of `values` (weights > 0) into `fitted`.
void pool_adjacent_violators(Vector values, Vector weights, OutVector fitted) {
    const std::size_t n = values.shape(0);
    std::vector<Block> blocks;
    blocks.reserve(n);
    for (std::size_t i = 0; i < n; ++i) {
        Block current{values(i) * weights(i), weights(i), i + 1};
        while (!blocks.empty() && mean(blocks.back()) >= mean(current)) {
            current.weighted_sum += blocks.back().weighted_sum;
            current.weight += blocks.back().weight;
            blocks.pop_back();
        }
        blocks.push_back(current);
    }
    std::size_t i = 0;
    for (const Block &block : blocks) {
        const double level = mean(block);
        for (; i < block.end; ++i) fitted(i) = level;
    }
}

}  // namespace

void register_isotonic(nb::module_ &m) {
    m.def("pool_adjacent_violators", &pool_adjacent_violators, nb::arg("values"),
          nb::arg("weights"), nb::arg("fitted").noconvert());
}
