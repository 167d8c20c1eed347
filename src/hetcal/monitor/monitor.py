"""Support in deployment: which items and which groups the calibration set no longer covers."""

from __future__ import annotations

import copy
import json
from typing import Any, Self

import numpy as np
import pandas as pd

from hetcal._stored import restored, stored
from hetcal._stored.fields import instance, number
from hetcal._threads import changed, lock_of, on_draft, snapshot, synchronized
from hetcal._typing import Matrix, Rows, Vector
from hetcal._validation import check_labels, check_same_rows
from hetcal._validation.containers import number_of_rows
from hetcal.calibration import HybridCalibrator, SimilarityCalibrator
from hetcal.monitor.alarms import AlarmRule
from hetcal.monitor.batch import Batch
from hetcal.monitor.build_reference import extended, out_of_bag, split
from hetcal.monitor.changes import feature_changes
from hetcal.monitor.checks import (
    check_parameters,
    check_same_settings,
    classifier_output,
    distance_kind,
    known_labels,
)
from hetcal.monitor.conformal import discoveries
from hetcal.monitor.counts import Counts
from hetcal.monitor.expected import Expectation, ExpectedPerformance
from hetcal.monitor.groups import Members, class_members, named_members
from hetcal.monitor.reference import Reference
from hetcal.monitor.restored import check_restored
from hetcal.monitor.scorer import Scorer
from hetcal.monitor.start import start_streams
from hetcal.monitor.summary import as_plain, groups_table, summary
from hetcal.monitor.watched import calibrator_inside, items_of, stated_proba

_SHARD_SEED = 4  # the monitor's own draws use 0 to 3


