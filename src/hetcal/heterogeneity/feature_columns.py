"""Features as a test reads them without labels: ranks of numbers, what is missing, levels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtri

from hetcal._typing import Matrix
from hetcal._validation.containers import as_frame, is_number, number_of_rows
from hetcal._validation.features import (
    FeatureEncoder,
    check_finite_numeric,
    refuse_complex,
    refuse_empty,
    refuse_numbers_as_text,
    rows_and_columns,
)
from hetcal._validation.text import short

Floats = NDArray[np.float32]

MOST_COLUMNS = 600  # of a wide table; the others are seen through the projections only
N_PROJECTIONS = 64
_DENSE_CELLS = 50_000_000
_COLLECTIONS = (list, tuple, dict, set, frozenset, np.ndarray)


@dataclass(frozen=True, eq=False)
class Category:
    """A column of levels: codes 0..L-1 (-1: missing), most frequent level first."""

    name: str
    codes: NDArray[np.int64]
    levels: list
    counts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FeatureColumns:
    """The columns of a table, encoded without labels and whatever their scale.

    Attributes
    ----------
    names : list of str
        Of the columns of numbers.
    values : list of ndarray
        Numbers as given, for the words.
    ranks : ndarray of shape (n, d)
        Mid-ranks in (0, 1); 1/2 where the value is missing.
    n_distinct : ndarray of shape (d,)
    missing : ndarray of shape (n, m)
        Which values are missing, a column for each column that has some.
    missing_names : list of str
    categories : list of Category
    """

    names: list[str]
    values: list[NDArray]
    ranks: Floats
    n_distinct: NDArray[np.int64]
    missing: NDArray[np.bool_]
    missing_names: list[str]
    categories: list[Category]

    @classmethod
    def read(cls, X: Any) -> FeatureColumns:
        """Encode a table, an array or a sparse matrix.

        Examples
        --------
        >>> import pandas as pd
        >>> table = pd.DataFrame({"age": [31, 58, None, 40], "region": ["n", "s", "s", "s"]})
        >>> columns = FeatureColumns.read(table)
        >>> columns.ranks.ravel().tolist(), columns.missing_names, columns.categories[0].levels
        ([0.1666..., 0.8333..., 0.5, 0.5], ['age'], ['s', 'n'])
        """
        numbers, categories = _split(X)
        names, values, ranks, distinct, missing, missing_names = [], [], [], [], [], []
        n = number_of_rows(X, "X")
        for name, column in numbers:
            absent = np.isnan(column)
            if absent.any() and not absent.all():
                missing.append(absent)
                missing_names.append(name)
            rank, count = _mid_ranks(column, absent)
            if count > 1:
                names.append(name)
                values.append(column)
                ranks.append(rank)
                distinct.append(count)
        return cls(
            names,
            values,
            np.stack(ranks).T if ranks else np.empty((n, 0), np.float32),
            np.array(distinct, dtype=np.int64),
            np.stack(missing).T if missing else np.empty((n, 0), bool),
            missing_names,
            categories,
        )

    def take(self, rows: NDArray[np.int64]) -> FeatureColumns:
        """Return some of the items, with the ranks that they have among all."""
        categories = [replace(category, codes=category.codes[rows]) for category in self.categories]
        ranks, missing = self.ranks[rows], self.missing[rows]
        return replace(self, ranks=ranks, missing=missing, categories=categories)

    def matrix(self) -> Matrix:
        """Return numbers as given beside the codes of levels."""
        parts = [*self.values, *(category.codes for category in self.categories)]
        return np.column_stack(parts).astype(np.float64)

    @property
    def n_items(self) -> int:
        """Number of rows."""
        return len(self.ranks)

    @property
    def is_empty(self) -> bool:
        """Whether no column takes two values."""
        return not (
            self.ranks.shape[1]
            or self.missing.shape[1]
            or any(len(category.levels) > 1 for category in self.categories)
        )

    def could_show_more_than(self, P: Matrix) -> bool:
        """Return whether items of equal probabilities could differ in a way that recurs.

        They cannot where every column is constant, rises or falls with the probability of a class,
        or is a category of its own for every item.
        """
        return (
            self.missing.shape[1] > 0
            or any(_recurs(category) for category in self.categories)
            or not all(any(_follows(x, p) for p in P.T) for x in self.ranks.T)
        )

    def normal_scores(self) -> Floats:
        """Return the ranks as quantiles of the normal distribution: heavy tails do no harm."""
        n = max(len(self.ranks), 1)
        clipped = np.clip(self.ranks, 0.5 / n, 1 - 0.5 / n).astype(np.float64)
        return ndtri(clipped).astype(np.float32)

    def value_at(self, column: int, quantile: float) -> float:
        """Return the value at a quantile."""
        return float(np.nanquantile(self.values[column], quantile, method="inverted_cdf"))

    def cut(self, column: int, quantile: float) -> str:
        """Return the value at a quantile, in words."""
        return short(self.value_at(column, quantile))


def _split(X: Any) -> tuple[list[tuple[str, NDArray]], list[Category]]:
    if sparse.issparse(X):
        refuse_empty(X.shape)
        return _sparse_columns(sparse.csc_array(X)), []
    frame = as_frame(X)
    if frame is None:
        array = rows_and_columns(X)
        _refuse_text_of_numbers(array)
        if array.dtype.kind not in "USOM":
            return _wide([f"x{j}" for j in range(array.shape[1])], array), []
        table = pd.DataFrame(array).infer_objects().rename(columns=lambda j: f"x{j}")
        return _table_columns(nw.from_native(table, eager_only=True))
    refuse_empty(frame.shape)
    return _table_columns(frame)


def _table_columns(frame: nw.DataFrame) -> tuple[list[tuple[str, NDArray]], list[Category]]:
    numbers, categories = [], []
    for column in frame.iter_columns():
        native = column.to_pandas()
        if native.isna().all():
            continue
        if pd.api.types.is_numeric_dtype(native) or pd.api.types.is_datetime64_any_dtype(native):
            numbers.append((str(column.name), _as_floats(native)))
        else:
            categories.append(_category(str(column.name), native))
    return numbers, categories


def _refuse_text_of_numbers(array: NDArray) -> None:
    """Raise for an array that was read as text, in which each number would be a level."""
    if array.dtype.kind in "US" and all(map(is_number, map(str, array.ravel()))):
        raise ValueError(
            f"X is an array of numbers as text, such as {str(array.ravel()[0])!r}. Pass numbers: "
            "X.astype(float)."
        )


def _as_floats(column: pd.Series) -> NDArray[np.float64]:
    if pd.api.types.is_datetime64_any_dtype(column):
        return np.where(column.isna(), np.nan, column.astype("int64").to_numpy(dtype=float))
    refuse_complex(column.dtype)
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    check_finite_numeric(values[:, None])
    return values


def _category(name: str, column: pd.Series) -> Category:
    _refuse_collections(name, column)
    codes, levels = pd.factorize(column.astype(object).map(str, na_action="ignore"), sort=True)
    if len(levels) > FeatureEncoder.max_levels and not isinstance(
        column.dtype, pd.CategoricalDtype
    ):
        refuse_numbers_as_text(name, list(levels))
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    order = np.argsort(-counts, kind="stable")
    place = np.empty(len(order) + 1, dtype=np.int64)
    place[order], place[-1] = np.arange(len(order)), -1
    return Category(name, place[codes], [levels[j] for j in order], counts[order])


def _refuse_collections(name: str, column: pd.Series) -> None:
    found = next((v for v in column if isinstance(v, _COLLECTIONS)), None)
    if found is not None:
        raise TypeError(
            f"Column {name!r} of X holds values such as {str(found)[:60]} of type "
            f"{type(found).__name__}, which are neither numbers nor levels. Encode it first, e.g. "
            "as a column for each part, or leave it out."
        )


def _wide(names: list[str], array: NDArray) -> list[tuple[str, NDArray]]:
    """Return the columns of an array; of a wide one some, and projections of all."""
    refuse_complex(array.dtype)
    matrix = np.asarray(array, dtype=np.float64)
    check_finite_numeric(matrix)
    if matrix.shape[1] <= MOST_COLUMNS:
        return list(zip(names, matrix.T, strict=True))
    rng = np.random.default_rng(0)
    kept = np.sort(rng.permutation(matrix.shape[1])[:MOST_COLUMNS])
    filled = np.nan_to_num(
        (matrix - np.nanmean(matrix, axis=0)) / (np.nanstd(matrix, axis=0) + 1e-300)
    )
    return [(names[j], matrix[:, j]) for j in kept] + _projections(filled)


def _sparse_columns(X: sparse.csc_array) -> list[tuple[str, NDArray]]:
    """Return the columns of a sparse matrix that are filled most, and projections of all."""
    n, d = X.shape
    names = [f"x{j}" for j in range(d)]
    refuse_complex(X.dtype)
    check_finite_numeric(X.data)
    most = int(np.clip(_DENSE_CELLS // max(n, 1), 10, MOST_COLUMNS))
    if d <= most:
        return list(zip(names, X.toarray().T.astype(np.float64), strict=True))
    filled = np.minimum(np.diff(X.indptr), n - np.diff(X.indptr))
    kept = np.sort(np.argsort(-filled, kind="stable")[:most])
    chosen = [(names[j], X[:, [j]].toarray().ravel().astype(np.float64)) for j in kept]
    scale = np.sqrt(np.asarray(X.multiply(X).mean(axis=0)).ravel())
    return chosen + _projections(X @ sparse.diags_array(1 / np.where(scale > 0, scale, 1.0)))


def _projections(X: Any) -> list[tuple[str, NDArray]]:
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(X.shape[1], N_PROJECTIONS))
    return [
        (f"projection {j + 1} of all columns", column) for j, column in enumerate((X @ signs).T)
    ]


def _recurs(category: Category) -> bool:
    """Return whether a category has several levels, and one of them on several items."""
    counts = np.unique(category.codes, return_counts=True)[1]
    return len(counts) > 1 and bool(counts.max() > 1)


def _follows(x: NDArray, p: NDArray) -> bool:
    """Return whether x is a rising or a falling function of p."""
    order = np.argsort(p, kind="stable")
    steps = np.diff(x[order])
    is_function = not steps[np.diff(p[order]) == 0].any()
    return is_function and bool((steps >= 0).all() or (steps <= 0).all())


def _mid_ranks(column: NDArray, absent: NDArray[np.bool_]) -> tuple[Floats, int]:
    known = column[~absent]
    rank = np.full(len(column), 0.5, dtype=np.float32)
    if not known.size:
        return rank, 0
    _, place, counts = np.unique(known, return_inverse=True, return_counts=True)
    middle = (np.cumsum(counts) - counts / 2) / known.size
    rank[~absent] = middle[place]
    return rank, len(counts)
