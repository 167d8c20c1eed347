"""Venn-Abers calibration."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hetcal._stored import expect
from hetcal._stored.fields import list_of, numbers, probabilities, rising
from hetcal._typing import Matrix, Vector
from hetcal.calibration._shared import step_scores
from hetcal.calibration.base import GlobalCalibrator, stored_map
from hetcal.data import Folds, Scores
from hetcal.kernels.simplex import normalize_rows
from hetcal.kernels.venn_abers import VennAbersMap, apply_venn_abers, fit_venn_abers, merged


@stored_map(
    {
        "thresholds_": list_of(numbers(None)),
        "lower_": list_of(probabilities(None)),
        "upper_": list_of(probabilities(None)),
    }
)
class VennAbersCalibration(GlobalCalibrator):
    r"""Isotonic regression that counts the new item in, labelled either way.

    Fitted with the new item as a negative it says :math:`p_0`, as a positive :math:`p_1`; the
    interval between them has a guarantee of validity for any exchangeable items, its width says
    how much there is to learn from, and :math:`p_1 / (1 - p_0 + p_1)` is the probability returned.
    Never 0 or 1. With more than two classes each is fitted against the rest and the rows are
    normalised, which the guarantee does not survive.

    Parameters
    ----------
    n_folds : int, default=1
        1 is the inductive predictor. With more the items are dealt into so many parts, and the
        predictors of the parts are merged by geometric means (the cross predictor), which is
        smoother.
    classes : array-like of shape (K,), optional
        The classes in the column order of ``y_proba``.

    Attributes
    ----------
    thresholds_, lower_, upper_ : list of ndarray
        Steps of :math:`p_0` and :math:`p_1` by class and part; with two classes of the second.
    classes_ : ndarray of shape (K,)
        The classes, in the order of the columns.

    References
    ----------
    Vovk, Petej, Fedorova: Large-scale probabilistic predictors with and without guarantees of
    validity. NeurIPS 2015.

    Examples
    --------
    >>> y_proba = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6], [0.1, 0.9]]
    >>> calibrator = VennAbersCalibration().fit(None, [0, 0, 1, 0, 1], y_proba=y_proba)
    >>> calibrator.predict_venn_abers_pair(y_proba=[[0.1, 0.9]])
    (array([0.666...]), array([1.]))
    """

    def __init__(self, *, n_folds: int = 1, classes: Any = None):
        super().__init__(classes=classes)
        self.n_folds = n_folds

    def predict_venn_abers_pair(
        self, X: Any = None, *, y_proba: Any = None, logits: Any = None
    ) -> tuple[Vector, Vector]:
        r"""Return :math:`p_0` and :math:`p_1` of the second of two classes, means over the parts.

        Parameters
        ----------
        X : array-like or None
            Ignored.
        y_proba, logits : array-like of shape (n, 2)
            The classifier's output on the new items, of the same kind as at fit.
        """
        S = step_scores(self._new_scores(X, y_proba, logits), "log_odds")
        if S.shape[1] != 2:
            raise ValueError(
                "VennAbersCalibration.predict_venn_abers_pair: intervals are of two classes; "
                f"this calibrator has {S.shape[1]}. Use predict_proba, or fit one class against "
                "the rest."
            )
        lower, upper = zip(*self._ends(S[:, 1], self._maps()[0]), strict=True)
        return np.mean(lower, axis=0), np.mean(upper, axis=0)

    def _check_restored(self) -> None:
        super()._check_restored()
        n_maps = len(self._mapped(len(self.classes_))) * self._number_of_folds()
        lengths = {len(self.thresholds_), len(self.lower_), len(self.upper_)}
        expect(lengths == {n_maps}, self, "has not one map per class and part")
        for x, low, high in zip(self.thresholds_, self.lower_, self.upper_, strict=True):
            expect(len(low) == len(high) == len(x) + 1, self, "has odd steps")
            expect(rising(x, strictly=True), self, "has thresholds out of order")
            expect(bool((low <= high + 1e-9).all()), self, "has intervals upside down")

    def _fit_map(self, scores: Scores, codes: NDArray[np.int64], weight: Matrix) -> None:
        S = step_scores(scores, "log_odds")
        used = np.flatnonzero(weight > 0)
        folds = Folds.make(used.shape[0], self._number_of_folds(), seed=0)
        # Fewer items than parts: some parts are empty, and say nothing either way.
        parts = [used[folds.number == fold] for fold in range(self._number_of_folds())]
        maps = [
            fit_venn_abers(S[rows, k], (codes[rows] == k).astype(np.float64), weight[rows])
            for k in self._mapped(S.shape[1])
            for rows in parts
        ]
        self.thresholds_ = [fitted.thresholds for fitted in maps]
        self.lower_ = [fitted.lower for fitted in maps]
        self.upper_ = [fitted.upper for fitted in maps]

    def _apply_map(self, scores: Scores) -> Matrix:
        S = step_scores(scores, "log_odds")
        classes = self._mapped(S.shape[1])
        columns = [
            merged(self._ends(S[:, k], maps)) for k, maps in zip(classes, self._maps(), strict=True)
        ]
        if S.shape[1] == 2:
            return np.column_stack([1 - columns[0], columns[0]])
        return normalize_rows(np.column_stack(columns), scores.proba)

    def _maps(self) -> list[list[VennAbersMap]]:
        """Return the maps of every class."""
        maps = list(map(VennAbersMap, self.thresholds_, self.lower_, self.upper_))
        size = self._number_of_folds()
        return [maps[start : start + size] for start in range(0, len(maps), size)]

    @staticmethod
    def _ends(score: Vector, maps: list[VennAbersMap]) -> list[tuple[Vector, Vector]]:
        return [apply_venn_abers(fitted, score) for fitted in maps]

    @staticmethod
    def _mapped(n_classes: int) -> range:
        """Return the classes that have maps; of two the first is the mirror of the second."""
        return range(1 if n_classes == 2 else 0, n_classes)

    def _number_of_folds(self) -> int:
        if not isinstance(self.n_folds, Integral) or self.n_folds < 1:
            raise ValueError(
                f"VennAbersCalibration: n_folds must be an integer >= 1; got {self.n_folds!r}."
            )
        return int(self.n_folds)
