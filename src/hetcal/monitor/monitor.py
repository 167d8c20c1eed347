"""Support in deployment: which items, which stream, and who is drifting."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._threads import changed, on_draft, snapshot, synchronized
from hetcal._validation import check_labels
from hetcal._validation.containers import as_vector
from hetcal.monitor import merging
from hetcal.monitor.alarms import MOST_ALARMS, MonitorTests
from hetcal.monitor.build import extended, out_of_bag, split, usable
from hetcal.monitor.checks import (
    calibrator_inside,
    check_parameters,
    distance_kind,
    n_items,
    names_of,
    take_rows,
    top_classes,
)
from hetcal.monitor.ranks import discoveries
from hetcal.monitor.reference import Scorer
from hetcal.monitor.reports import ALL
from hetcal.monitor.shards import new_shard

Vector = NDArray[np.float64]


class SupportMonitor(MonitorTests):
    r"""Watch whether new items are still covered by the calibration set, without labels.

    A new item's calibration support is ranked among the out-of-sample support of the calibration
    items: a conformal p-value, uniform while nothing has changed, small where the calibration set
    holds little that resembles the item. The same is done with a distance score, since support
    alone cannot see items far outside the data. From the p-values come a flag per item and a test
    for the stream, each with a stated rate of false alarms.

    Parameters
    ----------
    calibrator : SimilarityCalibrator or HybridCalibrator
        Fitted. Inside another one (``LabelPreserving``) it is found.
    reference : {"oob", "split"}, default="oob"
        ``"oob"``: all calibration items, each by the trees that have not seen it; new items meet as
        many trees. Nothing is held back; the rate is right in simulation. ``"split"``: items that
        the calibrator has not seen, given to :meth:`fit`; the rate is exact on average over
        reference sets.
    distance : {"auto", "isolation", "nearest", None}, default="auto"
        The score beside support. ``"nearest"``: distance to the nearest of at most 1000 remembered
        items, standardised by column; sees any shift that leaves the data. ``"isolation"``: how
        soon random cuts isolate the item; keeps no items, and with many columns hardly sees a
        shift of one of them. Both need the features: ``"auto"`` is nearest where :meth:`fit` was
        given them, and none (with a word in :meth:`summary`) where not.
    rate : float, default=0.01
        Share of items flagged while nothing has changed. Below 1 / (n + 1) nothing is.
    fdr : float, default=0.1
        Rate of false discoveries per batch (Benjamini and Hochberg).
    alarm_rate : float, default=0.01
        Probability of a false alarm of the whole stream within ``horizon`` items, and again of any
        false alarm of a class or sub-population. Half of it belongs to the evidence (proven for one
        score; for the mean of two the proof gives the whole), half to the windowed test, where it
        is simulated.
    window : int, default=100
        Items of the windowed test.
    horizon : int, default=10000
        Items for which the windowed test keeps its rate; the evidence keeps it for ever.
    max_groups : int, default=20
        At most so many classes, and so many names, are watched on their own.
    max_history : int, default=10000
        Rows of :meth:`frame`; the oldest go first.
    random_state : int, default=0
        Seed of ties, of the trees that a new item meets, and of the distance score.

    Attributes
    ----------
    alarm_ : dict or None
        The first alarm since the last reset: ``time`` (items since the beginning), ``who``,
        ``test``, ``score``.
    n_seen_ : int
        Items since the beginning.

    Notes
    -----
    Threads may share a monitor: whoever counts, reads counts, fits or extends waits for the others.
    :meth:`p_values` waits for :meth:`fit` and :meth:`extend` only to begin, and then runs beside
    everyone. ``with monitor.lock:`` makes several calls one step.

    Examples
    --------
    >>> from hetcal import SimilarityCalibrator
    >>> from hetcal.datasets import make_hidden_heterogeneity
    >>> data = make_hidden_heterogeneity(600, heterogeneity=1.0, random_state=0)
    >>> swc = SimilarityCalibrator().fit(data.X, data.y, y_proba=data.y_proba)
    >>> monitor = SupportMonitor(swc).fit(data.X, y_proba=data.y_proba)
    >>> new = data.sample(200, random_state=1)
    >>> items = monitor.update(new.X, y_proba=new.y_proba)
    >>> monitor.alarm_ is None
    True
    >>> items = monitor.update(new.X + 5.0, y_proba=new.y_proba)
    >>> monitor.alarm_["who"], monitor.alarm_["time"] < 240
    ('all items', True)
    """

    def __init__(
        self,
        calibrator: Any,
        *,
        reference: str = "oob",
        distance: str | None = "auto",
        rate: float = 0.01,
        fdr: float = 0.1,
        alarm_rate: float = 0.01,
        window: int = 100,
        horizon: int = 10_000,
        max_groups: int = 20,
        max_history: int = 10_000,
        random_state: int = 0,
    ):
        self.calibrator = calibrator
        self.reference = reference
        self.distance = distance
        self.rate = rate
        self.fdr = fdr
        self.alarm_rate = alarm_rate
        self.window = window
        self.horizon = horizon
        self.max_groups = max_groups
        self.max_history = max_history
        self.random_state = random_state

    @on_draft
    def fit(
        self, X: Any = None, *, y_proba: Any = None, logits: Any = None, by: Any = None
    ) -> Self:
        """Learn what is usual.

        Parameters
        ----------
        X : array-like or table of shape (n, d), optional
            With ``reference="oob"`` the calibration items, in the order of the calibrator's fit;
            without them there is no distance score. With ``"split"`` items that the calibrator has
            not seen, at least 20; a third of them (at most 1000) trains the distance score.
        y_proba, logits : array-like of shape (n, K), optional
            The classifier's output on them.
        by : array-like of shape (n,), optional
            The sub-population of each, so that each is compared with its own kind.
        """
        check_parameters(self)
        self.calibrator_ = calibrator_inside(self.calibrator)
        self.classes_ = self.calibrator_.classes_
        kind = distance_kind(self.distance, X is not None)
        scorer = Scorer(self.calibrator_)
        output = {k: v for k, v in (("y_proba", y_proba), ("logits", logits)) if v is not None}
        if self.reference == "oob":
            reference = out_of_bag(scorer, kind, X, output, self.random_state)
        else:
            reference, rows = split(scorer, kind, X, output, self.random_state)
            by = None if by is None else names_of(by, _n(X))[rows]
        reference.by = None if by is None else names_of(by, reference.scores.shape[1])
        self.scorer_, self.reference_ = scorer, usable(reference)
        self._n_items = n_items(self.calibrator_)
        self._origins = []
        self._start()
        return self

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
            calibrator, now = self._ensure_fitted(), snapshot(self)
        rng = np.random.default_rng([now.random_state, 1])
        scores = now._scores(calibrator, X, y_proba, logits, rng)
        each, together = now.reference_.p_values(scores, rng)
        if score == "all":
            return together
        if score not in now.scores_:
            raise ValueError(
                f"score must be 'all' or one of {now.scores_}; got {score!r}. A distance score "
                "needs SupportMonitor.fit(X, y_proba=...)."
            )
        return each[now.scores_.index(score)]

    @synchronized
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
            One row per item: ``support``, ``distance`` (higher is stranger), ``p_support``,
            ``p_distance``, ``p``, ``flag`` (p at most ``rate``), ``discovery`` (in this batch at
            the rate ``fdr``).
        """
        calibrator = self._ensure_fitted()
        names = None if by is None else names_of(by, _n(X))
        if y is not None:
            self._known_labels(y, _n(X))  # before anything is counted
        rng = np.random.default_rng([self.random_state, 2, self.n_seen_])
        scores = self._scores(calibrator, X, y_proba, logits, rng)
        each, together = self.reference_.p_values(scores, rng)
        items = self._table(scores, each, together)
        if items.empty:
            return items
        before = len(self.alarms_)
        merging.begin(self._origins)
        peak, sums = self._test(scores, items["flag"].to_numpy(), y_proba, logits, names, rng)
        if y is not None:
            self._add_labels(calibrator, X, y, y_proba, logits, names)
        self._remember(items, peak, sums, len(self.alarms_) - before)
        return items

    @synchronized
    def update_labels(
        self, X: Any, y: Any, *, y_proba: Any = None, logits: Any = None, by: Any = None
    ) -> None:
        """Compare labels with what the calibrated probabilities expected; items are not counted."""
        self._add_labels(self._ensure_fitted(), X, y, y_proba, logits, by)

    def _add_labels(
        self, calibrator: Any, X: Any, y: Any, y_proba: Any, logits: Any, by: Any
    ) -> None:
        known, codes = self._known_labels(y, _n(X))
        if not len(known):
            return
        output = {"y_proba": y_proba} if logits is None else {"logits": logits}
        output = {name: take_rows(value, known) for name, value in output.items()}
        Q = calibrator.predict_proba(take_rows(X, known), **output)
        merging.begin(self._origins)
        self.stream_.labels.add(Q, codes)
        top = top_classes(output, calibrator)
        for code, stream in self._class_streams(top):
            stream.labels.add(Q[top == code], codes[top == code])
        if by is not None:
            names = names_of(by, _n(X))[known]
            for name, stream in self._named_streams(names):
                stream.labels.add(Q[names == name], codes[names == name])

    @synchronized
    def reset(self) -> Self:
        """Start the tests anew after an alarm was dealt with; counts and history stay.

        Every reset buys another chance of a false alarm, at ``alarm_rate``.
        """
        self._ensure_fitted()
        for stream in self._streams():
            stream.reset()
        self.alarms_ = []
        return self

    @on_draft
    def extend(
        self, X: Any, y: Any, *, y_proba: Any = None, logits: Any = None, by: Any = None
    ) -> Self:
        """Add calibration items to the calibrator and to the reference, and start the tests anew.

        The similarity and the distance score are not learned anew. What is refused leaves
        calibrator and monitor as they were.
        """
        self._ensure_fitted()
        if self.reference != "oob" or not hasattr(self.calibrator_, "extend"):
            raise ValueError(
                "SupportMonitor.extend needs reference='oob' and a calibrator that can be extended "
                f"(got {self.reference!r} and {type(self.calibrator_).__name__}). Fit both anew."
            )
        calibrator, scorer = self.calibrator_, self.scorer_
        with changed(calibrator) as self.calibrator_:  # both change, or neither
            self._ensure_fitted()
            self.scorer_ = scorer.with_calibrator(self.calibrator_)
            self._extend(X, y, {"y_proba": y_proba} if logits is None else {"logits": logits}, by)
            self.calibrator_, self.scorer_ = calibrator, scorer
        return self

    def _extend(self, X: Any, y: Any, output: dict[str, Any], by: Any) -> None:
        self.reference_ = usable(
            extended(self.reference_, self.scorer_, X, y, output, by, self.random_state)
        )
        self._n_items = n_items(self.calibrator_)
        seen, flagged, history = self.stream_.n_seen, self.stream_.n_flagged, self.history_
        self._start()
        self.stream_.n_seen, self.stream_.n_flagged, self.history_ = seen, flagged, history

    @synchronized
    def shard(self, number: int, of: int) -> SupportMonitor:
        """Return an empty monitor with the same reference, for one of several processes.

        All shards together, with the look at the evidence once they are merged into this monitor,
        raise a false alarm with a probability of at most ``alarm_rate``: half of it is divided
        among the shards, half belongs to the look. Each shard draws its own random numbers, the
        same for the same number.

        Parameters
        ----------
        number : int
            Which shard, from 0.
        of : int
            How many there are.
        """
        self._ensure_fitted()
        if not 0 <= number < of:
            raise ValueError(f"number must lie from 0 to {of - 1}, of={of}; got {number!r}.")
        return new_shard(self, number, of)

    def merge(self, other: SupportMonitor) -> Self:
        """Add what another process has counted with the same reference.

        Begin the other one empty: with :meth:`shard`, or by loading a file that has counted nothing
        yet. Monitors that have a counted past in common (two copies of a used file, or one monitor
        twice) are refused, since that past would be counted twice.

        Counts add up. Evidence is combined by the *mean* of the capitals, each weighted by the
        number of processes it comes from: the shards share one reference and so are not
        independent, and a mean of expectations needs no independence. At any one merge a false
        alarm has a probability of at most ``alarm_rate``. The window takes the latest items of each
        in turn.
        """
        # In one order, whoever merges whom: two merges would wait for each other for ever.
        one, two = (self, other) if id(self) < id(other) else (other, self)
        with one.lock, two.lock:
            return self._merge(other)

    def _merge(self, other: SupportMonitor) -> Self:
        self._ensure_fitted()
        other._ensure_fitted()
        if not np.array_equal(self.reference_.scores, other.reference_.scores):
            raise ValueError(
                "SupportMonitor.merge needs monitors with the same reference; these differ. Fit "
                "one, save it, and load it in every process."
            )
        merging.check(self, other)
        self.stream_.merge(other.stream_, self.window)
        for mine, theirs in (
            (self.class_streams_, other.class_streams_),
            (self.named_streams_, other.named_streams_),
        ):
            for name, stream in theirs.items():
                if name not in mine and len(mine) < self.max_groups:
                    mine[name] = self._empty_stream()
                if name in mine:
                    mine[name].merge(stream, self.window)
        self.history_ = merging.history(self.history_, other.history_)[-self.max_history :]
        self._origins = merging.origins(self._origins, other._origins)
        alarms = sorted(self.alarms_ + other.alarms_, key=lambda alarm: alarm["time"])
        self.alarms_ = alarms[:MOST_ALARMS]
        self._raise(ALL, "evidence", "all", self.stream_.log_evidence >= self._log_bound())
        return self

    def __repr__(self) -> str:
        inside = type(getattr(self, "calibrator_", self.calibrator)).__name__
        return f"SupportMonitor({inside}, reference={self.reference!r}, rate={self.rate})"

    @synchronized
    def _ensure_fitted(self) -> Any:
        """Fit where that needs nothing, and return the calibrator in its state of now."""
        if not hasattr(self, "reference_"):
            if self.reference != "oob":
                raise ValueError(
                    "SupportMonitor(reference='split') needs items that the calibrator has not "
                    "seen. Call fit(X, y_proba=...) with them first."
                )
            self.fit()
        calibrator = snapshot(self.calibrator_)
        if n_items(calibrator) != self._n_items:
            raise ValueError(
                "The calibrator has other items than when SupportMonitor was fitted. Add items "
                "with SupportMonitor.extend, or fit the monitor anew."
            )
        return calibrator

    def _known_labels(self, y: Any, n_rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return which labels are known, and their class codes."""
        y = as_vector(y, "y")
        if len(y) != n_rows:
            raise ValueError(f"X has {n_rows} rows but y has {len(y)}. Pass one label per row.")
        known = np.flatnonzero(~pd.isna(y))
        if not len(known):
            return known, known
        return known, check_labels(y[known], self.classes_)[0]

    def _scores(
        self, calibrator: Any, X: Any, y_proba: Any, logits: Any, rng: np.random.Generator
    ) -> Vector:
        if _n(X) == 0:
            return np.zeros((len(self.scores_), 0))
        output = {k: v for k, v in (("y_proba", y_proba), ("logits", logits)) if v is not None}
        scorer = self.scorer_.with_calibrator(calibrator)
        return scorer.scores(X, output, self.reference_.n_trees, rng)

    def _table(self, scores: Vector, each: Vector, together: Vector) -> pd.DataFrame:
        items = {"support": scores[0]}
        if len(scores) > 1:
            items["distance"] = -scores[1]
        items |= {f"p_{name}": p for name, p in zip(self.scores_, each, strict=True)}
        items |= {"p": together, "flag": together <= self.rate}
        items["discovery"] = discoveries(together, self.fdr)
        return pd.DataFrame(items)


def _n(X: Any) -> int:
    return int(np.shape(X)[0])
