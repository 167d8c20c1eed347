"""Features of any table to a numeric matrix, by an encoding that is fitted once and checked after.

The encoding, column by column:

- numbers and booleans stay as they are (float64); missing values (NaN, ``<NA>``, masked ones) stay
  NaN, or are filled with the column's median at fit (``missing="impute"``) for methods that cannot
  use them;
- categorical columns (pandas ``category``, polars ``Categorical``/``Enum``) and string columns with
  at most ``max_levels`` distinct values become one 0/1 column per level seen at fit; a missing one
  and an unknown level are all zeros, the latter with a warning that counts them;
- string columns with more distinct values are text: an error that says what to do;
- columns of vectors (embeddings: lists or arrays of numbers, all of one length) become one column
  per component;
- dates and other nested columns are an error, which says which columns could be used.

A sparse matrix stays sparse (CSR) where the method allows it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from hetcal._exceptions import (
    HetcalWarning,
    SlowFitWarning,
    UnknownCategoryWarning,
    levels_to_caller,
)
from hetcal._stored import expect, stored
from hetcal._stored.fields import (
    MOST_FEATURES,
    column_names,
    flag,
    instance,
    is_scalar,
    is_whole,
    numbers,
    one_of,
    optional,
    whole,
)
from hetcal._validation.containers import as_frame, is_number, masked_as_missing, plain_kind
from hetcal._validation.text import short_list
from hetcal._validation.vectors import spread_vectors

_CATEGORICAL = (nw.Categorical, nw.Enum)
#: Columns, and numbers in all, above which forests and kernels take minutes.
_WIDE, _SLOW_CELLS = 300, 10_000_000
#: Forests take larger values for this one. Relative differences below the other are of rounding.
_LARGEST_IN_TREES, _ROUNDING = 1e30, 1e-6
_NO_DATES = (
    "Leave it out or turn it into numbers first (for a date: an age in days, the month, ...)."
)
# What a file may ask for. A table is predicted column by column, and loading predicts once.
_MOST_LEVELS, _MOST_TABLE_COLUMNS = 10_000_000, 50_000


@stored(
    {
        "missing": one_of("keep", "impute"),
        "allow_sparse": flag,
        "max_levels": whole(0, 1 << 62),
        "n_features_in_": whole(1, MOST_FEATURES),
        "feature_names_in_": optional(column_names),
        "levels_": instance(dict),
        "fill_": optional(numbers(None)),
    }
)
@dataclass
class FeatureEncoder:
    """Fitted map from a table or array to a float64 matrix; see the module's text for the rules.

    Parameters
    ----------
    missing : {"keep", "impute"}, default="keep"
        What happens to missing numbers.
    allow_sparse : bool, default=False
        Whether a sparse matrix may pass through.
    max_levels : int, default=100
        A string column with more distinct values than this is refused as text.

    Attributes
    ----------
    n_features_in_ : int
        Columns of the input.
    feature_names_in_ : ndarray of str or None
        Their names, where the input had names.
    feature_names_out_ : list of str
        One name per column of the encoded matrix; ``"color=red"`` for a level.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": [31.0, 58.0], "region": ["north", "south"]})
    >>> encoder = FeatureEncoder().fit(table)
    >>> encoder.feature_names_out_
    ['age', 'region=north', 'region=south']
    >>> encoder.transform(table)
    array([[31.,  1.,  0.],
           [58.,  0.,  1.]])
    """

    missing: str = "keep"
    allow_sparse: bool = False
    max_levels: int = 100
    n_features_in_: int = field(default=0, init=False)
    feature_names_in_: NDArray | None = field(default=None, init=False)
    levels_: dict[int, list] = field(default_factory=dict, init=False)
    fill_: NDArray[np.float64] | None = field(default=None, init=False)

    def fit(self, X: Any) -> FeatureEncoder:
        """Learn names, levels and fill values of the columns of ``X``."""
        self.levels_, self.fill_, self.feature_names_in_ = {}, None, None
        X = spread_vectors(X)
        if sparse.issparse(X):
            self.n_features_in_ = self._checked_sparse(X).shape[1]
            return self
        frame = as_frame(X)
        if frame is None:
            matrix = _numeric_array(X)
            self.n_features_in_ = matrix.shape[1]
        else:
            refuse_empty(frame.shape)
            self.n_features_in_ = frame.shape[1]
            self.feature_names_in_ = _string_names(frame)
            self.levels_ = self._levels(frame)
            matrix = self._encode_frame(frame)
        if self.missing == "impute":
            self.fill_ = _column_medians(matrix)
        return self

    def transform(self, X: Any, *, quiet: bool = False) -> NDArray[np.float64] | sparse.csr_array:
        """Return ``X`` encoded as at fit, after checking that it has the same columns.

        ``quiet`` leaves the warning about unknown levels out; Python's own filters of warnings are
        not safe to change while other threads run.
        """
        X = self._spread(X)
        if sparse.issparse(X):
            matrix = self._checked_sparse(X)
            self._check_width(matrix.shape[1])
            return matrix
        frame = as_frame(X)
        if frame is None:
            if self.levels_:
                raise ValueError(
                    "X was a table with categorical columns at fit but is a plain array now. "
                    "Pass a table with the same columns."
                )
            matrix = _numeric_array(X)
            self._check_width(matrix.shape[1])
        else:
            refuse_empty(frame.shape)
            self._check_names(frame)
            self._check_width(frame.shape[1])
            matrix = self._encode_frame(frame, quiet)
        if self.fill_ is not None:
            matrix = np.where(np.isnan(matrix), self.fill_, matrix)
        return matrix

    def fit_transform(self, X: Any) -> NDArray[np.float64] | sparse.csr_array:
        """Fit, then encode the same table."""
        return self.fit(X).transform(X)

    @property
    def feature_names_out_(self) -> list[str]:
        names: list[str] = []
        for j in range(self.n_features_in_):
            name = f"x{j}" if self.feature_names_in_ is None else str(self.feature_names_in_[j])
            levels = self.levels_.get(j)
            names += [name] if levels is None else [f"{name}={level}" for level in levels]
        return names

    def places_out(self, places: Iterable[int]) -> list[int]:
        """Return the columns of the encoded matrix that some columns of the input become.

        Examples
        --------
        >>> import pandas as pd
        >>> table = pd.DataFrame({"region": ["north", "south"], "age": [31.0, 58.0]})
        >>> FeatureEncoder().fit(table).places_out([0])
        [0, 1]
        """
        widths = [len(self.levels_.get(j, [None])) for j in range(self.n_features_in_)]
        ends = np.cumsum(widths).tolist()
        return [k for j in places for k in range(ends[j] - widths[j], ends[j])]

    def _check_restored(self) -> None:
        n, levels, names = self.n_features_in_, self.levels_, self.feature_names_in_
        expect(names is None or len(names) == n, self, "has wrong names")
        for column, values in levels.items():
            good = is_whole(column, 0, n - 1) and isinstance(values, list)
            expect(good and all(map(is_scalar, values)), self, "has wrong levels")
        expect(not levels or n <= _MOST_TABLE_COLUMNS, self, "has too many columns")
        width = n - len(levels) + sum(map(len, levels.values()))
        expect(0 < width <= _MOST_LEVELS, self, "has too many levels")
        expect(self.fill_ is None or len(self.fill_) == width, self, "fills wrong")

    def _spread(self, X: Any) -> Any:
        """Return X with its vectors spread, as at fit also where all of them are missing."""
        X = spread_vectors(X, self.feature_names_in_)
        array = self.feature_names_in_ is None and len(getattr(X, "shape", ())) == 1
        if array and np.asarray(X).dtype == object and np.all(pd.isna(X)):
            return np.full((len(X), self.n_features_in_), np.nan)
        return X

    def _checked_sparse(self, X: Any) -> sparse.csr_array:
        if not self.allow_sparse:
            n, d = X.shape
            project = (
                "Project it to some tens of columns, e.g. with "
                "sklearn.decomposition.TruncatedSVD(50), fitted once and used for new items too; "
                if d > 50
                else ""
            )
            raise TypeError(
                f"X is a sparse matrix of {n} x {d}, but this method needs a dense array (Sparse "
                f"data was passed). {project}X.toarray() takes {max(1, n * d * 8e-6):,.0f} MB. At "
                "the end of a pipeline that makes X, FunctionTransformer(methodcaller('toarray')) "
                "does it (operator.methodcaller)."
            )
        _refuse_other_numbers(X.dtype)
        matrix = sparse.csr_array(X, dtype=np.float64)
        try:
            matrix.check_format()  # all indices: SciPy itself takes those it is given on trust
        except ValueError as error:
            raise ValueError(
                f"X is a sparse matrix whose parts do not fit together ({error}). Make it again."
            ) from error
        if not matrix.has_canonical_format:  # an entry in several parts is their sum
            matrix = matrix.copy()
            matrix.sum_duplicates()
        refuse_empty(matrix.shape)
        check_finite_numeric(matrix.data)
        return matrix

    def _levels(self, frame: nw.DataFrame) -> dict[int, list]:
        """Return the levels of the categorical columns; of columns without encoding name all."""
        found: dict[int, list] = {}
        refused: dict[str, Exception] = {}
        for j, column in enumerate(frame.iter_columns()):
            try:
                levels = self._column_levels(column)
            except (TypeError, ValueError) as error:
                refused[column.name] = error
            else:
                found |= {} if levels is None else {j: levels}
        if refused:
            first = next(iter(refused.values()))
            told = f"{first}{_what_can_be_used(frame.columns, list(refused))}"
            raise plain_kind(first)(told) from first
        return found

    def _column_levels(self, column: nw.Series) -> list | None:
        """Return the levels of a categorical column, None for a numeric one."""
        dtype = column.dtype
        if dtype.is_numeric() or dtype == nw.Boolean:
            return None
        if dtype == nw.Unknown and column.is_null().all():  # polars has a type for "nothing yet"
            return None
        values = column.to_numpy()
        if dtype in _CATEGORICAL or isinstance(dtype, _CATEGORICAL):
            return _sorted_levels(values)
        if dtype in (nw.String, nw.Object):
            return self._levels_of_strings(column.name, values)
        raise TypeError(
            f"Column {column.name!r} of X has type {_told(column)}, which has no encoding. "
            f"{_NO_DATES}"
        )

    def _levels_of_strings(self, name: str, values: NDArray) -> list | None:
        as_numbers = pd.to_numeric(pd.Series(values, dtype=object), errors="coerce")
        is_text = [isinstance(value, str) for value in values]
        if not any(is_text):
            if as_numbers.isna().to_numpy().sum() > pd.isna(values).sum():
                raise TypeError(
                    f"Column {name!r} of X holds objects that are neither numbers nor strings; "
                    "argument must be a string or a number. Encode it first."
                )
            return None
        levels = _sorted_levels(values)
        if len(levels) > self.max_levels:
            refuse_numbers_as_text(name, levels)
            raise ValueError(
                f"Column {name!r} of X is text with {len(levels)} distinct values and has no "
                "encoding. Drop it, encode it as numbers, or turn it into a categorical column "
                "(e.g. X[column].astype('category')) if its values are levels."
            )
        return levels

    def _encode_frame(self, frame: nw.DataFrame, quiet: bool = False) -> NDArray[np.float64]:
        dtypes = list(frame.schema.values())
        blocks: list[NDArray[np.float64]] = []
        for floats, run in groupby(
            range(frame.shape[1]), lambda j: j not in self.levels_ and dtypes[j] == nw.Float64
        ):
            places = list(run)
            if floats:
                blocks.append(_float_columns(frame[:, places]))
            else:
                blocks += [self._encode_column(frame[:, j], j, quiet) for j in places]
        matrix = np.ascontiguousarray(np.hstack(blocks))
        check_finite_numeric(matrix)
        return matrix

    def _encode_column(self, column: nw.Series, place: int, quiet: bool) -> NDArray[np.float64]:
        levels = self.levels_.get(place)
        return _numeric_column(column) if levels is None else self._one_hot(column, levels, quiet)

    def _one_hot(self, column: nw.Series, levels: list, quiet: bool) -> NDArray[np.float64]:
        values = column.to_numpy()
        codes = pd.Index(levels, dtype=object).get_indexer(pd.Index(values, dtype=object))
        unknown = (codes < 0) & ~np.asarray(pd.isna(values))
        if unknown.any() and not quiet:
            names = sorted({str(value) for value in values[unknown]})
            warnings.warn(
                f"Column {column.name!r} holds {int(unknown.sum())} value(s) not seen at "
                f"fit ({', '.join(names[:5])}{', ...' if len(names) > 5 else ''}); they count as "
                "none of the known levels.",
                UnknownCategoryWarning,
                stacklevel=levels_to_caller(),
            )
        return (codes[:, None] == np.arange(len(levels))).astype(np.float64)

    def _check_width(self, n_columns: int) -> None:
        if n_columns != self.n_features_in_:
            raise ValueError(
                f"X has {n_columns} features, but the calibrator is expecting "
                f"{self.n_features_in_} features as input. Pass the same columns as at fit."
            )

    def _check_names(self, frame: nw.DataFrame) -> None:
        names = _string_names(frame)
        expected = self.feature_names_in_
        if names is None or expected is None or names.tolist() == expected.tolist():
            return
        missing = [name for name in expected if name not in set(names)]
        extra = [name for name in names if name not in set(expected)]
        if missing or extra:
            parts = [f"missing: {short_list(missing)}"] if missing else []
            parts += [f"unexpected: {short_list(extra)}"] if extra else []
            raise ValueError(
                f"The columns of X differ from those at fit ({'; '.join(parts)}). "
                "Pass the same columns in the same order."
            )
        place = next(i for i, (a, b) in enumerate(zip(expected, names, strict=True)) if a != b)
        raise ValueError(
            f"The columns of X are in another order than at fit: column {place} was "
            f"{expected[place]!r} and is {names[place]!r}. Reorder them, e.g. "
            "X[list(calibrator.feature_names_in_)]."
        )


def _what_can_be_used(names: list, refused: list) -> str:
    """Return which columns have an encoding, for the error about those that have none."""
    others = f" Nor have {short_list(refused[1:])}." if len(refused) > 1 else ""
    usable = [name for name in names if name not in refused]
    if not usable:
        return others
    chosen = usable if len(usable) <= 20 else "[...]"
    return (
        f"{others} Of X, {short_list(usable, 20)} can be used. For a classifier that needs the "
        f"other columns: LocallyCalibratedClassifier(classifier, features={chosen}) hands only "
        "these to the calibrator."
    )


def propose_projection(features: Any, caller: str) -> None:
    """Warn where so many columns of so many items are about to be compared that it takes minutes.

    Parameters
    ----------
    features : ndarray or sparse matrix of shape (n, d)
    caller : str
        Who compares them.
    """
    n, d = features.shape
    if d > _WIDE and n * d > _SLOW_CELLS and not sparse.issparse(features):
        warnings.warn(
            f"{caller}: X has {n:,} x {d} values, and fitting to them takes minutes. Columns of an "
            "embedding mean little one by one; project them once, without labels: "
            "pca = sklearn.decomposition.PCA(50).fit(X), then fit to pca.transform(X) and predict "
            "with pca.transform(X_new).",
            SlowFitWarning,
            stacklevel=levels_to_caller(),
        )


def warn_of_scales(features: Any, caller: str, closest: float) -> None:
    """Warn of columns whose values forests take for equal, because of their scale alone.

    Parameters
    ----------
    features : ndarray or sparse matrix of shape (n, d)
    caller : str
        Who grows forests on them.
    closest : float
        Values that are less than this apart are equal to them, and so are all above 1e30.
    """
    if sparse.issparse(features) or features.size == 0:
        return
    with np.errstate(all="ignore"):
        low, high = (end.reduce(features, axis=0) for end in (np.fmin, np.fmax))
        size, spread = np.fmax(-low, high), high - low
        # A constant that was computed varies too, by rounding.
        lost = (spread < closest) & (spread > _ROUNDING * size)
        for j in np.flatnonzero(size > _LARGEST_IN_TREES):
            lost[j] = np.nanmedian(np.abs(features[:, j])) > _LARGEST_IN_TREES
    if lost.any():
        warnings.warn(
            f"{caller}: forests cannot tell the values of {_numbered(np.flatnonzero(lost))} of X "
            f"apart, which are less than {closest:g} apart or above {_LARGEST_IN_TREES:g}. "
            "Multiply such columns by a constant, here and for new items.",
            HetcalWarning,
            stacklevel=levels_to_caller(),
        )


def _numbered(columns: NDArray[np.int64]) -> str:
    shown = ", ".join(map(str, columns[:5]))
    more = f" and {len(columns) - 5} more" if len(columns) > 5 else ""
    return f"column{'s' if len(columns) > 1 else ''} {shown}{more} (counted from 0)"


def check_finite_numeric(matrix: NDArray[np.float64]) -> None:
    """Raise when a feature is infinite (missing values are a matter of the method)."""
    infinite = np.isinf(matrix)
    if infinite.any():
        where = np.argwhere(infinite)[0]
        place = f" in row {where[0]}, column {where[1]}" if where.shape[0] == 2 else ""
        raise ValueError(
            f"X contains infinity{place} ({int(infinite.sum())} such values; Input contains NaN or "
            "infinity). Clip such values or mark them as missing (NaN)."
        )


def _numeric_array(X: Any) -> NDArray[np.float64]:
    array = rows_and_columns(X)
    if array.dtype.kind in "USO" and any(isinstance(v, str) for v in array.ravel()[:100_000]):
        example = next(str(v) for v in array.ravel() if isinstance(v, str))
        raise ValueError(
            f"X is an array with text such as {example!r}, which has no encoding. Pass a pandas or "
            "polars table with categorical columns, or encode the text as numbers."
        )
    _refuse_other_numbers(array.dtype)
    try:
        matrix = np.asarray(array, dtype=np.float64, order="C")
    except TypeError as error:
        raise TypeError(f"X holds objects that are not numbers: {error}. Encode them.") from error
    check_finite_numeric(matrix)
    return matrix


def _refuse_other_numbers(dtype: np.dtype) -> None:
    """Raise for types that NumPy makes numbers of by leaving something out."""
    refuse_complex(dtype)
    if dtype.kind in "mM":
        raise TypeError(f"X is an array of {dtype}, which has no encoding. {_NO_DATES}")


def refuse_complex(dtype: Any) -> None:
    """Raise for complex numbers, of which NumPy would leave out a part."""
    if getattr(dtype, "kind", "") == "c":
        raise ValueError(
            "Complex data not supported: X holds complex numbers. Pass their parts as columns, "
            "e.g. numpy.hstack([X.real, X.imag])."
        )


def rows_and_columns(X: Any) -> NDArray:
    """Return what is no table as an array with a row per item, or say why it is none."""
    array = np.asarray(masked_as_missing(X))
    if array.ndim == 1 and array.size and isinstance(array[0], str):
        raise ValueError(
            f"Expected 2D array for X, got {len(array)} texts such as {str(array[0])[:60]!r}. "
            "Turn each text into numbers first: an embedding, or TF-IDF "
            "(sklearn.feature_extraction.text.TfidfVectorizer) and TruncatedSVD(50), fitted once "
            "and used for new items too."
        )
    if array.ndim > 2:
        raise ValueError(
            f"Expected 2D array for X, got an array of shape {array.shape}. For one row per item "
            "with all its numbers side by side, pass X.reshape(len(X), -1)."
        )
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array for X, got an array of shape {array.shape}. Reshape your data with "
            "X.reshape(-1, 1) if it has a single feature or X.reshape(1, -1) if it is one item."
        )
    refuse_empty(array.shape)
    return array


def _float_columns(frame: nw.DataFrame) -> NDArray[np.float64]:
    """Return columns together: a vector has hundreds, which one by one take far longer."""
    matrix = frame.to_numpy()
    if matrix.dtype == np.float64:
        return matrix
    # Some kinds of columns show missing values as objects.
    return np.hstack([_numeric_column(column) for column in frame.iter_columns()])


def _numeric_column(column: nw.Series) -> NDArray[np.float64]:
    if column.is_null().all():  # of whatever type: it says nothing
        return np.full((len(column), 1), np.nan)
    if not (column.dtype.is_numeric() or column.dtype in (nw.Boolean, nw.Object)):
        raise ValueError(
            f"Column {column.name!r} of X was empty or numeric at fit and is {column.dtype} now. "
            "Convert it to numbers; if it was empty, nothing was learned from it: pass it empty "
            "again, or fit with its values or without it."
        )
    values = pd.to_numeric(pd.Series(column.to_numpy()), errors="raise")
    return values.to_numpy(dtype=np.float64, na_value=np.nan)[:, None]


def _column_medians(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    known = ~np.isnan(matrix)
    filled = np.where(known.any(axis=0), matrix, 0.0)
    return np.nanmedian(filled, axis=0)


def _told(column: nw.Series) -> Any:
    """Return the type of a column, by the library's own name where narwhals knows none."""
    return column.to_native().dtype if column.dtype == nw.Unknown else column.dtype


