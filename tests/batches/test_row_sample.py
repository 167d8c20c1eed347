"""Rows that a model has learned from are known again, and chance is not taken for knowledge."""

import numpy as np
import pytest

from hetcal.batches.row_sample import LearnedRows, RowSample


def hashes(n, seed=0):
    return np.random.default_rng(seed).integers(0, 2**64, n, dtype=np.uint64)


def share_of(sample, *streams):
    rows = LearnedRows(sample)
    for stream in streams:
        rows.count(stream)
    return rows.share


def test_learned_rows_are_known_in_any_order_and_company():
    learned = hashes(2000)
    assert share_of(RowSample.of(learned), learned[::-1]) == pytest.approx(1)
    mixed = np.concatenate([learned[:1000], hashes(1000, 1)])
    assert share_of(RowSample.of(learned), mixed) == pytest.approx(0.5, abs=0.15)
    assert share_of(RowSample.of(learned), hashes(2000, 1)) == 0


def test_repeats_of_one_row_are_one_row():
    sample = RowSample.of(hashes(2000))
    assert share_of(sample, np.repeat(sample.hashes[:1], 8)) == 0


@pytest.mark.parametrize(("n_cells", "n_rows"), [(64, 100), (81, 100), (27, 60), (625, 500)])
def test_new_rows_of_a_table_with_few_different_rows_are_not_taken_for_known_ones(n_cells, n_rows):
    cells, rng = hashes(n_cells), np.random.default_rng(1)
    for _ in range(20):
        sample = RowSample.of(rng.choice(cells, n_rows))
        assert share_of(sample, rng.choice(cells, 50)) == 0


def test_rows_that_come_again_are_not_counted_twice():
    learned = hashes(2000)
    twice = RowSample.of(learned).with_more(learned)
    assert twice.n_distinct == pytest.approx(2000, rel=0.3)
    assert RowSample.of(learned).with_more(hashes(3000, 1)).n_distinct == pytest.approx(
        5000, rel=0.3
    )


def test_a_share_that_copies_alone_could_make_is_none():
    learned = hashes(2000)
    known = np.concatenate([learned[:120], hashes(880, 1)])
    share = share_of(RowSample(learned, 2000, 0.0), known)
    assert share == pytest.approx(0.12)
    assert share_of(RowSample(learned, 2000, 0.03), known) == share
    assert share_of(RowSample(learned, 2000, 0.04), known) == 0
