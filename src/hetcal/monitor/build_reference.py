"""Where the reference of a monitor comes from, and the scorer that treats new items like it."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetcal._typing import Matrix, Rows
from hetcal._validation.containers import number_of_rows, take_rows
from hetcal.calibration.forgetting import Aged
from hetcal.monitor.batch import Batch
from hetcal.monitor.checks import names_of
from hetcal.monitor.reference import Reference
from hetcal.monitor.scorer import Scorer
from hetcal.monitor.watched import check_same_items, stated_proba

_SHARE_APART, _MOST_APART = 3, 1000


def out_of_bag(
    calibrator: Any, kind: str | None, X: Any, output: dict[str, Any], by: Any, seed: int
) -> tuple[Scorer, Reference, Matrix | None]:
    """Return the out-of-sample scores of the calibration items.

    And, where they are known, the classifier's probabilities of these.
    """
    support, trees = calibrator.out_of_sample_support(return_n_trees=True)
    stated = check_same_items(calibrator, len(support), X, output)
    top = None if stated is None else stated.argmax(axis=1)
    scorer, rows, n_trees = Scorer(), [support], [trees]
    if kind is not None:
        scorer, scores, counted = Scorer.fit(kind, X, seed)
        rows.append(scores)
        n_trees.append(counted)
    names = None if by is None else names_of(by, len(support))
    return scorer, Reference(np.stack(rows), n_trees, top, names), stated


def split(
    calibrator: Any, kind: str | None, X: Any, output: dict[str, Any], by: Any, seed: int
) -> tuple[Scorer, Reference, Matrix | None]:
    """Return the scores of items that the calibrator has not seen.

    Some of them train the distance score and are no reference. And, where they are known, the
    classifier's probabilities of the calibration items.
    """
    if X is None or not output:
        raise ValueError(
            "SupportMonitor(reference='split').fit needs X and y_proba (or logits) of items "
            "that the calibrator has not seen."
        )
    n_items = number_of_rows(X, "X")
    rng = np.random.default_rng([seed, 0])
    order = rng.permutation(n_items)
    n_apart = 0 if kind is None else min(n_items // _SHARE_APART, _MOST_APART)
    apart, rows = np.sort(order[:n_apart]), np.sort(order[n_apart:])
    scorer = Scorer() if kind is None else Scorer.fit_apart(kind, take_rows(X, apart))
    batch = Batch.check(calibrator, X, output, by).take(rows)
    n_trees = [None] * len(scorer.names)
    scores = scorer.scores(calibrator, batch, n_trees, rng)
    reference = Reference(scores, n_trees, batch.top, batch.names)
    return scorer, reference, stated_proba(calibrator)


def extended(
    old: Reference,
    scorer: Scorer,
    calibrator: Any,
    batch: Batch,
    codes: Rows,
    aged: Aged,
    seed: int,
) -> Reference:
    """Add calibration items to the calibrator, and return the reference with those that stay."""
    n_new, n_before = batch.n_items, len(calibrator.out_of_sample_support())
    rng = np.random.default_rng([seed, 3, n_before])
    every = np.append(old.calibration_rows(), n_before + np.arange(n_new))
    stay = np.isin(every, aged.rows)
    rows = np.searchsorted(aged.rows, every[stay])  # places among the items that stay
    calibrator.extend_items(batch.items, codes, aged)
    support, trees = calibrator.out_of_sample_support(return_n_trees=True)
    scores, n_trees = [support[rows]], [None if trees is None else trees[rows]]
    if len(old.scores) > 1:
        counted = old.n_trees[1]
        drawn: Any = None if counted is None else rng.choice(counted, n_new)
        scores.append(np.append(old.scores[1], scorer.distances(batch.X, drawn, rng))[stay])
        n_trees.append(None if counted is None else np.append(counted, drawn)[stay])
    top = None if old.top is None else np.append(old.top, batch.top)[stay]
    unnamed = np.full(n_new, "", dtype=object)
    added = unnamed if batch.names is None else batch.names
    names = None if old.by is None else np.append(old.by, added)[stay]
    return Reference(np.stack(scores), n_trees, top, names, rows)
