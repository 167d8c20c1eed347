"""One stream of items: the whole, a class, or a named sub-population."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._stored import expect, restored, stored
from hetcal._stored.fields import count, instance, integers
from hetcal._typing import Matrix, Rows, Vector
from hetcal.monitor.bins import N_BINS
from hetcal.monitor.conformal import running_p_values
from hetcal.monitor.label_evidence import LabelEvidence
from hetcal.monitor.labels import LabelSums
from hetcal.monitor.martingale import Martingale
from hetcal.monitor.window import FisherWindow

_BY_BIN = integers(None, N_BINS, low=0, high=1 << 48)


@stored(
    {
        "base": _BY_BIN,
        "past": _BY_BIN,
        "martingale": instance(Martingale),
        "window": instance(FisherWindow),
        "labels": instance(LabelSums),
        "usual": instance(LabelSums),
        "n_seen": count,
        "n_flagged": count,
        "label_evidence": instance(LabelEvidence),
    },
    may_lack=("label_evidence",),  # files of old
)
@dataclass(frozen=True, eq=False)
class Stream:
    """Counts and tests of bounded size; one row per score (support, distance).

    Attributes
    ----------
    base : ndarray of int of shape (n_scores, N_BINS)
        The reference items of this stream by bin.
    past : ndarray of int of shape (n_scores, N_BINS)
        The tested items since the last reset by bin.
    martingale : Martingale
        Over the items since the last reset.
    window : FisherWindow
        Over the last of them.
    labels : LabelSums
        Of the items.
    usual : LabelSums
        Of the calibration items, by out-of-sample predictions.
    label_evidence : LabelEvidence
        Over the labels since the last reset.
    n_seen, n_flagged : int
        Items since the beginning, and how many of them were flagged.
    """

    base: Rows
    past: Rows
    martingale: Martingale
    window: FisherWindow
    labels: LabelSums
    usual: LabelSums
    label_evidence: LabelEvidence
    n_seen: int = 0
    n_flagged: int = 0

    @classmethod
    def start(cls, bins: Rows, usual: LabelSums, evidence: LabelEvidence) -> Stream:
        """Start a stream whose reference items lie in these bins, shape (n_scores, n)."""
        base = np.stack([np.bincount(row, minlength=N_BINS) for row in bins]).astype(np.int64)
        labels = LabelSums.empty(len(usual.excess) - 2)
        tests = Martingale.start(len(base)), FisherWindow.start(len(base))
        return cls(base, np.zeros_like(base), *tests, labels, usual, evidence)

    def reset(self) -> Stream:
        """Start the tests anew; what was counted since the beginning stays counted."""
        return replace(
            self,
            past=np.zeros_like(self.base),
            martingale=Martingale.start(len(self.base)),
            window=FisherWindow.start(len(self.base)),
            label_evidence=self.label_evidence.reset(),
        )

    def emptied(self) -> Stream:
        """Return a stream with the same reference that has seen nothing."""
        labels = LabelSums.empty(len(self.usual.excess) - 2)
        return replace(self.reset(), labels=labels, n_seen=0, n_flagged=0)

    def counted(self, flags: NDArray[np.bool_]) -> Stream:
        """Count new items, some of them flagged."""
        n_seen, n_flagged = self.n_seen + len(flags), self.n_flagged + int(flags.sum())
        return replace(self, n_seen=n_seen, n_flagged=n_flagged)

    def after(self, bins: Rows, uniform: Matrix, width: int) -> tuple[Stream, Matrix, Matrix]:
        """Test new items, one after the other.

        Returns
        -------
        Stream
            After the last item.
        logs, sums : ndarray of shape (n_scores, m)
            See :meth:`Martingale.after` and :meth:`FisherWindow.after`.
        """
        pool = self.base + self.past
        rows = zip(pool, bins, uniform, strict=True)
        p = np.stack([running_p_values(*row) for row in rows])  # counts them in the pool
        martingale, logs = self.martingale.after(p)
        window, sums = self.window.after(p, width)
        new = replace(self, past=pool - self.base, martingale=martingale, window=window)
        return new, logs, sums

    def with_labels(self, Q: Matrix, codes: Rows) -> Stream:
        """Count labels of items with calibrated probabilities Q."""
        return replace(self, labels=self.labels + LabelSums.over(Q, codes))

    def label_z(self) -> Vector:
        """Return by how many deviations the labels differ from what is usual."""
        return self.labels.excess_over(self.usual)[1]

    def merged(self, other: Stream, width: int) -> Stream:
        """Add the items of another process that started from the same reference."""
        return replace(
            self,
            past=self.past + other.past,
            martingale=self.martingale.merged(other.martingale),
            window=self.window.merged(other.window, width),
            labels=self.labels + other.labels,
            label_evidence=self.label_evidence.merged(other.label_evidence),
            n_seen=self.n_seen + other.n_seen,
            n_flagged=self.n_flagged + other.n_flagged,
        )

    def without_reference(self) -> Stream:
        """Leave out what the monitor knows anyway, to be sent to another process."""
        return replace(self, base=self.base[:, :0], usual=self.labels)

    def with_reference_of(self, other: Stream) -> Stream:
        """Put back what :meth:`without_reference` has left out."""
        return replace(self, base=other.base, usual=other.usual)

    def _to_stored(self, state: dict[str, Any]) -> dict[str, Any]:
        martingale, window = state.pop("martingale"), state.pop("window")
        return state | {
            "capital": martingale.capital,
            "n_tested": martingale.n_items,
            "n_shards": martingale.n_processes,
            "tails": window.tails,
        }

    @classmethod
    def _from_stored(cls, state: dict[str, Any]) -> dict[str, Any]:
        names = {"capital": "capital", "n_items": "n_tested", "n_processes": "n_shards"}
        capital = {name: state.pop(stored_as) for name, stored_as in names.items()}
        window = restored(FisherWindow, tails=state.pop("tails"))
        return state | {"martingale": restored(Martingale, **capital), "window": window}

    def _restore(self) -> None:
        if not hasattr(self, "label_evidence"):
            object.__setattr__(self, "label_evidence", LabelEvidence.start([self.usual]))

    def _check_restored(self) -> None:
        per_score = (self.past, self.martingale.capital, self.window.tails)
        same = all(len(part) == len(self.base) for part in per_score)
        expect(same, self, "has tests of other scores")
        known = max(self.n_flagged, self.martingale.n_items) <= self.n_seen
        expect(known, self, "has counted more items than it has seen")
        expect(len(self.labels.excess) == len(self.usual.excess), self, "has odd labels")
        expect(self.base is not self.past, self, "keeps two counts in one place")
