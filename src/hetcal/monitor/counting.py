"""New items and labels that a monitor counts and tests."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd

from hetcal._threads import on_draft
from hetcal._typing import Matrix, Rows, Vector
from hetcal._validation.containers import number_of_rows
from hetcal.monitor.batch import Batch
from hetcal.monitor.checks import classifier_output, known_labels
from hetcal.monitor.conformal import discoveries
from hetcal.monitor.fitted import FittedMonitor
from hetcal.monitor.groups import Members, class_members, named_members


class CountingMonitor(FittedMonitor):
    """A monitor that is updated."""

    @on_draft
    def update(
        self, X: Any, *, y_proba: Any = None, logits: Any = None, y: Any = None, by: Any = None
    ) -> pd.DataFrame:
        """Count and test new items, in the order in which they came.

        Parameters
        ----------
        X, y_proba, logits
            New items, as in the calibrator's ``predict_proba``.
        y : array-like of shape (m,), optional
            Labels that are known already; missing ones (None, NaN) are left out. Those that come
            later: :meth:`update_labels`.
        by : array-like of shape (m,), optional
            The sub-population of each item.

        Returns
        -------
        pandas.DataFrame
            One row per item: ``support``, ``distance`` (higher is less typical), ``p_support``,
            ``p_distance``, ``p``, ``flag`` (p at most ``rate``), ``discovery`` (in this batch at
            the rate ``fdr``).
        """
        calibrator, n_new = self._watched(), number_of_rows(X, "X")
        labels = None if y is None else known_labels(y, self.classes_, n_new)
        if n_new == 0:
            nothing = np.zeros((len(self.scores_), 0))
            return self._table(nothing, nothing, nothing[0])
        batch = Batch.check(calibrator, X, classifier_output(y_proba, logits), by)
        rng = np.random.default_rng([self.random_state, 2, self.n_seen_])
        scores = self.scorer_.scores(calibrator, batch, self.reference_.n_trees, rng)
        items = self._table(scores, *self.reference_.p_values(scores, rng))
        n_alarms = len(self.alarms_)
        self.counts_, peaks = self.counts_.after(
            self.scorer_.bins(scores),
            rng.random(scores.shape),
            items["flag"].to_numpy(),
            self._members(batch.top, batch.names),
            self._alarm_rule(),
        )
        if labels is not None and len(labels[0]):
            self._add_labels(calibrator, batch, labels)
        n_alarms = len(self.alarms_) - n_alarms
        self.counts_ = self.counts_.recorded(items, peaks, n_alarms, self.max_history)
        return items

    @on_draft
    def update_labels(
        self, X: Any, y: Any, *, y_proba: Any = None, logits: Any = None, by: Any = None
    ) -> None:
        """Count and test labels that came later than their items, in the order in which they came.

        Items are not counted again. Which labels come, and when, may depend on the items and on
        the labels before, but not on the label itself.
        """
        calibrator, labels = self._watched(), known_labels(y, self.classes_, number_of_rows(X, "X"))
        if len(labels[0]):
            batch = Batch.check(calibrator, X, classifier_output(y_proba, logits), by)
            self._add_labels(calibrator, batch, labels)

    def _add_labels(self, calibrator: Any, batch: Batch, labels: tuple[Rows, Rows]) -> None:
        known, codes = labels
        batch = batch.take(known)
        Q, members = calibrator.predict_items(batch.items), self._members(batch.top, batch.names)
        self.counts_ = self.counts_.with_labels(
            Q, batch.items.scores.proba, codes, members, self._alarm_rule()
        )

    @on_draft
    def reset(self) -> Self:
        """Start the tests anew after an alarm was dealt with; counts and history stay.

        Every reset gives another chance of a false alarm, at ``alarm_rate``.
        """
        self._watched()
        self.counts_ = self.counts_.reset()
        return self

    def _members(self, top: Rows, names: Any) -> Members:
        """Return which items are in which class and sub-population, without empty ones."""
        members = class_members(self.classes_, top, self.max_groups) | named_members(names)
        return {group: own for group, own in members.items() if own.any()}

    def _table(self, scores: Matrix, each: Matrix, together: Vector) -> pd.DataFrame:
        items = {"support": scores[0]}
        if len(scores) > 1:
            items["distance"] = -scores[1]
        items |= {f"p_{name}": p for name, p in zip(self.scores_, each, strict=True)}
        items |= {"p": together, "flag": together <= self.rate}
        items["discovery"] = discoveries(together, self.fdr)
        return pd.DataFrame(items)
