"""A uniform random sample of a stream of rows, exact, in one pass and in bounded memory.

Every row gets a random key, by its place in the stream and the seed alone; the rows with the
smallest keys are the sample. So it depends neither on the size of the batches nor on the format of
the file. Rows of one group share a key made from the group's name, so that a group is drawn whole
or not at all, wherever in the stream its rows stand.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hetcal._exceptions import InputError
from hetcal._validation.text import as_text
from hetcal.tables.groups import group_names
from hetcal.tables.kinds import as_table
from hetcal.tables.selection import select_columns
from hetcal.tables.sizes import MAX_ROWS


@dataclass(frozen=True)
class Sample:
    """Rows drawn from a stream.

    Attributes
    ----------
    table : pandas, polars or Arrow table
        The rows that were drawn, in the order of the stream; of the batches' own kind.
    rows : ndarray of shape (n,)
        The place of each in the stream, counted from 0.
    n_rows : int
        Rows of the stream.
    """

    table: Any
    rows: NDArray[np.int64]
    n_rows: int


class RowSampler:
    """Draws rows from batches as they come; see :func:`draw_rows`.

    At most ``2 * max_rows`` rows and one batch are in memory.

    Attributes
    ----------
    n_rows : int
        Rows that have gone by.
    """

    def __init__(self, max_rows: int, random_state: int = 0):
        if max_rows < 1:
            raise ValueError(f"max_rows must be at least 1; got {max_rows}.")
        self.max_rows, self.seed, self.n_rows = int(max_rows), int(random_state), 0
        self._random = np.random.PCG64(self.seed)
        # Keys from here on are not drawn; None as long as everything fits.
        self._first_left_out: np.uint64 | None = None
        self._frames: list[nw.DataFrame] = []
        self._keys = np.empty(0, dtype=np.uint64)
        self._rows = np.empty(0, dtype=np.int64)

    def add(
        self, batch: Any, *, usable: NDArray[np.bool_] | None = None, groups: Any = None
    ) -> None:
        """Take the next rows of the stream.

        Parameters
        ----------
        batch : pandas, polars or Arrow table
        usable : ndarray of bool, optional
            Rows that may be drawn; by default all.
        groups : sequence of str, optional
            The group of each row; rows of a group are drawn together or not at all.
        """
        frame = as_table(batch)
        if frame is None:
            raise TypeError(
                f"Expected batches that are tables with named columns; got {type(batch).__name__}."
            )
        n = frame.shape[0]
        if groups is None:
            keys = np.asarray(self._random.random_raw(n), dtype=np.uint64)
        else:
            keys = _keys_of_groups(groups, self.seed)
        wanted = np.ones(n, dtype=bool) if usable is None else usable.copy()
        if self._first_left_out is not None:
            wanted &= keys < self._first_left_out
        rows = np.arange(self.n_rows, self.n_rows + n)
        self.n_rows += n
        if wanted.any() or not self._frames:  # the first batch tells the columns, even without rows
            self._frames.append(frame.filter(wanted.tolist()) if n else frame)
            self._keys = np.concatenate([self._keys, keys[wanted]])
            self._rows = np.concatenate([self._rows, rows[wanted]])
        if len(self._rows) > 2 * self.max_rows:
            self._leave_out()

    def sample(self) -> Sample:
        """Return the rows that are drawn from what has gone by."""
        any_usable = self._first_left_out is not None or len(self._rows) > 0
        self._leave_out()
        if any_usable and not len(self._rows):
            raise InputError(
                f"The first group drawn has more than {self.max_rows:,} rows, and groups are drawn "
                "whole. Pass a larger --max-rows (max_rows=)."
            )
        table = nw.concat(self._frames).to_native()
        if isinstance(table, pd.DataFrame):
            table = table.reset_index(drop=True)
        return Sample(table, self._rows, self.n_rows)

    def _leave_out(self) -> None:
        """Keep as many of the smallest keys as there is room for all of their rows."""
        if len(self._rows) <= self.max_rows:
            return
        rising = np.sort(self._keys)
        # The first key whose rows do not all fit; it never will, since rows only come in addition.
        self._first_left_out = rising[self.max_rows]
        kept = self._keys < self._first_left_out
        self._frames = [nw.concat(self._frames).filter(kept.tolist())]
        self._keys, self._rows = self._keys[kept], self._rows[kept]


def draw_rows(
    batches: Iterable[Any],
    max_rows: int = MAX_ROWS,
    *,
    groups: str | Sequence[str] | None = None,
    random_state: int = 0,
) -> Sample:
    """Draw rows from a stream of tables, each set of ``max_rows`` rows with equal probability.

    One pass; at most ``2 * max_rows`` rows and one batch are in memory. The sample does not depend
    on how the rows are cut into batches, and is the same for CSV and Parquet.

    Parameters
    ----------
    batches : iterable of pandas, polars or Arrow tables
        For example from :func:`hetcal.tables.read_batches`. At least one.
    max_rows : int, default=50000
        Rows that are drawn; all of them where the stream is not longer.
    groups : str or list of str, optional
        The column of groups (one customer, one patient), or several together. Groups are drawn
        whole, in random order, up to the first that does not fit: somewhat fewer rows than
        ``max_rows``.
    random_state : int, default=0
        Seed.

    Returns
    -------
    Sample

    Examples
    --------
    >>> stream = (pd.DataFrame({"x": range(start, start + 100)}) for start in range(0, 1000, 100))
    >>> sample = draw_rows(stream, 50)
    >>> len(sample.table), sample.n_rows, bool((sample.table["x"] == sample.rows).all())
    (50, 1000, True)
    """
    sampler = RowSampler(max_rows, random_state)
    for batch in batches:
        named = None
        if groups is not None and (frame := as_table(batch)) is not None:
            columns = select_columns(frame.columns, groups, "groups")
            named = group_names(frame, columns).tolist()
        sampler.add(batch, groups=named)
    if not sampler.n_rows:
        raise InputError("There are no rows to draw from.")
    return sampler.sample()


def _keys_of_groups(groups: Any, seed: int) -> NDArray[np.uint64]:
    codes, names = pd.factorize(np.asarray(list(groups), dtype=object), use_na_sentinel=False)
    keys = np.array([_key_of_group(name, seed) for name in names], dtype=np.uint64)
    return keys[codes] if len(keys) else np.empty(0, dtype=np.uint64)


def _key_of_group(name: Any, seed: int) -> int:
    text = "" if name is None else str(name)
    with contextlib.suppress(ValueError):  # 7 in one file is 7.0 in another
        text = as_text(float(text))
    said = hashlib.blake2b(f"{seed}\0{text}".encode(), digest_size=8).digest()
    return int.from_bytes(said, "little")
