"""The history of a monitor: one row of numbers per update."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._stored import stored
from hetcal._stored.fields import array_of
from hetcal._typing import Matrix, Vector
from hetcal.monitor.stream import Stream
from hetcal.monitor.testing import Peaks

#: Columns of whole numbers.
COUNTS = ("seen", "items", "flagged", "discoveries", "alarms", "labels")
COLUMNS = (
    "when",
    "seen",
    "items",
    "flagged",
    "discoveries",
    "median_support",
    "log10_evidence",
    "log10_evidence_peak",
    "window",
    "alarms",
    "labels",
    "accuracy_z",
    "brier_z",
    "log10_label_evidence",
    # Sums over all labels so far, from which come the means of the labels of an update.
    "accuracy",
    "brier",
    "expected_accuracy",
    "expected_brier",
)
_WHEN, _SEEN, _ITEMS, _LABELS = (
    COLUMNS.index(name) for name in ("when", "seen", "items", "labels")
)
_SUMS = slice(COLUMNS.index("accuracy"), len(COLUMNS))
_COLUMNS_OF_OLD = COLUMNS.index("log10_label_evidence")

_COUNTS = [COLUMNS.index(name) for name in COUNTS]
# What times, in seconds, may be: pandas counts nanoseconds in 64 bits.
_LATEST = pd.Timestamp.max.timestamp() - 1
# Whole numbers above have no exact form as a floating-point number.
_MOST_COUNTED = 1 << 53
_LEAST_LOG = -700.0


def with_columns_of_now(rows: Any) -> Any:
    """Return the rows of a file of old, which had fewer columns, with those that it lacks."""
    if np.ndim(rows) == 2 and np.shape(rows)[1] == _COLUMNS_OF_OLD:
        return np.pad(rows, ((0, 0), (0, len(COLUMNS) - _COLUMNS_OF_OLD)), constant_values=np.nan)
    return rows


def _rows(value: Any) -> bool:
    """Take rows with times that a clock shows and whole counts."""
    if not array_of(np.float64, None, len(COLUMNS))(value) or np.isinf(value).any():
        return False
    counts, when = value[:, _COUNTS], value[:, _WHEN]
    whole = (counts >= 0) & (counts < _MOST_COUNTED) & (counts == np.floor(counts))
    return bool(whole.all() and (np.abs(when) < _LATEST).all())


@stored({"rows": _rows}, inline=True)
@dataclass(frozen=True, eq=False)
class History:
    """What was counted when.

    Attributes
    ----------
    rows : ndarray of shape (n, n_columns)
        By time; ``when`` in seconds since 1970.
    """

    rows: Matrix

    @classmethod
    def empty(cls) -> History:
        """Return a history without rows."""
        return cls(np.zeros((0, len(COLUMNS))))

    def plus(
        self, items: pd.DataFrame, stream: Stream, peaks: Peaks, n_alarms: int, most: int
    ) -> History:
        """Add the row of an update and keep the latest ``most`` rows.

        Parameters
        ----------
        items : pandas.DataFrame
            What the update returns.
        stream : Stream
            Of all items, after the update.
        peaks : Peaks
            Within the update.
        n_alarms : int
            New ones.
        """
        ten, labels, usual = np.log(10), stream.labels, stream.usual
        row = [
            time.time(),
            stream.n_seen,
            len(items),
            items["flag"].sum(),
            items["discovery"].sum(),
            items["support"].median(),
            stream.martingale.log_value / ten,
            peaks.log_evidence / ten,
            peaks.window,
            n_alarms,
            labels.n,
            *stream.label_z()[:2],
            max(stream.label_evidence.log_value, _LEAST_LOG) / ten,
            *(labels.expected + labels.excess)[:2],
            *(labels.expected + labels.n * usual.excess / max(usual.n, 1))[:2],
        ]
        return History(np.vstack([self.rows, row])[-most:])

    def merged(self, other: History, most: int) -> History:
        """Return the rows of both by time; what they count "so far" is that of both together."""
        joined = np.vstack([self.rows, other.rows])
        order = np.argsort(joined[:, _WHEN], kind="stable")
        own = order < len(self.rows)
        joined = joined[order]
        for column in (_SEEN, _LABELS, *range(_SUMS.start, _SUMS.stop)):
            joined[:, column] = self._so_far(column, own) + other._so_far(column, ~own)
        return History(joined[-most:])

    def frame(self) -> pd.DataFrame:
        """Return a table."""
        table = pd.DataFrame(self.rows, columns=list(COLUMNS))
        table["when"] = pd.to_datetime(table["when"], unit="s", utc=True)
        table.iloc[:, _SUMS] = self._means_of_updates()
        return table.astype(dict.fromkeys(COUNTS, np.int64))

    def _means_of_updates(self) -> Matrix:
        """Return the means over the labels that came since the row before; NaN without any."""
        counted = np.diff(self.rows[:, _LABELS], prepend=0.0)
        sums = np.diff(self.rows[:, _SUMS], axis=0, prepend=0.0)
        anew = counted < 0  # an extended calibrator counts from the beginning
        counted[anew], sums[anew] = self.rows[anew, _LABELS], self.rows[anew, _SUMS]
        if len(self.rows) and self.rows[0, _SEEN] > self.rows[0, _ITEMS]:
            counted[0] = 0.0  # older rows are gone
        means = np.full(sums.shape, np.nan)
        return np.divide(sums, counted[:, None], out=means, where=counted[:, None] > 0)

    def _so_far(self, column: int, own: NDArray[np.bool_]) -> Vector:
        """Return what this one had counted at each row of two joined ones."""
        before = 0.0
        if len(self.rows):
            first = self.rows[0]
            before = first[_SEEN] - first[_ITEMS]
            if column != _SEEN:
                before = first[column] if before else 0.0  # older rows are gone
        return np.append(before, self.rows[:, column])[np.cumsum(own)]
