// The calibration set as local forests want it: every column sorted once, its commonest value left implicit.
#pragma once

#include <cstdint>
#include <vector>

#include "rank_codes.hpp"

namespace hetcal::hh {

using Code = std::uint16_t;
using Item = std::uint16_t;

struct SortedColumns {
    RankCodes<Code> ranks;
    std::vector<Item> items;         // column after column, by increasing code, the commonest code left out
    std::vector<std::size_t> start;  // where each column begins in `items`; n_features + 1 entries
    std::vector<std::size_t> above;  // where each column's codes above the commonest begin

    explicit SortedColumns(const FloatMatrix &X) : ranks(rank_codes<Code>(X)) {
        const std::size_t n = ranks.n_items, d = ranks.n_features;
        items.reserve(n * d);  // growing step by step would double the peak of memory
        std::vector<Item> order(n);
        std::vector<std::size_t> begin;
        start.assign(1, 0);
        above.reserve(d);
        for (std::size_t f = 0; f < d; ++f) {
            presort_column(ranks, f, order.data(), begin);
            const std::size_t common = ranks.most_frequent[f];
            const std::size_t low = n ? begin[common] : 0, high = n ? begin[common + 1] : 0;
            items.insert(items.end(), order.begin(), order.begin() + low);
            above.push_back(items.size());
            items.insert(items.end(), order.begin() + high, order.end());
            start.push_back(items.size());
        }
        items.shrink_to_fit();
    }
};

// An item that does not hold the column's commonest code.
struct Entry {
    Code code;
    Item item;
};

// The entries of one feature in one node: [low, middle) below the commonest code, [middle, high) above it.
struct Span {
    std::uint32_t feature, low, middle, high;
};

// A neighbourhood: its items, numbered 0 to size - 1, and their entries of every column.
struct Neighbourhood {
    std::uint32_t size = 0;
    std::vector<std::uint32_t> members;  // local item -> calibration item
    std::vector<Entry> entries;
    std::vector<Span> spans;  // features with at least one entry

    // The same entries item by item; made by list_rows.
    struct Cell {
        std::uint32_t span;
        Code code;
    };
    std::vector<Cell> cells;
    std::vector<std::uint32_t> row_start;  // size + 1 entries

    void list_rows() {
        row_start.assign(size + 1, 0);
        for (const Entry &entry : entries) ++row_start[entry.item + 1];
        for (std::uint32_t i = 0; i < size; ++i) row_start[i + 1] += row_start[i];
        cells.resize(entries.size());
        std::vector<std::uint32_t> next(row_start.begin(), row_start.end() - 1);
        for (std::uint32_t s = 0; s < spans.size(); ++s)
            for (std::uint32_t i = spans[s].low; i < spans[s].high; ++i)
                cells[next[entries[i].item]++] = {s, entries[i].code};
    }

    // `local_of` holds n_items entries, all 0xffff; it is left so.
    void gather(const SortedColumns &columns, const std::int64_t *indices, std::uint32_t n_members,
                std::vector<Item> &local_of) {
        size = n_members;
        members.assign(indices, indices + n_members);
        entries.clear();
        spans.clear();
        const std::size_t n = columns.ranks.n_items;
        // Sorting costs about 8 times as much per entry as reading a sorted column.
        if (std::size_t(size) * 8 < n)
            gather_by_sorting(columns);
        else
            gather_by_filtering(columns, local_of);
    }

  private:
    void add_span(std::uint32_t feature, std::size_t low, std::size_t middle) {
        if (entries.size() > low)
            spans.push_back({feature, std::uint32_t(low), std::uint32_t(middle), std::uint32_t(entries.size())});
    }

    void gather_by_filtering(const SortedColumns &columns, std::vector<Item> &local_of) {
        constexpr Item kAbsent = 0xffff;
        for (std::uint32_t i = 0; i < size; ++i) local_of[members[i]] = Item(i);
        const std::size_t d = columns.ranks.n_features;
        for (std::size_t f = 0; f < d; ++f) {
            const Code *code = columns.ranks.column(f);
            const std::size_t low = entries.size();
            std::size_t write = low, middle = low;
            entries.resize(low + (columns.start[f + 1] - columns.start[f]));
            for (std::size_t i = columns.start[f]; i < columns.start[f + 1]; ++i) {
                if (i == columns.above[f]) middle = write;
                const Item item = columns.items[i], local = local_of[item];
                entries[write] = {code[item], local};
                write += local != kAbsent;
            }
            if (columns.above[f] == columns.start[f + 1]) middle = write;
            entries.resize(write);
            add_span(std::uint32_t(f), low, middle);
        }
        for (std::uint32_t i = 0; i < size; ++i) local_of[members[i]] = kAbsent;
    }

    void gather_by_sorting(const SortedColumns &columns) {
        const std::size_t d = columns.ranks.n_features;
        std::vector<std::uint32_t> keys(size);
        for (std::size_t f = 0; f < d; ++f) {
            const Code *code = columns.ranks.column(f);
            const Code common = columns.ranks.most_frequent[f];
            std::size_t count = 0, below = 0;
            for (std::uint32_t i = 0; i < size; ++i) {
                const Code c = code[members[i]];
                keys[count] = (std::uint32_t(c) << 16) | i;
                count += c != common;
                below += c < common;
            }
            std::sort(keys.begin(), keys.begin() + count);
            const std::size_t low = entries.size();
            for (std::size_t i = 0; i < count; ++i)
                entries.push_back({Code(keys[i] >> 16), Item(keys[i] & 0xffff)});
            add_span(std::uint32_t(f), low, low + below);
        }
    }
};

}  // namespace hetcal::hh
