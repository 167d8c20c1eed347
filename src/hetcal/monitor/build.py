"""Where the reference of a monitor comes from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal.monitor.checks import check_same_items, names_of, take_rows, top_classes
from hetcal.monitor.reference import LEAST_ITEMS, Reference, Scorer

_SHARE_APART, _MOST_APART = 3, 1000


def out_of_bag(scorer: Scorer, kind: str | None, X: Any, output: dict, seed: int) -> Reference:
    """Return the out-of-sample scores of the calibration items."""
    support, trees = scorer.calibrator.out_of_sample_support(return_n_trees=True)
    top = check_same_items(scorer.calibrator, len(support), X, output)
    rows, n_trees = [support], [trees]
    if kind is not None:
        scores, counted = scorer.fit_distance(kind, X, seed)
        rows.append(scores)
        n_trees.append(counted)
    return Reference(np.stack(rows), n_trees, top)


def split(
    scorer: Scorer, kind: str | None, X: Any, output: dict, seed: int
) -> tuple[Reference, NDArray[np.int64]]:
    """Return the scores of items that the calibrator has not seen, and which of them are left.

    The others train the distance score.
    """
    if X is None or not output:
        raise ValueError(
            "SupportMonitor(reference='split').fit needs X and y_proba (or logits) of items "
            "that the calibrator has not seen."
        )
    n_items = int(np.shape(X)[0])
    rng = np.random.default_rng([seed, 0])
    order = rng.permutation(n_items)
    n_apart = 0 if kind is None else min(n_items // _SHARE_APART, _MOST_APART)
    apart, rows = np.sort(order[:n_apart]), np.sort(order[n_apart:])
    if kind is not None:
        scorer.fit_distance_apart(kind, take_rows(X, apart))
    kept = {name: take_rows(value, rows) for name, value in output.items()}
    n_trees: list[Any] = [None] * (1 + (kind is not None))
    scores = scorer.scores(take_rows(X, rows), kept, n_trees, rng)
    return Reference(scores, n_trees, top_classes(kept, scorer.calibrator)), rows


def extended(
    old: Reference, scorer: Scorer, X: Any, y: Any, output: dict, by: Any, seed: int
) -> Reference:
    """Add calibration items to the calibrator, and return the reference with them."""
    calibrator, n_new = scorer.calibrator, int(np.shape(X)[0])
    n_before = len(calibrator.out_of_sample_support())
    rng = np.random.default_rng([seed, 3, n_before])
    added = scorer.scores(X, output, old.n_trees, rng)
    named = np.full(n_new, "", dtype=object) if by is None else names_of(by, n_new)
    top = None if old.top is None else np.append(old.top, top_classes(output, calibrator))
    before = np.arange(n_before) if old.rows is None else old.rows
    rows = np.append(before, n_before + np.arange(n_new))
    calibrator.extend(X, y, **output)
    support, trees = calibrator.out_of_sample_support(return_n_trees=True)
    scores, n_trees = [support[rows]], [None if trees is None else trees[rows]]
    if len(old.scores) > 1:
        counted = old.n_trees[1]
        scores.append(np.append(old.scores[1], added[1]))
        more = None if counted is None else np.append(counted, rng.choice(counted, n_new))
        n_trees.append(more)
    names = None if old.by is None else np.append(old.by, named)
    return Reference(np.stack(scores), n_trees, top, names, rows)


def usable(reference: Reference) -> Reference:
    """Leave out items that no tree can judge, since all have seen them, or that have no score."""
    judged: NDArray[np.bool_] = np.asarray(np.isfinite(reference.scores).all(axis=0))
    for counted in reference.n_trees:
        if counted is not None:
            judged &= counted > 0
    if judged.sum() < LEAST_ITEMS:
        raise ValueError(
            f"SupportMonitor has {int(judged.sum())} reference items; it needs at least "
            f"{LEAST_ITEMS}. Calibrate with more items, or with more trees."
        )
    if judged.all():
        return reference
    rows = np.arange(len(judged)) if reference.rows is None else reference.rows
    return Reference(
        reference.scores[:, judged],
        [None if counted is None else counted[judged] for counted in reference.n_trees],
        None if reference.top is None else reference.top[judged],
        None if reference.by is None else reference.by[judged],
        rows[judged],
    )
