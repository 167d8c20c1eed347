"""The nearest items, against a loop."""

from __future__ import annotations

import numpy as np
import pytest

from hetcal.kernels import native, use_core
from hetcal.kernels.nearest import nearest_items

needs_core = pytest.mark.skipif(native() is None, reason="the compiled core was not built")
core = pytest.mark.parametrize("name", ["pure", pytest.param("native", marks=needs_core)])


def by_loop(items, rows, k, own=None):
    distance = np.sqrt(((rows[:, None] - items) ** 2).sum(axis=2))
    if own is not None:
        distance[np.arange(len(rows)), own] = np.inf
    order = np.argsort(distance, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distance, order, axis=1), order


@core
@pytest.mark.parametrize("n_columns", [1, 5, 41])
@pytest.mark.parametrize("n_items", [1, 7, 64, 203])
def test_like_a_loop(name, n_items, n_columns):
    rng = np.random.default_rng(n_items)
    items, rows = rng.normal(size=(n_items, n_columns)), rng.normal(size=(30, n_columns))
    k = min(6, n_items)
    with use_core(name):
        found = nearest_items(items, rows, k, n_jobs=2)
        np.testing.assert_array_equal(found[1], by_loop(items, rows, k)[1])
        np.testing.assert_allclose(found[0], by_loop(items, rows, k)[0], atol=1e-7)
        if n_items > 6:
            distance, index = nearest_items(items, None, k)
            expected = by_loop(items, items, k, np.arange(n_items))
            np.testing.assert_array_equal(index, expected[1])
            np.testing.assert_allclose(distance, expected[0], atol=1e-7)


@needs_core
def test_of_equal_items_the_first_comes_first():
    items = np.repeat(np.arange(4.0), 30)[:, None]
    distance, index = nearest_items(items, np.array([[2.0], [0.4]]), 3)
    np.testing.assert_array_equal(index, [[60, 61, 62], [0, 1, 2]])
    np.testing.assert_allclose(distance, [[0.0] * 3, [0.4] * 3])
    np.testing.assert_array_equal(nearest_items(items, None, 2)[1][:3], [[1, 2], [0, 2], [0, 1]])


@needs_core
@pytest.mark.parametrize("among", ["items", "rows"])
def test_many_columns_and_blocks(monkeypatch, among):
    """Lengths of all sizes, copies, and more items at nearly one distance than bounds can tell."""
    monkeypatch.setattr("hetcal.kernels.nearest._BLOCK", 128)
    rng = np.random.default_rng(0)
    items = rng.normal(size=(700, 50)) * np.geomspace(0.01, 100.0, 700)[:, None]
    items[300:650] = items[0] + 1e-7 * rng.normal(size=(350, 50))
    items[20:24] = items[10]
    rows, own = (items, np.arange(700)) if among == "items" else (items[::3] + 1e-9, None)
    distance, index = nearest_items(items, None if among == "items" else rows, 9)
    expected = by_loop(items, rows, 9, own)
    np.testing.assert_array_equal(index, expected[1])
    np.testing.assert_allclose(distance, expected[0], rtol=1e-12)


@needs_core
def test_numbers_beyond_float32():
    items = np.random.default_rng(0).normal(size=(30, 60)) * 1e30
    distance, index = nearest_items(items, None, 3)
    expected = by_loop(items, items, 3, np.arange(30))
    np.testing.assert_array_equal(index, expected[1])
    np.testing.assert_allclose(distance, expected[0], rtol=1e-7)


@needs_core
@pytest.mark.parametrize("scale", [1e-18, 1e-20, 1e-22, 1e-30, 1e-60])
def test_numbers_whose_products_vanish_in_float32(scale):
    rng = np.random.default_rng(0)
    items = rng.normal(size=(60, 41)) * scale
    items[::7] *= 1e20  # beside large ones
    distance, index = nearest_items(items, None, 5)
    expected = by_loop(items, items, 5, np.arange(60))
    np.testing.assert_array_equal(index, expected[1])
    np.testing.assert_allclose(distance, expected[0], rtol=1e-12, atol=0)
    rows = rng.normal(size=(9, 41)) * scale
    distance, index = nearest_items(items, rows, 5)
    np.testing.assert_array_equal(index, by_loop(items, rows, 5, None)[1])


@core
def test_what_cannot_be_is_refused(name):
    items = np.zeros((3, 2))
    with use_core(name):
        for rows, k in ((None, 3), (None, 0), (items, 4), (np.zeros((3, 1)), 1)):
            with pytest.raises(ValueError, match="nearest_items"):
                nearest_items(items, rows, k)


@needs_core
def test_the_core_checks_its_border():
    items, distance, index = np.zeros((3, 2)), np.zeros((3, 1)), np.zeros((3, 1), np.int64)
    good = [items, items, False, distance, index, 1]
    native().nearest_items(*good)
    for place, wrong in (
        *((0, np.zeros((0, 2))), (1, np.zeros((3, 1))), (1, np.zeros((4, 2)))),
        *((3, np.zeros((3, 2))), (3, np.zeros((3, 0))), (4, np.zeros((2, 1), np.int64)), (5, 0)),
    ):
        bad = [wrong if at == place else part for at, part in enumerate(good)]
        with pytest.raises(ValueError, match="nearest_items"):
            native().nearest_items(*bad)
    with pytest.raises(ValueError, match="nearest_items"):
        native().nearest_items(items, items[:2], True, distance[:2], index[:2], 1)
