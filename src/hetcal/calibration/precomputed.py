"""A classifier that reads its probabilities from columns of the table: for logs of any model."""

from __future__ import annotations

from typing import Any, Self

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from hetcal._stored import expect, stored
from hetcal._stored.fields import (
    MOST_FEATURES,
    column_names,
    flag,
    in_range,
    labels,
    list_of,
    one_of,
    whole,
)
from hetcal._threads import ThreadSafe
from hetcal._typing import Matrix
from hetcal._validation import (
    check_columns_match_classes,
    check_labels,
    check_logits,
    check_proba,
    check_same_rows,
    check_two_classes,
)
from hetcal._validation.containers import as_array, as_frame, masked_as_missing
from hetcal.calibration.class_columns import NamedColumns


@stored(
    {
        "n_features_in_": whole(1, MOST_FEATURES),
        "kind": one_of("proba", "logits"),
        "classes_": labels,
        "columns_": list_of(whole(0, MOST_FEATURES)),
        "feature_columns_": list_of(whole(0, MOST_FEATURES)),
        "feature_names_in_": column_names,
        "_flip": flag,
    },
    may_lack=("feature_names_in_",),
)
class PrecomputedProba(ThreadSafe, ClassifierMixin, BaseEstimator):
    """Classifier whose probabilities stand in columns of ``X``; nothing is trained.

    It makes the log of any model, wherever that model runs, fit for
    :class:`~hetcal.calibration.wrapper.LocallyCalibratedClassifier` and for scikit-learn's scorers:
    some columns of ``X`` hold the probabilities, all others are features. The wrapper judges
    similarity by those other columns only.

    Parameters
    ----------
    columns : str, int, or sequence of these, optional
        Where the probabilities stand. A string with ``*`` or ``?`` is a pattern: ``"p_*"`` takes
        every column of that form, and what the ``*`` stands for is the name of the class. A
        sequence names the columns, or numbers them (from 0). A single column is the probability of
        one of two classes: the second one, unless the column's name ends with the name of a class.
        None takes the first columns, one per class.
    classes : array-like, optional
        The class of each column, in the order of ``columns``. Needed where the names of the columns
        do not end with the names of the classes. Numbered columns without ``classes`` are taken in
        the sorted order of the labels.
    kind : {"proba", "logits"}, default="proba"
        What the columns hold. Never guessed from the values.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes in sorted order: the order of the columns of :meth:`predict_proba`, whatever
        their order in ``X``.
    columns_ : list of int
        Position in ``X`` of the column of each class (a single position for a single column).
    feature_columns_ : list of int
        Positions of all other columns.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of str
        Their names, where ``X`` has names.

    Examples
    --------
    >>> import pandas as pd
    >>> log = pd.DataFrame({"age": [31, 58, 44], "p_yes": [0.9, 0.2, 0.6], "p_no": [0.1, 0.8, 0.4]})
    >>> model = PrecomputedProba("p_*").fit(log, ["yes", "no", "no"])
    >>> model.classes_
    array(['no', 'yes'], dtype='<U3')
    >>> model.predict_proba(log)
    array([[0.1, 0.9],
           [0.8, 0.2],
           [0.4, 0.6]])
    >>> model.features(log)
       age
    0   31
    1   58
    2   44
    """

    def __init__(self, columns: Any = None, classes: Any = None, *, kind: str = "proba"):
        self.columns = columns
        self.classes = classes
        self.kind = kind

    def fit(self, X: Any, y: Any) -> Self:
        """Find the columns, match them with the classes, and check what they hold.

        Parameters
        ----------
        X : table or array of shape (n, n_columns)
            The log, without the label.
        y : array-like of shape (n,)
            Observed labels: they fix the type of the classes, nothing is learnt from them.

        Returns
        -------
        self
        """
        if self.kind not in ("proba", "logits"):
            raise ValueError(f"kind must be 'proba' or 'logits'; got {self.kind!r}.")
        X = self._checked_table(X, reset=True)
        if y is None:
            raise ValueError(
                "PrecomputedProba.fit requires y to be passed, but the target y is None. "
                "Pass the observed labels."
            )
        codes, labels = check_labels(column_or_1d(as_array(y, "y"), warn=True))
        check_same_rows(X=X, y=codes)
        if self.classes is None:
            check_two_classes(codes, labels)
        table = NamedColumns(_column_names(X), int(X.shape[1]))
        places, order = self._find(table, labels)
        by_class = np.argsort(order, kind="stable")
        self.columns_ = [places[0]] if len(places) == 1 else [places[k] for k in by_class]
        self._flip = len(places) == 1 and by_class[0] == 1
        self.classes_ = order[by_class]
        self.feature_columns_ = [j for j in range(table.width) if j not in set(places)]
        self._read_checked(X)
        return self

    def read(self, X: Any) -> Matrix:
        """Return what the columns hold, probabilities or logits, one column per class."""
        check_is_fitted(self)
        return self._read_checked(self._checked_table(X, reset=False))

    def features(self, X: Any) -> Any:
        """Return ``X`` without the columns that were read, in the same container."""
        check_is_fitted(self)
        return _take_columns(self._checked_table(X, reset=False), self.feature_columns_)

    def predict_proba(self, X: Any) -> Matrix:
        """Return the probabilities, one column per class of ``classes_``."""
        scores = self.read(X)
        return softmax(scores, axis=1) if self.kind == "logits" else scores

    def predict(self, X: Any) -> NDArray:
        """Return the most probable class of each row."""
        scores = self.read(X)
        return self.classes_[scores.argmax(axis=1)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # It repeats what another model said, however poor.
        tags.classifier_tags.poor_score = True
        return tags

    def _checked_table(self, X: Any, *, reset: bool) -> Any:
        if sparse.issparse(X):
            raise TypeError(
                "X is sparse, but PrecomputedProba reads columns of a dense array or a table "
                "(Sparse data was passed). Pass X.toarray()."
            )
        if as_frame(X) is None:
            X = np.asarray(masked_as_missing(X))
            if X.ndim != 2:
                raise ValueError(
                    f"Expected 2D array for X, got an array of shape {X.shape}. Reshape your data "
                    "with X.reshape(1, -1) if it is a single row."
                )
        validate_data(self, X, reset=reset, skip_check_array=True)
        if 0 in X.shape:
            what = "sample(s)" if X.shape[0] == 0 else "feature(s)"
            raise ValueError(
                f"X is empty: 0 {what} (shape={X.shape}) while a minimum of 1 is required. "
                "Pass at least one row with its probabilities."
            )
        return X

    def _find(self, table: NamedColumns, labels: NDArray) -> tuple[list[int], NDArray]:
        """Return the columns' positions and the class of each (of a single one: both classes)."""
        given = self.classes is not None
        if self.columns is None:
            places = table.first(len(self.classes) if given else labels.shape[0])
        else:
            places = table.find(self.columns)
        if given:
            order = check_labels(labels, self.classes)[1]
        else:
            order = table.classes_of(self.columns, places, labels)
        n_columns = 2 if len(places) == 1 else len(places)
        check_columns_match_classes(n_columns, order, name="columns", given=given)
        check_labels(labels, order)
        return places, order

    def _read_checked(self, X: Any) -> Matrix:
        values = as_array(_take_columns(X, self.columns_), "X")
        if self.kind == "proba":
            scores = check_proba(
                values, name="the probability columns", if_logits="pass kind='logits'"
            )
        else:
            scores = check_logits(values, name="the logit columns")
        return scores[:, ::-1] if self._flip else scores

    def _check_restored(self) -> None:
        for name in ("columns_", "feature_columns_"):
            places = np.array(getattr(self, name), dtype=np.int64)
            expect(in_range(places, 0, self.n_features_in_), self, f"has wrong {name}")
        expect(len(self.columns_) in (1, len(self.classes_)), self, "reads too few columns")


def _column_names(X: Any) -> list[str] | None:
    frame = as_frame(X)
    return None if frame is None else [str(name) for name in frame.columns]


def _take_columns(X: Any, places: list[int]) -> Any:
    frame = as_frame(X)
    if frame is None:
        return X[:, places]
    return nw.to_native(frame[:, places])
