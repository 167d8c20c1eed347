// Minimal cost-complexity pruning of one tree for a rising list of complexities at once.
//
// Branches collapse one at a time, always the one with the smallest loss of impurity per leaf saved, the first
// of equals. Operations and their order are scikit-learn's, so that comparisons with the complexities come
// out alike to the last bit; a heap replaces its search over all nodes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "hh_tree.hpp"

namespace hetcal::hh {

class Pruner {
  public:
    // stands_for[a * n_nodes + node]: the leaf that stands for the node at complexity a.
    std::vector<std::uint32_t> stands_for;

    void prune(const Tree &tree, const std::vector<double> &alphas) {
        const std::uint32_t n = std::uint32_t(tree.nodes.size());
        stands_for.resize(alphas.size() * n);
        measure_branches(tree);
        heap_.clear();
        price_.resize(n);
        gone_.assign(n, 0);
        collapsed_.resize(n);
        for (std::uint32_t node = 0; node < n; ++node) collapsed_[node] = node;
        for (std::uint32_t node = 0; node < n; ++node)
            if (tree.nodes[node].left >= 0) offer(node, alphas.back());

        std::size_t filled = 0;  // complexities whose pruning is complete
        const auto fill = [&] { std::copy(collapsed_.begin(), collapsed_.end(), stands_for.begin() + filled++ * n); };
        if (alphas[0] == 0) fill();  // complexity 0 is no pruning at all
        while (!heap_.empty() && filled < alphas.size()) {
            std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
            const auto [price, node] = heap_.back();
            heap_.pop_back();
            if (gone_[node] || price != price_[node]) continue;
            while (filled < alphas.size() && alphas[filled] < price) fill();
            if (filled == alphas.size()) break;
            collapse(tree, node, alphas.back());
        }
        while (filled < alphas.size()) fill();
    }

  private:
    using Offer = std::pair<double, std::uint32_t>;
    std::vector<double> own_, branch_, price_;
    std::vector<std::int32_t> n_leaves_;
    std::vector<std::uint32_t> end_, collapsed_;
    std::vector<std::uint8_t> gone_;
    std::vector<Offer> heap_;

    void measure_branches(const Tree &tree) {
        const std::uint32_t n = std::uint32_t(tree.nodes.size());
        own_.resize(n);
        end_.resize(n);
        branch_.assign(n, 0.0);
        n_leaves_.assign(n, 0);
        const double total = tree.nodes[0].weight;
        for (std::uint32_t i = 0; i < n; ++i) {
            own_[i] = tree.nodes[i].weight * tree.nodes[i].impurity / total;
            end_[i] = i + 1;
        }
        for (std::uint32_t i = n - 1; i > 0; --i) {
            std::uint32_t &end = end_[tree.nodes[i].parent];
            end = std::max(end, end_[i]);
        }
        for (std::uint32_t leaf = 0; leaf < n; ++leaf) {
            if (tree.nodes[leaf].left >= 0) continue;
            for (std::int32_t up = tree.nodes[leaf].parent; up >= 0; up = tree.nodes[up].parent) {
                branch_[up] += own_[leaf];
                ++n_leaves_[up];
            }
        }
    }

    void offer(std::uint32_t node, double largest) {
        price_[node] = (own_[node] - branch_[node]) / (n_leaves_[node] - 1);
        if (price_[node] > largest) return;  // can never be collapsed first
        heap_.emplace_back(price_[node], node);
        std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    }

    void collapse(const Tree &tree, std::uint32_t node, double largest) {
        for (std::uint32_t i = node; i < end_[node]; ++i) {
            collapsed_[i] = node;
            gone_[i] = 1;
        }
        const std::int32_t saved = n_leaves_[node] - 1;
        const double loss = own_[node] - branch_[node];
        for (std::int32_t up = tree.nodes[node].parent; up >= 0; up = tree.nodes[up].parent) {
            n_leaves_[up] -= saved;
            branch_[up] += loss;
            offer(std::uint32_t(up), largest);
        }
    }
};

}  // namespace hetcal::hh
