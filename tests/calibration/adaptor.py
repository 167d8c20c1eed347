"""An array calibrator as a classifier with ``fit(X, y)``, for scikit-learn's estimator checks."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from hetcal._validation import check_labels, check_sample_weight
from hetcal._validation.containers import as_array, as_float_array
from hetcal.calibration.base import GlobalCalibrator


class CalibratorAsClassifier(ClassifierMixin, BaseEstimator):
    """Feed a calibrator the softmax of minus the squared distance to each class's mean.

    The adaptor checks nothing that the calibrator should check itself: a NaN in ``X`` reaches it as
    NaN in ``X`` and in the logits. It only counts columns, since global calibrators ignore ``X``.
    """

    def __init__(self, calibrator=None, kind="y_proba", random_state=None):
        self.calibrator = calibrator
        self.kind = kind
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        X = self._as_table(X, reset=True)
        if y is not None:
            y = column_or_1d(as_array(y, "y"), warn=True)
            codes, classes = check_labels(y)
            weight = check_sample_weight(sample_weight, codes.shape[0])
            if _numbers(X).shape[0] == codes.shape[0]:
                self.means_ = _class_means(_numbers(X), codes, classes.shape[0], weight)
        calibrator = clone(self.calibrator)
        if "random_state" in calibrator.get_params() and self.random_state is not None:
            calibrator.set_params(random_state=self.random_state)
        options = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.calibrator_ = calibrator.fit(X, y, **self._output(X), **options)
        self.classes_ = self.calibrator_.classes_
        return self

    def predict_proba(self, X):
        check_is_fitted(self, "calibrator_")
        X = self._as_table(X, reset=False)
        return self.calibrator_.predict_proba(X, **self._output(X))

    def predict(self, X):
        Q = self.predict_proba(X)
        return self.classes_[Q.argmax(axis=1)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        by_features = not isinstance(self.calibrator, GlobalCalibrator)
        tags.input_tags.sparse = not by_features or get_tags(self.calibrator).input_tags.sparse
        return tags

    def _as_table(self, X, *, reset):
        X = X if sparse.issparse(X) or hasattr(X, "columns") else np.asarray(X)
        if X.ndim != 2:
            raise ValueError("Expected 2D array for X. Reshape your data.")
        if X.shape[1] == 0:
            raise ValueError(f"0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
        validate_data(self, X, reset=reset, skip_check_array=True)
        return X

    def _output(self, X):
        numbers = _numbers(X)
        if not hasattr(self, "means_"):
            return {self.kind: np.full((numbers.shape[0], 2), 0.5)}
        with np.errstate(invalid="ignore"):
            logits = -((numbers[:, None, :] - self.means_) ** 2).sum(axis=2)
            return {self.kind: logits if self.kind == "logits" else softmax(logits, axis=1)}


def _numbers(X):
    return as_float_array(X.toarray() if sparse.issparse(X) else X, "X")


def _class_means(X, codes, n_classes, weight):
    """Return weighted means; of a class without weight the plain mean."""
    means = np.empty((n_classes, X.shape[1]))
    with np.errstate(invalid="ignore"):
        for k in range(n_classes):
            of_class = codes == k
            w = weight[of_class] if weight[of_class].any() else np.ones(of_class.sum())
            means[k] = w @ X[of_class] / w.sum()
    return means
