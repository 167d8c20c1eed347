"""Where the reference of a monitor comes from, and the scorer that treats new items like it."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetcal._validation.containers import take_rows
from hetcal.monitor.checks import n_rows, names_of, top_classes
from hetcal.monitor.reference import Reference
from hetcal.monitor.scorer import Scorer
from hetcal.monitor.watched import check_same_items

_SHARE_APART, _MOST_APART = 3, 1000


def out_of_bag(
    calibrator: Any, kind: str | None, X: Any, output: dict[str, Any], by: Any, seed: int
) -> tuple[Scorer, Reference]:
    """Return the out-of-sample scores of the calibration items."""
    support, trees = calibrator.out_of_sample_support(return_n_trees=True)
    top = check_same_items(calibrator, len(support), X, output)
    scorer, rows, n_trees = Scorer(), [support], [trees]
    if kind is not None:
        scorer, scores, counted = Scorer.fit(kind, X, seed)
        rows.append(scores)
        n_trees.append(counted)
    names = None if by is None else names_of(by, len(support))
    return scorer, Reference(np.stack(rows), n_trees, top, names)


def split(
    calibrator: Any, kind: str | None, X: Any, output: dict[str, Any], by: Any, seed: int
) -> tuple[Scorer, Reference]:
    """Return the scores of items that the calibrator has not seen.

    Some of them train the distance score and are no reference.
    """
    if X is None or not output:
        raise ValueError(
            "SupportMonitor(reference='split').fit needs X and y_proba (or logits) of items "
            "that the calibrator has not seen."
        )
    n_items = n_rows(X)
    names = None if by is None else names_of(by, n_items)
    rng = np.random.default_rng([seed, 0])
    order = rng.permutation(n_items)
    n_apart = 0 if kind is None else min(n_items // _SHARE_APART, _MOST_APART)
    apart, rows = np.sort(order[:n_apart]), np.sort(order[n_apart:])
    scorer = Scorer() if kind is None else Scorer.fit_apart(kind, take_rows(X, apart))
    kept = {name: take_rows(value, rows) for name, value in output.items()}
    n_trees = [None] * len(scorer.names)
    scores = scorer.scores(calibrator, take_rows(X, rows), kept, n_trees, rng)
    names = None if names is None else names[rows]
    return scorer, Reference(scores, n_trees, top_classes(kept, calibrator), names)


def extended(
    old: Reference,
    scorer: Scorer,
    calibrator: Any,
    X: Any,
    y: Any,
    output: dict[str, Any],
    by: Any,
    seed: int,
) -> Reference:
    """Add calibration items to the calibrator, and return the reference with them."""
    n_new, n_before = n_rows(X), len(calibrator.out_of_sample_support())
    rng = np.random.default_rng([seed, 3, n_before])
    added = scorer.scores(calibrator, X, output, old.n_trees, rng)
    named = np.full(n_new, "", dtype=object) if by is None else names_of(by, n_new)
    top = None if old.top is None else np.append(old.top, top_classes(output, calibrator))
    rows = np.append(old.calibration_rows(), n_before + np.arange(n_new))
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
