"""Who learns and who is tested, decided without looking at labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hetcal._typing import Rows

Split = tuple[Rows, Rows]


@dataclass(frozen=True, eq=False)
class Folds:
    """Folds that do not know labels and keep groups whole; iterate over (train rows, test rows).

    Folds with equal shares of each class would hand every fold the chance surplus of the others:
    what is then predicted of an item depends on its label.

    Attributes
    ----------
    number : ndarray of shape (n,)
        The fold of each item.

    Examples
    --------
    >>> folds = Folds.make(6, 3, seed=0, groups=np.array([0, 0, 1, 1, 2, 2]))
    >>> [test.tolist() for _, test in folds]
    [[4, 5], [0, 1], [2, 3]]
    """

    number: Rows

    @classmethod
    def make(
        cls,
        n_items: int,
        n_folds: int = 5,
        *,
        seed: int | list[int] | None,
        groups: Rows | None = None,
    ) -> Folds:
        """Return folds of about equal size, the same ones for the same seed.

        Parameters
        ----------
        n_items : int
        n_folds : int, default=5
            Fewer where there are fewer items or groups.
        seed : int, list of int or None
            None draws other folds each time.
        groups : ndarray of shape (n,), optional
            Group numbers 0..G-1. Large groups are placed first, each into the smallest fold.
        """
        rng = np.random.default_rng(seed)
        if groups is None:
            return cls(rng.permutation(n_items) % n_folds)
        sizes = np.bincount(groups)
        order = rng.permutation(sizes.shape[0])
        order = order[np.argsort(-sizes[order], kind="stable")]
        total = np.zeros(n_folds, dtype=np.int64)
        fold = np.empty(sizes.shape[0], dtype=np.int64)
        for group in order:
            fold[group] = total.argmin()
            total[fold[group]] += sizes[group]
        return cls(fold[groups])

    def __iter__(self) -> Iterator[Split]:
        for fold in range(len(self)):
            yield np.flatnonzero(self.number != fold), np.flatnonzero(self.number == fold)

    def __len__(self) -> int:
        return int(self.number.max(initial=-1)) + 1

    def take(self, rows: Rows) -> Folds:
        """Return the folds of some items, numbered anew where a fold has none left."""
        return Folds(np.unique(self.number[rows], return_inverse=True)[1].astype(np.int64))
