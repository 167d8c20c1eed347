"""The columns by which items are compared, named one by one."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from hetcal._validation.containers import as_frame
from hetcal._validation.text import short_list


def as_transformer(features: Any, caller: str) -> Any:
    """Return ``features`` as a transformer: a list of columns chooses them.

    Examples
    --------
    >>> as_transformer(["age", "income"], "f")
    ChosenColumns(columns=['age', 'income'])
    """
    if hasattr(features, "fit") and hasattr(features, "transform"):
        return features
    columns = [features] if isinstance(features, str) else features
    if isinstance(columns, list | tuple | np.ndarray):
        columns = list(columns)
        if columns and all(map(_names_column, columns)):
            return ChosenColumns(columns)
    raise TypeError(
        f"{caller}: features must be the columns to compare items by (names, such as "
        "['age', 'income'], or numbers of columns), a transformer with fit and transform, or None; "
        f"got {features!r}."
    )


def _names_column(column: Any) -> bool:
    return isinstance(column, str | int | np.integer) and not isinstance(column, bool)


class ChosenColumns(TransformerMixin, BaseEstimator):
    """Some columns of a table, array or sparse matrix, in its own container.

    Parameters
    ----------
    columns : list of str or int
        Names of the columns of a table, or their places (counted from 0).
    """

    def __init__(self, columns: list[Any]):
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check that the columns are there."""
        self.transform(X)
        return self

    def transform(self, X: Any) -> Any:
        """Return the columns."""
        frame = as_frame(X)
        if frame is not None:
            known = list(frame.columns)
            return frame.select([known[j] for j in self._places(known)]).to_native()
        matrix = X.tocsr() if sparse.issparse(X) else np.asarray(X)
        return matrix[:, self._places(range(matrix.shape[1]))]

    def _places(self, known: Sequence[Any]) -> list[int]:
        """Return where the columns are among those that X has."""
        places = {name: j for j, name in enumerate(known)} | {j: j for j in range(len(known))}
        missing = [column for column in self.columns if column not in places]
        if missing:
            names = [name for name in known if isinstance(name, str)]
            close = get_close_matches(str(missing[0]), names, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            there = short_list(known, 20)
            if isinstance(known, range):
                there = f"{len(known)} columns without names, numbered from 0"
            raise ValueError(
                f"features names columns that X does not have: {short_list(missing)}.{hint} "
                f"X has {there}."
            )
        return [places[column] for column in self.columns]

    def __sklearn_is_fitted__(self) -> bool:
        return True  # there is nothing to learn

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = tags.input_tags.string = True
        tags.requires_fit = False
        return tags
