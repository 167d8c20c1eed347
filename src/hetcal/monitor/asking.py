"""What a monitor says about items without counting them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from hetcal._threads import snapshot
from hetcal._typing import Vector
from hetcal._validation.containers import number_of_rows
from hetcal.monitor.batch import Batch
from hetcal.monitor.changes import feature_changes
from hetcal.monitor.checks import classifier_output
from hetcal.monitor.expected import Expectation, ExpectedPerformance
from hetcal.monitor.fitted import FittedMonitor


class AskedMonitor(FittedMonitor):
    """A monitor that is asked about items."""

    def p_values(
        self, X: Any, *, y_proba: Any = None, logits: Any = None, score: str = "all"
    ) -> Vector:
        """Return the p-value of each item; nothing is counted.

        Parameters
        ----------
        X, y_proba, logits
            New items, as in the calibrator's ``predict_proba``.
        score : {"all", "support", "distance"}, default="all"
            Of both scores together (the level is split between them), or of one.
        """
        with self.lock:  # calibrator and reference of the same moment
            calibrator, now = self._watched(), snapshot(self)
        if score not in ("all", *now.scores_):
            raise ValueError(
                f"score must be 'all' or one of {now.scores_}; got {score!r}. A distance score "
                "needs SupportMonitor.fit(X, y_proba=...)."
            )
        rng = np.random.default_rng([now.random_state, 1])
        if number_of_rows(X, "X") == 0:
            return np.zeros(0)
        batch = Batch.check(calibrator, X, classifier_output(y_proba, logits))
        scores = now.scorer_.scores(calibrator, batch, now.reference_.n_trees, rng)
        each, together = now.reference_.p_values(scores, rng)
        return together if score == "all" else each[now.scores_.index(score)]

    def expected_performance(
        self, X: Any, *, y_proba: Any = None, logits: Any = None, level: float = 0.95
    ) -> ExpectedPerformance:
        """Return the scores to expect on items without labels; nothing is counted.

        Holds as long as labels depend on items as they used to: what has changed in P(y | x) only
        labels can show.

        Parameters
        ----------
        X, y_proba, logits
            New items, at least one, as in the calibrator's ``predict_proba``.
        level : float, default=0.95
            Of the intervals.

        Returns
        -------
        ExpectedPerformance
            ``accuracy``, ``brier``, ``log_loss`` (each a ``value`` from ``low`` to ``high``),
            ``confusion``, the share of ``flagged`` items and a ``note`` where these are many.
        """
        if number_of_rows(X, "X") == 0:
            raise ValueError("SupportMonitor.expected_performance needs at least one item; got 0.")
        with self.lock:
            calibrator, now = self._watched(), snapshot(self)
        flagged = now.p_values(X, y_proba=y_proba, logits=logits) <= now.rate
        items = calibrator.new_items(X, **classifier_output(y_proba, logits))
        expectation = Expectation(calibrator)
        sums = expectation.sums(calibrator.predict_items(items), int(flagged.sum()))
        return expectation.performance(sums, level, now.rate)

    def what_changed(
        self, X: Any, before: Any, *, y_proba: Any = None, logits: Any = None
    ) -> pd.DataFrame:
        """Rank the features of new items by their part in what is flagged; nothing is counted.

        Parameters
        ----------
        X, y_proba, logits
            New items, as in the calibrator's ``predict_proba``.
        before : array-like or table
            Features of items to compare with, such as the calibration items.

        Returns
        -------
        pandas.DataFrame
            ``feature``; ``recovered``, the share of the flagged items (at most 500 of them) that
            are flagged no longer when this feature alone gets values of ``before``: what moved
            together with others recovers little by itself; ``distance`` of the distributions, 0 to
            1 (Kolmogorov and Smirnov, or total variation of categories); typical values ``before``
            and ``now`` (median, or most frequent); ``unseen``, the share of items outside the range
            of before, or in categories that it lacks. Ranked by the first two.
        """
        output = classifier_output(y_proba, logits)
        self._watched()
        return feature_changes(snapshot(self), X, before, output, self.random_state)
