"""How a monitor is stored: its calibrator, its reference, and everything that it has counted."""

from __future__ import annotations

import copy
import hashlib
from typing import Any

import numpy as np

from hetcal._threads import snapshot
from hetcal._validation import FeatureEncoder
from hetcal.calibration import HybridCalibrator, SimilarityCalibrator
from hetcal.io.spec import Spec, expect, in_range, is_array, is_number, is_whole, plain
from hetcal.kernels.forest import Forest
from hetcal.monitor import SupportMonitor
from hetcal.monitor.checks import check_parameters, n_items
from hetcal.monitor.distance import IsolationScore, NearestScore
from hetcal.monitor.evidence import BETS
from hetcal.monitor.labels import LabelSums
from hetcal.monitor.merging import MOST_ORIGINS
from hetcal.monitor.ranks import N_BINS
from hetcal.monitor.reference import LEAST_ITEMS, Reference, Scorer
from hetcal.monitor.reports import HISTORY
from hetcal.monitor.stream import Stream

_SETTINGS = (
    "reference",
    "distance",
    "rate",
    "fdr",
    "alarm_rate",
    "window",
    "horizon",
    "max_groups",
    "max_history",
    "random_state",
)
_COUNTED = (
    "reference_",
    "stream_",
    "class_streams_",
    "named_streams_",
    "alarms_",
    "history_",
)
_PARTS = {*_SETTINGS, *_COUNTED, "calibrator_", "encoder", "score"}
# Not in files of old.
_LATER = {"alarm_share", "origins"}
_MOST = 1 << 60
_ALARM = {"time", "who", "test", "score"}


def _pack(monitor: SupportMonitor) -> dict[str, Any]:
    with monitor.lock:  # another thread may go on counting while the file is written
        state = {name: getattr(monitor, name) for name in (*_SETTINGS, *_COUNTED)}
        state |= {"alarm_share": monitor._alarm_share, "origins": monitor._origins}
        state = copy.deepcopy(state)
        calibrator, scorer = snapshot(monitor.calibrator_), monitor.scorer_
    return state | {
        "calibrator_": calibrator,
        "encoder": scorer.encoder,
        "score": scorer.distance,
    }


def _unpack(state: dict[str, Any]) -> SupportMonitor:
    expect(set(state) - _LATER == _PARTS, SupportMonitor, "has other parts")
    calibrator = state["calibrator_"]
    known = isinstance(calibrator, SimilarityCalibrator | HybridCalibrator)
    expect(known and hasattr(calibrator, "classes_"), SupportMonitor, "has no calibrator")
    monitor = SupportMonitor(calibrator, **{name: state[name] for name in _SETTINGS})
    check_parameters(monitor)
    monitor.calibrator_, monitor.classes_ = calibrator, calibrator.classes_
    monitor._n_items = n_items(calibrator)
    monitor.scorer_ = Scorer(calibrator, state["encoder"], state["score"])
    for name in _COUNTED:
        setattr(monitor, name, state[name])
    monitor._alarm_share = state.get("alarm_share", 1.0)
    _check_score(monitor)
    _check_reference(monitor)
    _check_streams(monitor)
    _check_history(monitor)
    monitor._origins = state["origins"] if "origins" in state else _likely_origins(monitor)
    _check_share_and_origins(monitor)
    return monitor


def _likely_origins(monitor: SupportMonitor) -> list[str]:
    """Name what an old file has counted by its first update, which its copies have as well."""
    if not monitor.n_seen_:
        return []
    first = monitor.history_[:1].tobytes()
    return [hashlib.sha256(first).hexdigest()[:16]]


def _check_share_and_origins(monitor: SupportMonitor) -> None:
    share, origins = monitor._alarm_share, monitor._origins
    expect(is_number(share, 1e-12, 1.0), monitor, "has an odd share of the alarm rate")
    good = isinstance(origins, list) and len(origins) <= MOST_ORIGINS
    good = good and all(isinstance(name, str) and len(name) <= 64 for name in origins)
    expect(good, monitor, "has odd origins")


def _check_score(monitor: SupportMonitor) -> None:
    encoder: Any = monitor.scorer_.encoder
    score: Any = monitor.scorer_.distance
    if score is None:
        return
    expect(isinstance(encoder, FeatureEncoder), monitor, "has no encoder")
    expect(isinstance(score, IsolationScore | NearestScore), monitor, "has an unknown score")
    width = (
        score.forest.n_features if isinstance(score, IsolationScore) else score.landmarks.shape[1]
    )
    expect(len(encoder.feature_names_out_) == width, monitor, "scores other columns")


def _check_reference(monitor: SupportMonitor) -> None:
    reference, K = monitor.reference_, len(monitor.classes_)
    expect(isinstance(reference, Reference), monitor, "has no reference")
    n = reference.scores.shape[1]
    n_scores = len(monitor.scores_)
    expect(len(reference.scores) == n_scores and n >= LEAST_ITEMS, monitor, "has no reference")
    expect(len(reference.n_trees) == n_scores, monitor, "counts other trees")
    if reference.top is not None:
        good = is_array(reference.top, "i", (n,)) and in_range(reference.top, 0, K)
        expect(good, monitor, "has a reference of other classes")


