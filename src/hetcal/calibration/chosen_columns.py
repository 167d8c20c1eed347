"""The columns by which items are compared, named one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from hetcal._stored import stored
from hetcal._stored.fields import MOST_FEATURES
from hetcal._validation.containers import as_frame
from hetcal._validation.text import closest, short_list
from hetcal._validation.vectors import vector_lengths


def as_transformer(features: Any, caller: str) -> Any:
    """Return ``features`` as a transformer: a list of columns chooses them.

    Examples
    --------
    >>> as_transformer(["age", "income"], "f")
    ChosenColumns(columns=['age', 'income'])
    """
    if is_transformer(features):
        return features
    columns = [features] if isinstance(features, str) else features
    if isinstance(columns, list | tuple | range | np.ndarray | pd.Index | pd.Series):
        columns = list(columns)
        if columns and all(map(_names_column, columns)):
            return ChosenColumns([str(c) if isinstance(c, str) else int(c) for c in columns])
    raise TypeError(
        f"{caller}: features must be the columns to compare items by (names, such as "
        "['age', 'income'], or numbers of columns), a transformer with fit and transform, or None; "
        f"got {features!r}."
    )


def is_transformer(features: Any) -> bool:
    """Tell a transformer from columns; a Series of names has ``transform`` too."""
    return hasattr(features, "fit") and hasattr(features, "transform")


def _names_column(column: Any) -> bool:
    return isinstance(column, str | int | np.integer) and not isinstance(column, bool)


def plain_columns(features: Any) -> Any:
    """Return chosen columns as a plain list, the form in files; all else as it is."""
    chosen = None if features is None else as_transformer(features, "hetcal.save")
    return chosen.columns if isinstance(chosen, ChosenColumns) else chosen


def chosen_list(value: Any) -> bool:
    """Take lists of columns, none of them twice."""
    return (
        isinstance(value, list)
        and 0 < len(value) <= MOST_FEATURES
        and all(map(_names_column, value))
        and len(set(value)) == len(value)
    )


@stored({"columns": chosen_list})
class ChosenColumns(TransformerMixin, BaseEstimator):
    """Some columns of a table, array or sparse matrix, in its own container.

    Parameters
    ----------
    columns : list of str or int
        Names of the columns of a table, or their places (counted from 0). Where a number is the
        name of one column and the place of another, the name counts. No column twice. The name of
        a column of vectors chooses all their components.
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
        if frame is not None:  # by place: narwhals selects by names that are text only
            return frame[:, self.places(X)].to_native()
        matrix = X.tocsr() if sparse.issparse(X) else np.asarray(X)
        return matrix[:, self.places(matrix)]

    def places(self, X: Any) -> list[int]:
        """Return where the columns are among those that X has."""
        frame = as_frame(X)
        known: Sequence[Any] = range(X.shape[1]) if frame is None else frame.columns
        by_name = _places_by_name(known)
        missing = [column for column in self.columns if column not in by_name]
        if missing:
            raise ValueError(
                f"features names columns that X does not have: {short_list(missing)}."
                f"{_closest(missing[0], known)} X has {_shown(known)}."
            )
        places = [j for column in self.columns for j in by_name[column]]
        often = Counter(places)
        twice = [column for column in self.columns if often[by_name[column][0]] > 1]
        if twice:
            raise ValueError(
                f"features names a column of X more than once: {short_list(twice)}. Name each once."
            )
        return places

    def __sklearn_is_fitted__(self) -> bool:
        return True  # there is nothing to learn

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = tags.input_tags.string = True
        tags.requires_fit = False
        return tags


def _places_by_name(known: Sequence[Any]) -> dict[Any, list[int]]:
    """Return the places by number and by name; the name of vectors that were spread has several."""
    places = {name: [j] for j, name in enumerate(known)}
    lengths = vector_lengths(name for name in known if isinstance(name, str))
    vectors = {
        name: [places[f"{name}[{k}]"][0] for k in range(length)] for name, length in lengths.items()
    }
    return {j: [j] for j in range(len(known))} | vectors | places


def _closest(column: Any, known: Sequence[Any]) -> str:
    names = [name for name in known if isinstance(name, str)]
    close = closest(str(column), names)
    return f" Did you mean {close[0]!r}?" if close else ""


def _shown(known: Sequence[Any]) -> str:
    if isinstance(known, range):
        return f"{len(known)} columns without names, numbered from 0"
    return short_list(known, 20)
