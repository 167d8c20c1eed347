"""The streams of a monitor, and when they alarm."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._validation import check_labels
from hetcal.monitor import evidence, window
from hetcal.monitor.checks import top_classes
from hetcal.monitor.labels import LabelSums
from hetcal.monitor.reports import ALL, HISTORY, MonitorReports
from hetcal.monitor.stream import Stream

Vector = NDArray[np.float64]

MOST_ALARMS = 1000


class MonitorTests(MonitorReports):
    """The part of a monitor that tests: all items, each class, each sub-population."""

    window: int
    horizon: int
    max_groups: int
    calibrator_: Any

    def _start(self) -> None:
        reference, K = self.reference_, len(self.classes_)
        bins = self.scorer_.bins(reference.scores)
        self.stream_ = Stream.on(bins, self._usual_labels())
        self.class_streams_, self.named_streams_ = {}, {}
        if reference.top is not None and self.max_groups >= K:
            for code, label in enumerate(self.classes_.tolist()):
                own = reference.top == code
                self.class_streams_[str(label)] = Stream.on(bins[:, own], self._usual_labels(own))
        if reference.by is not None:
            for name in _most_frequent(reference.by, self.max_groups):
                own = reference.by == name
                self.named_streams_[name] = Stream.on(bins[:, own], self._usual_labels(own))
        self.alarms_ = []
        self.history_ = np.zeros((0, len(HISTORY)))

    def _usual_labels(self, own: NDArray[np.bool_] | None = None) -> LabelSums:
        """Return what out-of-sample predictions of the calibration items (some of them) leave."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Q = self.calibrator_.out_of_sample_proba_
        codes, _ = check_labels(self.calibrator_.calibration_labels(), self.classes_)
        if own is not None and self.reference == "oob" and own.any():
            rows = self.reference_.rows
            chosen = np.flatnonzero(own) if rows is None else rows[own]
            Q, codes = Q[chosen], codes[chosen]
        usual = LabelSums.empty(len(self.classes_))
        usual.add(Q, codes)
        return usual

    def _empty_stream(self) -> Stream:
        return Stream.on(np.zeros((len(self.scores_), 0), dtype=np.int64), self.stream_.usual)

    def _streams(self) -> list[Stream]:
        return [self.stream_, *self.class_streams_.values(), *self.named_streams_.values()]

    def _test(
        self, scores: Vector, flags: Any, y_proba: Any, logits: Any, names: Any, rng: Any
    ) -> tuple[float, float]:
        """Let every stream see its items; return the peak of log evidence and of the window."""
        bins, uniform = self.scorer_.bins(scores), rng.random(scores.shape)
        time_before = self.n_seen_
        logs, sums = self.stream_.test(bins, uniform, self.window)
        self.stream_.n_flagged += int(flags.sum())
        total = evidence.log_mean(logs) if logs.size else np.zeros(0)
        self._raise_first(ALL, "evidence", logs, total >= self._log_bound(), time_before)
        limit = self._window_bound()
        over = np.asarray((sums >= limit).any(axis=0))
        self._raise_first(ALL, "window", sums, over, time_before)
        output = {"y_proba": y_proba} if logits is None else {"logits": logits}
        top = top_classes(output, self.calibrator_)
        every = [
            (f"class {self.classes_[code]}", s, top == code) for code, s in self._class_streams(top)
        ]
        if names is not None:
            every += [(f"by {name}", s, names == name) for name, s in self._named_streams(names)]
        for who, stream, own in every:
            part, _ = stream.test(bins[:, own], uniform[:, own], self.window)
            stream.n_flagged += int(flags[own].sum())
            self._raise_first(
                who,
                "evidence",
                part,
                evidence.log_mean(part) >= self._log_bound(self.max_groups),
                time_before,
                np.flatnonzero(own),
            )
        peak = float(total.max()) if total.size else self.stream_.log_evidence
        return peak, float(sums.max() / limit) if sums.size else 0.0

    def _class_streams(self, top: NDArray[np.int64]) -> list[tuple[int, Stream]]:
        labels = self.classes_.tolist()
        found = np.unique(top).tolist()
        if len(labels) <= self.max_groups:
            for code in found:
                self.class_streams_.setdefault(str(labels[code]), self._empty_stream())
        pairs = [(code, self.class_streams_.get(str(labels[code]))) for code in found]
        return [(code, stream) for code, stream in pairs if stream is not None]

    def _named_streams(self, names: NDArray) -> list[tuple[str, Stream]]:
        found = [str(name) for name in pd.unique(names)]
        for name in found:
            if name and name not in self.named_streams_ and self._room_for_a_name():
                self.named_streams_[name] = self._empty_stream()
        return [(name, self.named_streams_[name]) for name in found if name in self.named_streams_]

    def _room_for_a_name(self) -> bool:
        return len(self.named_streams_) < self.max_groups

    def _window_bound(self) -> float:
        rate = self.alarm_rate * self._alarm_share / 2 / len(self.scores_)
        return window.bound(self.window, self.horizon, rate)

    def _raise_first(
        self,
        who: str,
        test: str,
        by_score: Vector,
        over: NDArray[np.bool_],
        before: int,
        rows: NDArray[np.int64] | None = None,
    ) -> None:
        if not over.any():
            return
        first = int(np.flatnonzero(over)[0])
        score = self.scores_[int(by_score[:, first].argmax())]
        row = first if rows is None else int(rows[first])
        self._raise(who, test, score, True, before + row + 1)

    def _raise(self, who: str, test: str, score: str, over: bool, at: int | None = None) -> None:
        told = any(a["who"] == who and a["test"] == test for a in self.alarms_)
        if over and not told and len(self.alarms_) < MOST_ALARMS:
            alarm = {"time": self.n_seen_ if at is None else at, "who": who}
            self.alarms_.append(alarm | {"test": test, "score": score})
            self.alarms_.sort(key=lambda entry: entry["time"])


def _most_frequent(names: NDArray, most: int) -> list[str]:
    counts = pd.Series(names[names != ""]).value_counts(sort=True)
    return [str(name) for name in counts.index[:most]]
