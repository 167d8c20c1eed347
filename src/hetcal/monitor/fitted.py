"""What a monitor is fitted to: a calibrator, the reference items, and the streams to begin with."""

from __future__ import annotations

from typing import Any, Self

from numpy.typing import NDArray

from hetcal._threads import changed, lock_of, on_draft, snapshot
from hetcal._validation import check_labels, check_same_rows
from hetcal.monitor.alarms import AlarmRule
from hetcal.monitor.batch import Batch
from hetcal.monitor.build_reference import extended, out_of_bag, split
from hetcal.monitor.checks import check_parameters, classifier_output, distance_kind
from hetcal.monitor.counts import Counts
from hetcal.monitor.reference import Reference
from hetcal.monitor.scorer import Scorer
from hetcal.monitor.start import start_streams
from hetcal.monitor.watched import calibrator_inside, items_of, stated_proba


class FittedMonitor:
    """The parameters and the state of a monitor; see :class:`hetcal.SupportMonitor`."""

    calibrator: Any
    reference: str
    distance: str | None
    rate: float
    fdr: float
    alarm_rate: float
    window: int
    horizon: int
    dependence: int
    max_groups: int
    max_history: int
    random_state: int

    calibrator_: Any
    classes_: NDArray
    scorer_: Scorer
    reference_: Reference
    counts_: Counts
    _items: Any
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
