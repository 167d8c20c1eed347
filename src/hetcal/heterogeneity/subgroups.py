r"""Names for the sub-populations whose probabilities are wrong.

A rule is a short conjunction of conditions on the original columns. Rules are searched on one half
of the items by beam search, each time for the largest repair of what earlier rules left over; the
search also starts from pairs of conditions of which neither says anything alone. The rules are
then measured on the other half, which had no part in finding them. For the members of a rule
and the class it is about,

.. math:: \mathrm{gap} = \overline{y} - \overline{p}, \qquad
          \mathrm{gain} = c\, \frac{n_U}{n} (\mathrm{gap}^2 - \mathrm{se}^2),

the standard error being that of labels drawn from the probabilities, and the gain the improvement
of the Brier score over *all* items when the members' probabilities are moved by the gap (c = 2 for
two classes, since both columns move; K / (K - 1) for more, where the other classes share the move).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, stdtr

from hetcal._compat import many_classes
from hetcal._typing import Matrix, Rows, Vector
from hetcal._validation import relative_weights
from hetcal._validation.text import short, short_list
from hetcal.data import CalibrationSet, Folds
from hetcal.heterogeneity.condition_pairs import (
    BEAM,
    SURE,
    WORTH_A_CONDITION,
    ConditionPairs,
    Rule,
)
from hetcal.heterogeneity.conditions import (
    Column,
    Condition,
    candidate_conditions,
    columns_of,
    encoded_columns,
)
from hetcal.heterogeneity.functions_of_p import fit_global
from hetcal.heterogeneity.multiplicity import benjamini_hochberg, holm
from hetcal.heterogeneity.orthogonal_test import strongest_cuts
from hetcal.heterogeneity.poisson_binomial import mid_p_value
from hetcal.kernels.intervals import effective_size, wilson_interval

COLUMNS = [
    "rule",
    "class",
    "n",
    "predicted",
    "observed",
    "low",
    "high",
    "gap",
    "gain",
    "p_value",
    "adjusted_p_value",
    "gap_after_global_map",
    "global_map_repairs",
]

_P_AFTER = "p_value_after_global_map"  # dropped once the tests are adjusted for each other
_LEVEL = 0.05
_LEAST_COUNT, _LEAST_SHARE = 25, 0.02
_BLOCK = 20_000_000  # mask entries held as numbers at once


def find_subgroups(
    X: Any,
    y: Any,
    *,
    y_proba: Any,
    classes: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    max_conditions: int = 3,
    max_subgroups: int = 10,
    min_count: int | None = None,
    level: float = 0.05,
    random_state: int = 0,
) -> pd.DataFrame:
    """Find sub-populations for which the probabilities are wrong, and measure them on other items.

    Parameters
    ----------
    X : array-like or table of shape (n, d)
        Original features; categorical levels are used by name.
    y, y_proba, classes, sample_weight, groups
        As in :class:`HiddenHeterogeneity`.
    max_conditions : int, default=3
        Longest rule.
    max_subgroups : int, default=10
        Most rules that are searched for.
    min_count : int, optional
        Smallest sub-population, per half; None: 25, or 2 % of the half if that is more.
    level : float, default=0.05
        Rules are reported when Holm's adjusted p-value on the second half is at most this.
    random_state : int, default=0
        Seed of the halves.

    Returns
    -------
    DataFrame
        One row per sub-population, largest ``gain`` first:

        - ``rule``: e.g. ``"education = Masters and age > 35"``;
        - ``class``: the class whose probability is wrong (the second of two classes);
        - ``n``: members among the items measured;
        - ``predicted``, ``observed``: the model's mean probability of the class, and how often it
          happened;
        - ``low``, ``high``: 95 % interval (Wilson) of ``observed``, wider where ``groups`` make
          it so;
        - ``gap``: ``observed - predicted``;
        - ``gain``: estimated improvement of the Brier score over all items, when the gap is
          repaired;
        - ``p_value``: two-sided, that the model is right on average in the sub-population;
          ``adjusted_p_value``: by Holm's method;
        - ``gap_after_global_map``: the gap that a flexible global recalibration leaves;
        - ``global_map_repairs``: False where what it leaves is shown not to be chance, by Holm's
          method over the reported rules at ``level``.

    Examples
    --------
    >>> from hetcal.datasets import make_hidden_heterogeneity
    >>> from hetcal.heterogeneity import find_subgroups
    >>> data = make_hidden_heterogeneity(4000, heterogeneity=0.9, random_state=0)
    >>> found = find_subgroups(data.frame(), data.y, y_proba=data.y_proba)
    >>> bool((found["p_value"] < 0.05).all()), "x0" in found["rule"][0]
    (True, True)
    """
    checked = CalibrationSet.check(
        X,
        y,
        y_proba=y_proba,
        classes=classes,
        sample_weight=sample_weight,
        groups=groups,
        caller="find_subgroups",
    )
    return subgroups_of(
        checked,
        max_conditions=max_conditions,
        max_subgroups=max_subgroups,
        min_count=min_count,
        level=level,
        random_state=random_state,
    )


def subgroups_of(
    checked: CalibrationSet,
    *,
    max_conditions: int = 3,
    max_subgroups: int = 10,
    min_count: int | None = None,
    level: float = _LEVEL,
    random_state: int = 0,
) -> pd.DataFrame:
    """Do what :func:`find_subgroups` does, on items that were checked already."""
    with many_classes():
        law = fit_global(checked).proba
    halves = Folds.make(checked.n_items, 2, seed=[random_state, 3], groups=checked.groups)
    measured, searched = next(iter(halves))
    if min_count is None:
        min_count = max(_LEAST_COUNT, int(_LEAST_SHARE * len(searched)))
    columns = encoded_columns(checked.X, checked.encoder(), checked.features())
    conditions = candidate_conditions(columns, searched) + _standing_out(checked, columns, searched)
    rules = _search(
        checked, columns, conditions, searched, max_conditions, max_subgroups, min_count
    )
    total = float(checked.weights[measured].sum())
    rows = []
    for rule, k in rules:
        inside = measured[_mask(rule, columns)[measured]]
        if len(inside) >= min_count:
            rows.append({"rule": _words(rule)} | _row(checked, law, inside, k, total))
    table = pd.DataFrame(rows, columns=[*COLUMNS, _P_AFTER])
    if len(table) == 0:
        return table[COLUMNS]
    table["adjusted_p_value"] = holm(table["p_value"].to_numpy())
    table = table[table["adjusted_p_value"] <= level].copy()
    # Many rules are tested: one in twenty would be called hidden by chance alone.
    table["global_map_repairs"] = holm(table.pop(_P_AFTER).to_numpy()) > level
    return table.sort_values("gain", ascending=False, kind="stable").reset_index(drop=True)


def report_groups(items: CalibrationSet, X: Any, by: Sequence[str] | str) -> pd.DataFrame:
    """Report the groups that given columns form, in the form of :func:`find_subgroups`.

    Numbers with more than six values are cut at their quartiles. ``adjusted_p_value`` is
    Benjamini and Hochberg's, and so is the test behind ``global_map_repairs``, at 0.05. For more
    than two classes there is one row per group and class.

    Parameters
    ----------
    items : CalibrationSet
    X : table
        Columns of the same items; the set's own features or others.
    by : str or list of str
    """
    columns = columns_of(X)
    by = [by] if isinstance(by, str) else list(by)
    known = [column.name for column in columns]
    unknown = [name for name in by if name not in known]
    if unknown:
        raise ValueError(
            f"subgroups: by names columns that X does not have: "
            f"{short_list(unknown)}. X has {short_list(known, 20)}."
        )
    with many_classes():
        law = fit_global(items).proba
    everyone = np.ones(items.n_items, dtype=bool)
    combinations: list[tuple[list[str], NDArray[np.bool_]]] = [([], everyone)]
    for part in [_parts(columns[known.index(name)]) for name in by]:
        combinations = [
            ([*names, name], mask & inside) for names, mask in combinations for name, inside in part
        ]
    total = float(items.weights.sum())
    rows = [
        {"rule": " and ".join(names)} | _row(items, law, np.flatnonzero(mask), k, total)
        for names, mask in combinations
        if mask.any()
        for k in (range(1, 2) if items.n_classes == 2 else range(items.n_classes))
    ]
    table = pd.DataFrame(rows, columns=[*COLUMNS, _P_AFTER])
    table["adjusted_p_value"] = benjamini_hochberg(table["p_value"].to_numpy(dtype=float))
    after = benjamini_hochberg(table.pop(_P_AFTER).to_numpy(dtype=float))
    table["global_map_repairs"] = after > _LEVEL
    return table.sort_values("gain", ascending=False, kind="stable").reset_index(drop=True)


def _parts(column: Column) -> list[tuple[str, NDArray[np.bool_]]]:
    """Return the groups that one column forms, named."""
    values = column.values
    if column.levels is not None:
        named = [(f"{column.name} = {level}", values == j) for j, level in enumerate(column.levels)]
        missing = values < 0
    else:
        known = values[~np.isnan(values)]
        missing = np.isnan(values)
        distinct = np.unique(known)
        if len(distinct) <= 6:
            named = [(f"{column.name} = {v:g}", values == v) for v in distinct]
        else:
            cuts = np.unique(np.quantile(known, [0.25, 0.5, 0.75], method="inverted_cdf"))
            place = np.searchsorted(cuts, values)
            edges = [f"{column.name} <= {short(cuts[0])}"]
            edges += [
                f"{short(low)} < {column.name} <= {short(high)}" for low, high in pairwise(cuts)
            ]
            edges.append(f"{column.name} > {short(cuts[-1])}")
            named = [(text, (place == j) & ~missing) for j, text in enumerate(edges)]
    if missing.any():
        named.append((f"{column.name} is missing", missing))
    return named


# -- searching -----------------------------------------------------------------------------------


def _standing_out(
    items: CalibrationSet, columns: list[Column], rows: NDArray[np.int64]
) -> list[Condition]:
    """Return cuts of the directions that stand out on the rows that are searched."""
    number = {column.name: j for j, column in enumerate(columns) if column.levels is None}
    return [
        Condition(number[name], name, kind, cut, cut)
        for name, cut in strongest_cuts(items.take(rows))
        if name in number
        for kind in ("<=", ">")
    ]


def _search(
    items: CalibrationSet,
    columns: list[Column],
    conditions: list[Condition],
    rows: NDArray[np.int64],
    max_conditions: int,
    max_subgroups: int,
    min_count: int,
) -> list[tuple[tuple[Condition, ...], int]]:
    """Return rules, with the class that each is about, found on ``rows`` one after the other."""
    if not conditions or len(rows) == 0:
        return []
    here = [Column(c.name, c.values[rows], c.levels) for c in columns]
    masks = np.column_stack([condition.mask(here) for condition in conditions])
    weight = relative_weights(items.weights[rows])
    P = items.proba[rows]
    spread = P * (1 - P)
    left = items.onehot[rows] - P
    shown = slice(1, 2) if items.n_classes == 2 else slice(None)
    pairs = None
    if max_conditions > 1:
        pairs = ConditionPairs.of(conditions, masks, spread[:, shown], weight, min_count)
    found: list[tuple[tuple[Condition, ...], int]] = []
    for _ in range(max_subgroups):
        rule = _best_rule(
            conditions,
            masks,
            left[:, shown],
            spread[:, shown],
            weight,
            max_conditions,
            min_count,
            [] if pairs is None else pairs.standing_out(left[:, shown]),
        )
        if rule is None:
            break
        chosen, k = rule
        k += shown.start or 0
        found.append((tuple(conditions[c] for c in chosen), k))
        inside = masks[:, list(chosen)].all(axis=1)
        left[inside] -= np.average(left[inside], axis=0, weights=weight[inside])
    return list(dict.fromkeys(found))


def _best_rule(conditions, masks, residuals, spread, weight, max_conditions, min_count, pairs):
    """Return conditions (by number) and class of the rule with the largest sure repair."""
    beam: list[Rule] = [(0.0, (), 0)]
    best: Rule | None = max(pairs, default=None)
    for depth in range(max_conditions):
        grown = {frozenset(pair[1]): pair for pair in pairs} if depth == 1 else {}
        for before, chosen, _ in beam:
            inside = masks[:, list(chosen)].all(axis=1)
            repair = _repairs(masks, inside, residuals, spread, weight, min_count)
            repair[list(chosen)] = -np.inf
            used = {(conditions[c].column, conditions[c].kind) for c in chosen}
            for c in np.argsort(-repair.max(axis=1))[:BEAM]:
                k = int(repair[c].argmax())
                value = float(repair[c, k])
                # A second cut of the same kind on the same column only repeats the narrower one.
                repeats = (conditions[c].column, conditions[c].kind) in used
                if repeats or value <= max(before * WORTH_A_CONDITION, 0.0):
                    continue
                rule = (value, (*chosen, int(c)), k)
                grown.setdefault(frozenset(rule[1]), rule)
                if best is None or value > best[0]:
                    best = rule
        beam = sorted(grown.values(), reverse=True)[:BEAM]
        if not beam and (depth > 0 or not pairs):
            break
    return None if best is None else (best[1], best[2])


def _repairs(masks, inside, residuals, spread, weight, min_count):
    """Return what repairing each narrower rule would surely gain; 0 where nothing stands out."""
    w = weight * inside
    numbers = np.hstack(
        [inside[:, None], w[:, None], residuals * w[:, None], spread * (w**2)[:, None]]
    )
    K = residuals.shape[1]
    step = max(1, _BLOCK // len(masks))
    sums = np.vstack(
        [
            masks[:, start : start + step].T.astype(np.float64) @ numbers
            for start in range(0, masks.shape[1], step)
        ]
    )
    count, mass = sums[:, :1], np.maximum(sums[:, 1:2], 1e-300)
    total, variance = sums[:, 2 : 2 + K], sums[:, 2 + K :]
    error = np.sqrt(np.maximum(variance, 0.25))
    beyond = np.maximum(np.abs(total) - SURE * error, 0.0)
    return np.where(count >= min_count, beyond**2 / mass, -np.inf)


# -- measuring -----------------------------------------------------------------------------------


def _row(
    items: CalibrationSet, law: Matrix, inside: NDArray[np.int64], k: int, total: float
) -> dict[str, Any]:
    """Compare the labels of some items with the model, and with the best global map ``law``."""
    w = items.weights[inside]
    share = w / w.sum()
    outcome = (items.codes[inside] == k).astype(float)
    p, h = items.proba[inside, k], law[inside, k]
    predicted, observed = float(share @ p), float(share @ outcome)
    gap = observed - predicted
    groups = None if items.groups is None else items.groups[inside]
    low, high = wilson_interval(
        np.array([observed]), np.array([effective_size(outcome, share, groups)])
    )
    K = items.n_classes
    return {
        "class": items.classes.tolist()[k],
        "n": len(inside),
        "predicted": predicted,
        "observed": observed,
        "low": float(low[0]),
        "high": float(high[0]),
        "gap": gap,
        "gain": K / (K - 1) * w.sum() / total * (gap**2 - _error(outcome, p, share, groups) ** 2),
        "p_value": _p_value(outcome, p, share, groups),
        "adjusted_p_value": np.nan,
        "gap_after_global_map": float(share @ (outcome - h)),
        _P_AFTER: _p_value(outcome, h, share, groups),
    }


def _p_value(outcome: Vector, p: Vector, share: Vector, groups: Rows | None) -> float:
    """Return the two-sided p-value that the events have these probabilities.

    Exact for items that count alike; by the normal distribution where weights differ, by Student's
    where labels of a group may depend on each other.
    """
    if groups is None and np.ptp(share) <= 1e-12 * share.max():
        return mid_p_value(int(outcome.sum()), p)
    error = _error(outcome, p, share, groups)
    z = abs(float(share @ (outcome - p))) / error if error > 0 else 0.0
    if groups is None:
        return float(2 * ndtr(-z))
    return float(2 * stdtr(max(len(np.unique(groups)) - 1, 1), -z))


def _error(outcome: Vector, p: Vector, share: Vector, groups: Rows | None) -> float:
    """Return the standard error of the mean outcome under the probabilities.

    The residuals' own spread would be nothing in a group without any event. Where labels of a group
    may depend on each other, the probabilities speak for as many independent items as the labels
    show, and the sums over groups count if they show more.
    """
    if groups is None:
        return float(np.sqrt(share**2 @ (p * (1 - p))))
    gap = outcome - p
    sums = np.bincount(groups, share * (gap - share @ gap))
    n = len(np.unique(groups))
    shown = float(sums @ sums) * n / max(n - 1, 1)
    said = float(share @ (p * (1 - p))) / effective_size(outcome, share, groups)
    return float(np.sqrt(max(shown, said)))


def _mask(conditions: tuple[Condition, ...], columns: list[Column]) -> NDArray[np.bool_]:
    return np.logical_and.reduce([condition.mask(columns) for condition in conditions])


def _words(conditions: tuple[Condition, ...]) -> str:
    """Return the rule in words, two cuts of one column as a range."""
    parts = []
    for column in sorted({c.column for c in conditions}):
        kinds = {c.kind: c for c in conditions if c.column == column}
        if {"<=", ">"} <= kinds.keys():
            parts.append(f"{short(kinds['>'].value)} < {kinds['<=']}")
        else:
            parts += [str(c) for c in kinds.values()]
    return " and ".join(parts)
