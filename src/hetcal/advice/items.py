"""The user's calibration items, checked once and cut into parts many times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils import _safe_indexing

from hetcal._validation import (
    check_columns_match_classes,
    check_groups,
    check_labels,
    check_logits,
    check_one_kind,
    check_proba,
    check_proba_names,
    check_same_rows,
    check_sample_weight,
    check_two_classes,
    warn_column_order,
)

Matrix = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CalibrationItems:
    """Features as they were given, labels, and the classifier's output on the same rows.

    Attributes
    ----------
    X : table, array, sparse matrix or None
        As given, so that every method encodes it in its own way.
    codes : ndarray of shape (n,)
        Labels as columns of ``output``.
    classes : ndarray of shape (K,)
    kind : {"y_proba", "logits"}
    output : ndarray of shape (n, K)
        Probabilities or logits.
    weight : ndarray of shape (n,) or None
        None where no weights were given.
    groups : ndarray of shape (n,) or None
        Group numbers.
    """

    X: Any
    codes: Rows
    classes: NDArray
    kind: str
    output: Matrix
    weight: Matrix | None = None
    groups: Rows | None = None

    @classmethod
    def check(
        cls,
        X: Any,
        y: Any,
        *,
        y_proba: Any = None,
        logits: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        caller: str = "compare",
    ) -> Self:
        """Return checked items, or say what is wrong with them and what to do."""
        kind = check_one_kind(y_proba, logits, caller=caller)
        given = y_proba if kind == "y_proba" else logits
        n = check_same_rows(X=X, y=y, **{kind: given})
        if n < 2:
            raise ValueError(
                f"{caller} got a single row; it learns from some items and tests on others. "
                "Pass at least two items of each class, better a hundred."
            )
        codes, order = check_labels(y, classes)
        if classes is None:
            check_two_classes(codes, order)
        output = check_proba(given) if kind == "y_proba" else check_logits(given)
        check_columns_match_classes(output.shape[1], order, name=kind, given=classes is not None)
        check_proba_names(given, order, name=kind)
        weight = None if sample_weight is None else check_sample_weight(sample_weight, n)
        check_two_classes(codes, order, weight)
        items = cls(X, codes, order, kind, output, weight, check_groups(groups, n))
        warn_column_order(codes, items.proba, order, name=kind, weight=weight, groups=items.groups)
        return items

    @property
    def n_items(self) -> int:
        """Number of rows."""
        return self.codes.shape[0]

    @property
    def labels(self) -> NDArray:
        """Labels as the user writes them."""
        return self.classes[self.codes]

    @property
    def proba(self) -> Matrix:
        """The classifier's probabilities."""
        return self.output if self.kind == "y_proba" else softmax(self.output, axis=1)

    @property
    def weights(self) -> Matrix:
        """Weights, all one where none were given."""
        return np.ones(self.n_items) if self.weight is None else self.weight

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """Classes that no item has, shape (K,)."""
        return np.bincount(self.codes, minlength=self.classes.shape[0]) == 0

    def features(self, rows: Rows) -> Any:
        """Return some rows of X, in its own container."""
        return None if self.X is None else _safe_indexing(self.X, rows)

    def output_of(self, rows: Rows) -> dict[str, Matrix]:
        """Return the classifier's output on some rows, as the argument that calibrators take."""
        return {self.kind: self.output[rows]}