@stored(
    {
        "calibrator_": instance((SimilarityCalibrator, HybridCalibrator), "classes_"),
        "scorer_": instance(Scorer),
        "reference_": instance(Reference),
        "counts_": instance(Counts),
        "_alarm_share": number(1e-12, 1.0),
    },
    may_lack=("_alarm_share",),
    derived={"calibrator": None, "classes_": None, "_items": None},
)
class SupportMonitor:
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
        given them, and none (with a note in :meth:`summary`) where not.
    rate : float, default=0.01
        Share of items flagged while nothing has changed. Below 1 / (n + 1) nothing is.
    fdr : float, default=0.1
        Rate of false discoveries per batch (Benjamini and Hochberg).
    alarm_rate : float, default=0.01
        Probability of a false alarm of the whole stream within ``horizon`` items, and again of any
        false alarm of a class or sub-population. Half of it belongs to the evidence, a conformal
        test martingale (proven for one score; for the mean of two the proof gives the whole), half
        to the windowed test, where it is simulated. Where labels are given, once more the
        probability that any of their tests ever alarms while the probabilities are no more wrong
        than on the calibration items.
    window : int, default=100
        Items of the windowed test.
    horizon : int, default=10000
        Items for which the windowed test keeps its rate; the evidence keeps it for ever.
    dependence : int, default=1
        Of so many items in a row the tests without labels see one; flags and counts see all. The
        tests assume that the items they see are exchangeable while nothing changes: 1 where items
        come in no particular order; where neighbours in time are alike, what
        :func:`hetcal.monitor.suggest_dependence` measures. A change is found so many times later.
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
        ``test`` (``"evidence"``, ``"window"`` or ``"labels"``), ``score``; from labels also
        ``labels`` (tested by then), ``since`` (the label at which it most likely began) and
        ``log10_evidence``.
    alarms_ : list of dict
        All of them by time, at most one per group and test.
    n_seen_ : int
        Items since the beginning.
    scores_ : list of str
        The names of the scores that are watched.
    calibrator_ : SimilarityCalibrator or HybridCalibrator
        The one that is watched.
    scorer_ : Scorer
        Scores new items like the reference.
    reference_ : Reference
        The scores of the reference items.
    counts_ : Counts
        Everything counted so far; replaced as a whole by every update.

    Notes
    -----
    Threads may share a monitor: calls wait for those that count, fit or extend. :meth:`p_values`
    waits only to begin, and then runs beside all others. A call that raises changes nothing.
    ``with monitor.lock:`` makes several calls one step.

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
        dependence: int = 1,
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
        self.dependence = dependence
        self.max_groups = max_groups
        self.max_history = max_history
        self.random_state = random_state

    #: The part of the alarm rate that this monitor may use; a shard has less than all of it.
    _alarm_share: float = 1.0

    @on_draft
    def fit(
        self, X: Any = None, *, y_proba: Any = None, logits: Any = None, by: Any = None
    ) -> Self:
        """Compute the reference.

        Parameters
        ----------
        X : array-like or table of shape (n, d), optional
            With ``reference="oob"`` the calibration items, in the order of the calibrator's fit;
            without them there is no distance score. With ``"split"`` items that the calibrator has
            not seen, at least 20; a third of them (at most 1000) trains the distance score.
        y_proba, logits : array-like of shape (n, K), optional
            The classifier's output on them.
        by : array-like of shape (n,), optional
            The sub-population of each, so that each name is compared with its own items.
        """
        check_parameters(self)
        self.calibrator_ = calibrator_inside(self.calibrator)
        self.classes_ = self.calibrator_.classes_
        kind = distance_kind(self.distance, X is not None)
        build = out_of_bag if self.reference == "oob" else split
        output = classifier_output(y_proba, logits)
        self.scorer_, reference, stated = build(
            self.calibrator_, kind, X, output, by, self.random_state
        )
        self.reference_ = reference.usable()
        self._items = items_of(self.calibrator_)
        self.counts_ = Counts.start(start_streams(self, self.calibrator_, stated))
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

    @on_draft
    def extend(
        self,
        X: Any,
        y: Any,
        *,
        y_proba: Any = None,
        logits: Any = None,
        by: Any = None,
        times: Any = None,
        half_life: Any = None,
        window: Any = None,
    ) -> Self:
        """Add calibration items to the calibrator and to the reference, and start the tests anew.

        The similarity and the distance score are not learned anew. What is refused leaves
        calibrator and monitor as they were. ``times``, ``half_life`` and ``window`` forget old
        items as in :meth:`hetcal.SimilarityCalibrator.extend`.
        """
        self._watched()
        if self.reference != "oob" or not hasattr(self.calibrator_, "extend"):
            raise ValueError(
                "SupportMonitor.extend needs reference='oob' and a calibrator that can be extended "
                f"(got {self.reference!r} and {type(self.calibrator_).__name__}). Fit both anew."
            )
        with changed(self.calibrator_) as calibrator:  # both change, or neither
            self._check_items(calibrator)
            batch = Batch.check(calibrator, X, classifier_output(y_proba, logits), by)
            codes, _ = check_labels(y, self.classes_)
            check_same_rows(X=X, y=codes)
            aged = calibrator.aged_by(codes, None, times, half_life=half_life, window=window)
            self.reference_ = extended(
                self.reference_, self.scorer_, calibrator, batch, codes, aged, self.random_state
            ).usable()
            self._items = items_of(calibrator)
            streams = start_streams(self, calibrator, stated_proba(calibrator))
            self.counts_ = self.counts_.restarted(streams)
        return self

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
        self._watched()
        if not 0 <= number < of:
            raise ValueError(f"number must lie from 0 to {of - 1}, of={of}; got {number!r}.")
        shard = copy.copy(self)
        seeds = np.random.SeedSequence([self.random_state, _SHARD_SEED, number])
        shard.random_state = int(seeds.generate_state(1)[0])
        # Half of the rate for the look at the merged evidence, half for all shards together.
        shard._alarm_share = self._alarm_share / (2 * of)
        shard.counts_ = self.counts_.emptied()
        return shard

    def merge(self, other: SupportMonitor) -> Self:
        """Add what another process has counted with the same reference.

        Begin the other one empty: with :meth:`shard`, or by loading a file that has counted nothing
        yet. Monitors that have a counted past in common (two copies of a used file, or one monitor
        twice) are refused, since that past would be counted twice.

        Counts add up. Evidence is combined by the *mean* of the martingales, each weighted by the
        number of processes it comes from: the shards share one reference and so are not
        independent, and a mean of expectations needs no independence. At any one merge a false
        alarm has a probability of at most ``alarm_rate``. The window takes the latest items of each
        in turn.
        """
        # In one order, whoever merges whom: two merges would wait for each other for ever.
        one, two = (self, other) if id(self) < id(other) else (other, self)
        with one.lock, two.lock:
            self._watched()
            other._watched()
            self._check_mergeable(other)
            with changed(self) as draft:
                draft.counts_ = self.counts_.merged(
                    other.counts_, self._alarm_rule(), self.max_history
                )
        return self

    def _check_mergeable(self, other: SupportMonitor) -> None:
        if not np.array_equal(self.reference_.scores, other.reference_.scores):
            raise ValueError(
                "SupportMonitor.merge needs monitors with the same reference; these differ. Fit "
                "one, save it, and load it in every process."
            )
        check_same_settings(self, other)
        mine, theirs = (m.counts_.streams.all.label_evidence.low for m in (self, other))
        if not np.array_equal(mine, theirs):
            raise ValueError(
                "SupportMonitor.merge needs monitors that test labels alike; one of these comes "
                "from a file of old, or was fitted without y_proba. Fit one, save it, and load it "
                "in every process."
            )
        if self is other or self.counts_.origins.overlap(other.counts_.origins):
            raise ValueError(
                "SupportMonitor.merge got two monitors that have counted the same items, which "
                "would count twice. Begin each process with an empty monitor.shard(number, of), "
                "and merge each of them once."
            )

    @synchronized
    def frame(self) -> pd.DataFrame:
        """Return the history, one row per update.

        Columns: ``when`` (UTC), ``seen`` (items so far), ``items``, ``flagged``, ``discoveries``,
        ``median_support``, ``log10_evidence`` after the batch and its peak within, ``window`` (the
        largest windowed statistic as a share of its bound), ``alarms`` (new ones), ``labels`` so
        far, ``accuracy_z`` and ``brier_z`` (observed minus expected, beyond what is usual for the
        calibrator, in standard deviations), ``log10_label_evidence``; and, of the labels that came
        since the row before, ``accuracy``, ``brier``, ``expected_accuracy`` and
        ``expected_brier``: by the calibrated probabilities and what is usual for the calibrator.
        """
        self._watched()
        return self.counts_.history.frame()

    @synchronized
    def groups(self) -> pd.DataFrame:
        """Return one row for all items, each class and each sub-population.

        Columns: ``kind`` (all, class, by), ``name``, ``reference`` (items), ``seen``, ``flagged``,
        ``log10_evidence``, ``labels``, ``accuracy_z``, ``brier_z``, ``log10_label_evidence``,
        ``alarm``.
        """
        self._watched()
        return groups_table(self.counts_)

    @synchronized
    def summary(self) -> dict[str, Any]:
        """Return everything that was counted, as numbers and text that JSON can hold."""
        self._watched()
        return summary(
            self.counts_,
            self._alarm_rule(),
            rate=self.rate,
            alarm_rate=self.alarm_rate,
            reference={"kind": self.reference, "items": int(self.reference_.scores.shape[1])},
        )

    def to_json(self) -> str:
        """Return :meth:`summary` as JSON."""
        return json.dumps(self.summary(), indent=2, default=as_plain)

    @property
    def alarm_(self) -> dict[str, Any] | None:
        """The first alarm since the last reset."""
        return self.counts_.alarms.first if hasattr(self, "counts_") else None

    @property
    def alarms_(self) -> list[dict[str, Any]]:
        """The alarms since the last reset."""
        return self.counts_.alarms.raised

    @property
    def n_seen_(self) -> int:
        """Items since the beginning."""
        return self.counts_.streams.all.n_seen

    @property
    def scores_(self) -> list[str]:
        """The names of the scores that are watched."""
        return self.scorer_.names

    @property
    def lock(self) -> Any:
        """The lock: ``with monitor.lock:`` makes several calls one step."""
        return lock_of(self)

    def __getstate__(self) -> dict[str, Any]:
        with self.lock:  # calibrator and reference of the same moment
            return dict(vars(self))

    def __repr__(self) -> str:
        inside = type(getattr(self, "calibrator_", self.calibrator)).__name__
        return f"SupportMonitor({inside}, reference={self.reference!r}, rate={self.rate})"

    def _to_stored(self, state: dict[str, Any]) -> dict[str, Any]:
        scorer, counts = state.pop("scorer_"), state.pop("counts_")
        state.pop("_alarm_share", None)
        return (
            state
            | {"calibrator_": snapshot(self.calibrator_), "alarm_share": self._alarm_share}
            | {"encoder": scorer.encoder, "score": scorer.distance}
            | counts.to_stored()
        )

    @classmethod
    def _from_stored(cls, state: dict[str, Any]) -> dict[str, Any]:
        scorer = {"encoder": state.pop("encoder"), "distance": state.pop("score")}
        if "alarm_share" in state:  # not in files of old
            state["_alarm_share"] = state.pop("alarm_share")
        counts = Counts.from_stored(state)
        return state | {"scorer_": restored(Scorer, **scorer), "counts_": counts}

    def _restore(self) -> None:
        self.calibrator, self.classes_ = self.calibrator_, self.calibrator_.classes_
        self._items = items_of(self.calibrator_)

    def _check_restored(self) -> None:
        check_restored(self)

    def _watched(self) -> Any:
        """Return the calibrator in its state of now; first fit the monitor, if that needs no X."""
        with self.lock:
            if not hasattr(self, "counts_"):
                if self.reference != "oob":
                    raise ValueError(
                        "SupportMonitor(reference='split') needs items that the calibrator has not "
                        "seen. Call fit(X, y_proba=...) with them first."
                    )
                self.fit()
            calibrator = snapshot(self.calibrator_)
            self._check_items(calibrator)
            return calibrator

    def _check_items(self, calibrator: Any) -> None:
        if items_of(calibrator) is not self._items:
            raise ValueError(
                "The calibrator has other items than when SupportMonitor was fitted. Add items "
                "with SupportMonitor.extend, or fit the monitor anew."
            )

    def _alarm_rule(self) -> AlarmRule:
        rate = self.alarm_rate * self._alarm_share
        tests = self.window, self.horizon, self.max_groups, self.scores_
        return AlarmRule(rate, *tests, self.classes_.tolist(), self.dependence)

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
