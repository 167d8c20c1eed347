"""Who learns and who is tested: folds, groups, and nested parts of what may be learned from."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np

from hetcal._exceptions import HetcalWarning, levels_to_caller
from hetcal._typing import Rows
from hetcal.data import CalibrationSet
from hetcal.data.folds import Split
from hetcal.data.splits import check_groups_apart, splits_of, stratified_folds


def make_splits(
    items: CalibrationSet,
    cv: Any = 5,
    n_repeats: int = 1,
    *,
    random_state: int = 0,
    caller: str = "compare",
) -> list[Split]:
    """Return (train rows, test rows), one pair per fold and repeat.

    Parameters
    ----------
    items : CalibrationSet
        Groups among them are never on both sides of a split.
    cv : int, splitter or iterable of (train, test)
        An int gives stratified, shuffled folds, by group where there are groups. A splitter may
        leave items untested (``TimeSeriesSplit``) or test them several times.
    n_repeats : int, default=1
        Other shuffles of the same folds; only for an int, a splitter says itself how often.
    random_state : int, default=0
        Seed of the first shuffle; repeat r takes ``random_state + r``.
    """
    if not isinstance(n_repeats, Integral) or n_repeats < 1:
        raise ValueError(f"{caller}: n_repeats must be a positive integer; got {n_repeats!r}.")
    if isinstance(cv, Integral):
        _check_fold_number(items, int(cv), caller)
        splits = [
            split
            for repeat in range(int(n_repeats))
            for split in stratified_folds(
                items.codes, int(cv), groups=items.groups, seed=random_state + repeat
            )
        ]
    else:
        splits = splits_of(cv, items.codes, items.groups)
    if not splits:
        raise ValueError(f"{caller}: cv gives no split at all. Pass an int or another splitter.")
    for train, test in splits:
        _check_split(items, train, test, caller)
    return splits


def nested_parts(items: CalibrationSet, train: Rows, sizes: list[int], seed: int) -> list[Rows]:
    """Return parts of ``train``, each of which holds all smaller ones.

    Classes keep their shares in every part. Where there are groups, whole groups join one after the
    other (the last one of a part may be cut).
    """
    rng = np.random.default_rng(seed)
    if items.groups is not None:
        _, own = np.unique(items.groups[train], return_inverse=True)
        place = rng.permutation(int(own.max()) + 1)[own] + rng.uniform(size=train.shape[0])
    else:
        place = np.empty(train.shape[0])
        for code in np.unique(items.codes[train]):
            members = np.flatnonzero(items.codes[train] == code)
            ranks = rng.permutation(members.shape[0]) + rng.uniform(size=members.shape[0])
            place[members] = ranks / members.shape[0]
    order = train[np.argsort(place, kind="stable")]
    return [np.sort(order[:size]) for size in sizes]


def _check_fold_number(items: CalibrationSet, n_folds: int, caller: str) -> None:
    by_group = items.groups is not None
    units = int(items.groups.max()) + 1 if items.groups is not None else items.n_items
    if not 2 <= n_folds <= units:
        raise ValueError(
            f"{caller}: cv={n_folds} folds cannot be made of {units} "
            f"{'groups' if by_group else 'rows'}. Pass 2 <= cv <= {units}, or more data."
        )
    counts = np.bincount(items.codes, minlength=items.classes.shape[0])
    rare = items.classes[(counts > 0) & (counts < n_folds)].tolist()
    if rare:
        warnings.warn(
            f"{caller}: class {rare[0]!r} has {counts[counts > 0].min()} item(s)"
            f"{f' ({len(rare)} such classes)' if len(rare) > 1 else ''}, fewer than the "
            f"{n_folds} folds: some folds cannot learn or cannot test it. Collect more items of "
            "it, merge it with another class, or pass a smaller cv.",
            HetcalWarning,
            stacklevel=levels_to_caller(),
        )


def _check_split(items: CalibrationSet, train: Rows, test: Rows, caller: str) -> None:
    if not train.size or not test.size:
        raise ValueError(f"{caller}: cv gives a split without items to learn from or to test.")
    if np.intersect1d(train, test).size:
        raise ValueError(
            f"{caller}: cv tests items that it has learned from. Pass splits without common rows."
        )
    check_groups_apart((train, test), items.groups, caller)
    learned = np.unique(items.codes[train][items.weights[train] > 0])
    if learned.shape[0] < 2:
        only = items.classes[learned].tolist()
        raise ValueError(
            f"{caller}: the items that a split learns from hold one class only ({only}). Pass a "
            "smaller cv, splits that mix classes, or more items of the rare class."
        )
