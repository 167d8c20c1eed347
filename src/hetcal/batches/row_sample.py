"""Rows that a model has learned from, known again by a small sample of their hashes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hetcal._exceptions import FileFormatError
from hetcal.batches.model import LoadedModel

_Hashes = NDArray[np.uint64]

#: Where a model's file holds the sample.
KEY = "learned_rows"
_SIZE = 128
# Fewer rows may be equal by chance; so small a share changes nothing.
_FEWEST, _LEAST_SHARE = 5, 0.05
# Where more of the fitted rows than this are equal to others, new rows are equal to them by chance.
_MOST_COPIED = 0.05


@dataclass(frozen=True)
class RowSample:
    """The smallest hashes of some rows: of any table about the same share of them is among these.

    Attributes
    ----------
    hashes : ndarray of uint64
        Rising.
    n_distinct : int
        Different rows.
    share_copied : float
        Rows that others are equal to: by so much chance new rows are equal to them.
    """

    hashes: _Hashes
    n_distinct: int
    share_copied: float

    @classmethod
    def of(cls, hashes: _Hashes) -> Self:
        """Return the sample of rows."""
        distinct, counts = np.unique(hashes, return_counts=True)
        copied = counts[counts > 1].sum() / max(1, len(hashes))
        return cls(distinct[:_SIZE], len(distinct), float(copied))

    def with_more(self, hashes: _Hashes) -> Self:
        """Return the sample of these rows and others."""
        more = type(self).of(hashes)
        both = np.union1d(self.hashes, more.hashes)[:_SIZE]
        share = max(self.share_copied, more.share_copied)
        n_distinct = len(both)
        if n_distinct == _SIZE:  # hashes are uniform: the largest of the smallest tells how many
            n_distinct = max(_SIZE, round((_SIZE - 1) * 2.0**64 / (float(both[-1]) + 1)))
        return type(self)(both, n_distinct, share)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        text = self.hashes.astype("<u8").tobytes().hex()
        return vars(self) | {"hashes": text}

    @classmethod
    def stored(cls, model: LoadedModel) -> Self | None:
        """Return what a model's file holds; None where it was written without."""
        found = model.metadata.get(KEY)
        if found is None:
            return None
        try:
            hashes = np.frombuffer(bytes.fromhex(found["hashes"]), "<u8").astype(np.uint64)
            sample = cls(hashes, int(found["n_distinct"]), float(found["share_copied"]))
            if not (0 < len(hashes) <= sample.n_distinct and 0 <= sample.share_copied <= 1):
                raise ValueError("a sample of rows is not described")
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise FileFormatError(
                "What the model's file says about the rows that it was fitted on is not what "
                "hetcal fit writes. Make it again with hetcal fit."
            ) from error
        return sample


class LearnedRows:
    """Counts how many rows of a stream a model has learned from, as far as its file says.

    Examples
    --------
    >>> rows = LearnedRows(RowSample.of(np.arange(1000, dtype=np.uint64)))
    >>> rows.count(np.arange(500, 1500, dtype=np.uint64)), rows.share
    (None, 0.0)
    >>> rows.count(np.arange(500, dtype=np.uint64)), round(rows.share, 2)
    (None, 0.67)
    """

    def __init__(self, sample: RowSample | None):
        self._sample = sample
        self._n_rows, self._n_found = 0, 0
        self._found: set[int] = set()

    def count(self, hashes: _Hashes) -> None:
        """Look at some more rows."""
        self._n_rows += len(hashes)
        if self._sample is not None:
            known = hashes[np.isin(hashes, self._sample.hashes)]
            self._n_found += len(known)
            self._found.update(known.tolist())

    @property
    def share(self) -> float:
        """About how large a share of the rows were learned from; 0 where chance may explain it."""
        if self._sample is None or len(self._found) < _FEWEST:
            return 0.0
        if self._sample.share_copied > _MOST_COPIED:  # so are new rows, without being known ones
            return 0.0
        in_sample = len(self._sample.hashes) / self._sample.n_distinct
        share = min(1.0, self._n_found / in_sample / self._n_rows)
        return share if share - 2 * self._sample.share_copied > _LEAST_SHARE else 0.0

    @property
    def in_words(self) -> str:
        """How many rows that is, as the subject of a sentence."""
        share = self.share
        return "All rows" if share > 0.999 else f"About {100 * share:.0f} % of the rows"