def _check_streams(monitor: SupportMonitor) -> None:
    named = (monitor.class_streams_, monitor.named_streams_)
    for streams in named:
        good = isinstance(streams, dict) and len(streams) <= monitor.max_groups
        expect(good and all(isinstance(name, str) for name in streams), monitor, "has odd groups")
    labels = {str(label) for label in monitor.classes_.tolist()}
    expect(set(monitor.class_streams_) <= labels, monitor, "has groups of other classes")
    shape = (len(monitor.scores_), N_BINS)
    for stream in (monitor.stream_, *named[0].values(), *named[1].values()):
        expect(isinstance(stream, Stream), monitor, "has no counts")
        expect(stream.base.shape == shape, monitor, "has counts of other scores")
        expect(len(stream.labels.excess) == 2 + len(monitor.classes_), monitor, "has odd labels")
        short = all(len(tail) <= monitor.window for tail in stream.tails)
        expect(short, monitor, "has a window of another width")


def _check_history(monitor: SupportMonitor) -> None:
    history, alarms = monitor.history_, monitor.alarms_
    good = is_array(history, "f", (None, len(HISTORY))) and len(history) <= monitor.max_history
    expect(good, monitor, "has an odd history")
    whole = history[:, [1, 2, 3, 4, 9, 10]]
    expect(((whole >= 0) & (whole < _MOST)).all(), monitor, "has an odd history")
    expect((np.abs(history[:, 0]) < 1e11).all(), monitor, "has an odd history")
    expect(isinstance(alarms, list) and len(alarms) <= 1000, monitor, "has odd alarms")
    for alarm in alarms:
        expect(isinstance(alarm, dict) and set(alarm) == _ALARM, monitor, "has odd alarms")
        words = all(isinstance(alarm[name], str) for name in ("who", "test", "score"))
        expect(words and is_whole(alarm["time"], 0, _MOST), monitor, "has odd alarms")


def _check_items(reference: Reference) -> None:
    scores = reference.scores
    finite = is_array(scores, "f", (None, None)) and np.isfinite(scores).all()
    expect(finite and len(scores) in (1, 2), reference, "has no scores")
    expect((scores[0] >= 0).all(), reference, "has negative support")
    n = scores.shape[1]
    expect(isinstance(reference.n_trees, list), reference, "counts no trees")
    for counted in reference.n_trees:
        good = counted is None or (is_array(counted, "i", (n,)) and in_range(counted, 1, 1 << 31))
        expect(good, reference, "counts odd trees")
    rows = reference.rows
    good = rows is None or (is_array(rows, "i", (n,)) and in_range(rows, 0, 1 << 48))
    expect(good, reference, "has odd rows")
    by: Any = reference.by
    named = by is None or (is_array(by, "O", (n,)) and all(isinstance(name, str) for name in by))
    expect(named, reference, "has odd names")


def _check_stream(stream: Stream) -> None:
    n_scores = len(stream.base)
    for counts in (stream.base, stream.past):
        good = is_array(counts, "i", (n_scores, N_BINS)) and counts.dtype == np.int64
        expect(good and in_range(counts, 0, 1 << 48), stream, "has odd counts")
    sized = is_array(stream.capital, "f", (n_scores, 1 + len(BETS)))
    expect(sized and np.isfinite(stream.capital).all(), stream, "has no capital")
    tails = stream.tails
    expect(isinstance(tails, list) and len(tails) == n_scores, stream, "has no windows")
    for tail in tails:
        finite = is_array(tail, "f", (None,)) and np.isfinite(tail).all() and (tail >= 0).all()
        expect(finite, stream, "has an odd window")
    for name in ("n_seen", "n_flagged", "n_tested"):
        expect(is_whole(getattr(stream, name), 0, _MOST), stream, f"has an odd {name}")
    expect(is_whole(stream.n_shards, 1, _MOST), stream, "has odd shards")
    for labels in (stream.labels, stream.usual):
        expect(isinstance(labels, LabelSums), stream, "has no labels")
    expect(len(stream.labels.excess) == len(stream.usual.excess), stream, "has odd labels")


def _check_labels(labels: LabelSums) -> None:
    n = len(labels.excess)
    expect(is_whole(labels.n, 0, _MOST) and n >= 3, labels, "are not counted")
    for values in (labels.excess, labels.variance):
        expect(is_array(values, "f", (n,)) and np.isfinite(values).all(), labels, "are odd")


def _check_isolation(score: IsolationScore) -> None:
    expect(isinstance(score.forest, Forest), score, "has no forest")
    path = score.path
    good = is_array(path, "f", (score.forest.n_leaves,)) and np.isfinite(path).all()
    expect(good, score, "has odd paths")
    expect(is_number(score.typical, 1e-9), score, "has no typical path")


def _check_nearest(score: NearestScore) -> None:
    landmarks = score.landmarks
    good = is_array(landmarks, "f", (None, None)) and np.isfinite(landmarks).all()
    expect(good and 0 < len(landmarks) <= 1000, score, "remembers no items")
    for values in (score.center, score.spread):
        good = is_array(values, "f", (landmarks.shape[1],)) and np.isfinite(values).all()
        expect(good, score, "has no scale")
    expect((score.spread > 0).all(), score, "has no scale")


SPECS = [
    Spec(SupportMonitor, _pack, _unpack),
    plain(Reference, check=_check_items),
    plain(Stream, check=_check_stream),
    plain(LabelSums, check=_check_labels),
    plain(IsolationScore, names=("forest", "path", "typical"), check=_check_isolation),
    plain(
        NearestScore,
        names=("center", "spread", "landmarks"),
        derived={"chosen": None},
        check=_check_nearest,
    ),
]
