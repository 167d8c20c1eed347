"""Support in deployment: which items and which groups the calibration set no longer covers."""

from __future__ import annotations

from typing import Any

from hetcal._stored import restored, stored
from hetcal._stored.fields import instance, number
from hetcal._threads import snapshot
from hetcal.calibration import HybridCalibrator, SimilarityCalibrator
from hetcal.monitor.asking import AskedMonitor
from hetcal.monitor.counting import CountingMonitor
from hetcal.monitor.counts import Counts
from hetcal.monitor.merging import MergingMonitor
from hetcal.monitor.reference import Reference
from hetcal.monitor.restored import check_restored
from hetcal.monitor.scorer import Scorer
from hetcal.monitor.telling import TellingMonitor
from hetcal.monitor.watched import items_of


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
class SupportMonitor(AskedMonitor, CountingMonitor, MergingMonitor, TellingMonitor):
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
