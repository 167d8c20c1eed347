"""How a monitor is stored: its calibrator, its reference, and everything that it has counted."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pandas as pd

from hetcal._stored import expect
from hetcal._stored.declaration import exactly
from hetcal._stored.fields import (
    LARGEST,
    MOST_CLASSES,
    in_range,
    instance,
    integers,
    is_array,
    is_number,
    is_whole,
    list_of,
    number,
    numbers,
    optional,
    text,
    whole,
)
from hetcal._threads import snapshot
from hetcal._validation import FeatureEncoder
from hetcal.calibration import HybridCalibrator, SimilarityCalibrator
from hetcal.kernels.forest import Forest
from hetcal.monitor import SupportMonitor
from hetcal.monitor.alarms import MOST_ALARMS, Alarms
from hetcal.monitor.bins import N_BINS
from hetcal.monitor.checks import check_parameters
from hetcal.monitor.counts import Counts
from hetcal.monitor.distance import IsolationScore, NearestScore
from hetcal.monitor.groups import ALL, Group
from hetcal.monitor.history import COLUMNS, COUNTS, History
from hetcal.monitor.labels import LabelSums
from hetcal.monitor.martingale import BETTING_FUNCTIONS, Martingale
from hetcal.monitor.origins import MOST_ORIGINS, Origins
from hetcal.monitor.reference import LEAST_ITEMS, Reference
from hetcal.monitor.scorer import Scorer
from hetcal.monitor.stream import Stream
from hetcal.monitor.streams import Streams
from hetcal.monitor.watched import n_items
from hetcal.monitor.window import FisherWindow
from hetcal.persistence.spec import Spec, plain

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
_COUNTS = [COLUMNS.index(name) for name in COUNTS]
# What the history's times, in seconds, may be: pandas counts nanoseconds in 64 bits.
_LATEST = pd.Timestamp.max.timestamp() - 1
# Whole numbers above have no exact form as a floating-point number.
_MOST_COUNTED = 1 << 53


def _pack(monitor: SupportMonitor) -> dict[str, Any]:
    with monitor.lock:  # all parts of one moment; none of them changes later
        state = {name: getattr(monitor, name) for name in (*_SETTINGS, "reference_")}
        counts, scorer, share = monitor.counts_, monitor.scorer_, monitor._alarm_share
        calibrator = snapshot(monitor.calibrator_)
    return state | {
        "calibrator_": calibrator,
        "encoder": scorer.encoder,
        "score": scorer.distance,
        "stream_": counts.streams.all,
        "class_streams_": counts.streams.of_kind("class"),
        "named_streams_": counts.streams.of_kind("by"),
        "alarms_": counts.alarms.raised,
        "history_": counts.history.rows,
        "alarm_share": share,
        "origins": counts.origins.names,
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
    monitor.scorer_ = Scorer(state["encoder"], state["score"])
    monitor.reference_ = state["reference_"]
    monitor._alarm_share = state.get("alarm_share", 1.0)
    _check_score(monitor)
    _check_reference(monitor)
    streams = _streams(state, monitor)
    _check_history(monitor, state["history_"], state["alarms_"])
    origins = state["origins"] if "origins" in state else _likely_origins(state)
    _check_share_and_origins(monitor, origins)
    alarms, history = Alarms(state["alarms_"]), History(state["history_"])
    monitor.counts_ = Counts(streams, alarms, history, Origins(origins))
    return monitor


def _likely_origins(state: dict[str, Any]) -> list[str]:
    """Name what an old file has counted by its first update, which its copies have as well."""
    if not state["stream_"].n_seen:
        return []
    first = state["history_"][:1].tobytes()
    return [hashlib.sha256(first).hexdigest()[:16]]


def _check_share_and_origins(monitor: SupportMonitor, origins: Any) -> None:
    share = monitor._alarm_share
    expect(is_number(share, 1e-12, 1.0), monitor, "has an odd share of the alarm rate")
    good = isinstance(origins, list) and len(origins) <= MOST_ORIGINS
    good = good and all(isinstance(name, str) and len(name) <= 64 for name in origins)
    expect(good, monitor, "has odd origins")


def _check_score(monitor: SupportMonitor) -> None:
    encoder: Any = monitor.scorer_.encoder
    score: Any = monitor.scorer_.distance
    expect(encoder is None or isinstance(encoder, FeatureEncoder), monitor, "has no encoder")
    if score is None:
        return
    expect(encoder is not None, monitor, "has no encoder")
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
    top = reference.top
    expect(top is None or in_range(top, 0, K), monitor, "has a reference of other classes")


def _streams(state: dict[str, Any], monitor: SupportMonitor) -> Streams:
    """Return the streams of all groups."""
    kinds = {"class": state["class_streams_"], "by": state["named_streams_"]}
    by_group: dict[Group, Any] = {ALL: state["stream_"]}
    for kind, streams in kinds.items():
        good = isinstance(streams, dict) and len(streams) <= monitor.max_groups
        expect(good and all(isinstance(name, str) for name in streams), monitor, "has odd groups")
        by_group |= {(kind, name): stream for name, stream in streams.items()}
    labels = {str(label) for label in monitor.classes_.tolist()}
    expect(set(kinds["class"]) <= labels, monitor, "has groups of other classes")
    shape = (len(monitor.scores_), N_BINS)
    for stream in by_group.values():
        expect(isinstance(stream, Stream), monitor, "has no counts")
        expect(stream.base.shape == shape, monitor, "has counts of other scores")
        expect(len(stream.labels.excess) == 2 + len(monitor.classes_), monitor, "has odd labels")
        short = all(len(tail) <= monitor.window for tail in stream.window.tails)
        expect(short, monitor, "has a window of another width")
    return Streams(by_group)


def _check_history(monitor: SupportMonitor, history: Any, alarms: Any) -> None:
    good = is_array(history, "f", (None, len(COLUMNS))) and len(history) <= monitor.max_history
    expect(good and history.dtype == np.float64, monitor, "has an odd history")
    counts, when = history[:, _COUNTS], history[:, COLUMNS.index("when")]
    whole_ones = (counts >= 0) & (counts < _MOST_COUNTED) & (counts == np.floor(counts))
    expect(whole_ones.all(), monitor, "has an odd history")
    expect((np.abs(when) < _LATEST).all(), monitor, "has times in its history that no clock shows")
    expect(not np.isinf(history).any(), monitor, "has an odd history")
    expect(isinstance(alarms, list) and len(alarms) <= MOST_ALARMS, monitor, "has odd alarms")
    for alarm in alarms:
        expect(isinstance(alarm, dict) and set(alarm) == _ALARM, monitor, "has odd alarms")
        words = all(isinstance(alarm[name], str) for name in ("who", "test", "score"))
        expect(words and is_whole(alarm["time"], 0, _MOST), monitor, "has odd alarms")


def _check_items(reference: Reference) -> None:
    scores, by = reference.scores, reference.by
    expect(len(scores) in (1, 2) and (scores[0] >= 0).all(), reference, "has no scores")
    n = scores.shape[1]
    per_item = [*reference.n_trees, reference.top, by, reference.rows]
    same = all(values is None or len(values) == n for values in per_item)
    expect(same, reference, "knows other items")


#: Parts of a stream in a file that belong to its martingale or its window.
_OF_TESTS = ("capital", "n_tested", "n_shards", "tails")


def _pack_stream(stream: Stream) -> dict[str, Any]:
    parts = {
        "capital": stream.martingale.capital,
        "n_tested": stream.martingale.n_items,
        "n_shards": stream.martingale.n_processes,
        "tails": stream.window.tails,
    }
    return {name: parts[name] if name in parts else getattr(stream, name) for name in _STREAM}


def _unpack_stream(state: dict[str, Any]) -> Stream:
    exactly(state, _STREAM, Stream)
    for name, part in state.items():
        expect(_STREAM[name](part), Stream, f"has a wrong {name}")
    stream = Stream(
        martingale=Martingale(state["capital"], state["n_tested"], state["n_shards"]),
        window=FisherWindow(state["tails"]),
        **{name: part for name, part in state.items() if name not in _OF_TESTS},
    )
    _check_stream(stream)
    return stream


def _check_stream(stream: Stream) -> None:
    n_scores = len(stream.base)
    expect(len(stream.past) == n_scores, stream, "has odd counts")
    expect(len(stream.martingale.capital) == n_scores, stream, "has no capital")
    expect(len(stream.window.tails) == n_scores, stream, "has no windows")
    known = max(stream.n_flagged, stream.martingale.n_items) <= stream.n_seen
    expect(known, stream, "has counted more items than it has seen")
    expect(len(stream.labels.excess) == len(stream.usual.excess), stream, "has odd labels")
    expect(stream.base is not stream.past, stream, "keeps two counts in one place")


def _check_labels(labels: LabelSums) -> None:
    n = len(labels.excess)
    expect(n >= 3 and len(labels.variance) == n, labels, "are not counted")


def _check_isolation(score: IsolationScore) -> None:
    expect(len(score.path) == score.forest.n_leaves, score, "has odd paths")


def _check_nearest(score: NearestScore) -> None:
    n, d = score.landmarks.shape
    expect(0 < n <= 1000, score, "remembers no items")
    expect(len(score.center) == len(score.spread) == d, score, "has no scale")


def _names(value: Any) -> bool:
    return is_array(value, "O", (None,)) and all(map(text, value))


_COUNTED_BY_BIN = integers(None, N_BINS, low=0, high=1 << 48)
_COUNT = whole(0, _MOST)

_STREAM = {
    "base": _COUNTED_BY_BIN,
    "past": _COUNTED_BY_BIN,
    # Logarithms: an item adds some dozens at most.
    "capital": numbers(None, 1 + len(BETTING_FUNCTIONS), low=-1e18, high=1e18),
    "tails": list_of(numbers(None, low=0.0, high=1e3)),
    "labels": instance(LabelSums),
    "usual": instance(LabelSums),
    "n_seen": _COUNT,
    "n_flagged": _COUNT,
    "n_tested": _COUNT,
    "n_shards": whole(1, _MOST),
}

SPECS = [
    Spec(SupportMonitor, _pack, _unpack),
    plain(
        Reference,
        {
            "scores": numbers(None, None),
            "n_trees": list_of(optional(integers(None, low=1, high=1 << 31))),
            "top": optional(integers(None, low=0, high=MOST_CLASSES)),
            "by": optional(_names),
            "rows": optional(integers(None, low=0, high=1 << 48)),
        },
        check=_check_items,
    ),
    Spec(Stream, _pack_stream, _unpack_stream),
    plain(
        LabelSums,
        {"n": _COUNT, "excess": numbers(None), "variance": numbers(None)},
        check=_check_labels,
    ),
    plain(
        IsolationScore,
        {
            "forest": instance(Forest),
            "path": numbers(None, low=0.0),
            "typical": number(1e-9, LARGEST),
        },
        check=_check_isolation,
    ),
    plain(
        NearestScore,
        {
            "center": numbers(None),
            "spread": numbers(None, low=1 / LARGEST),
            "landmarks": numbers(None, None),
        },
        derived={"chosen": None},
        check=_check_nearest,
    ),
]