def refuse_numbers_as_text(name: str, levels: list) -> None:
    """Raise where text holds numbers, with a decimal point or a decimal comma."""
    column = f"X[{name!r}]"
    for sign, remedy in (
        (".", f"pandas.to_numeric({column})"),
        (",", f"pandas.to_numeric({column}.str.replace(',', '.'))"),
    ):
        if all(is_number(str(level).replace(sign, ".")) for level in levels):
            raise ValueError(
                f"Column {name!r} of X has no encoding: it holds numbers as text, such as "
                f"{levels[0]!r}. Turn it into numbers, e.g. {remedy}."
            )


def _sorted_levels(values: NDArray) -> list:
    present = values[~np.asarray(pd.isna(values))]
    return sorted(set(present.tolist()), key=lambda level: (str(type(level)), level))


def _string_names(frame: nw.DataFrame) -> NDArray | None:
    names = list(frame.columns)
    return np.array(names, dtype=object) if all(isinstance(n, str) for n in names) else None


def refuse_empty(shape: tuple[int, ...]) -> None:
    """Raise when there is no row or no column."""
    if shape[0] == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required: "
            "X is empty. Pass at least one row."
        )
    if shape[1] == 0:
        raise ValueError(
            f"0 feature(s) (shape={shape}) while a minimum of 1 is required: X has no columns. "
            "Pass at least one feature."
        )
