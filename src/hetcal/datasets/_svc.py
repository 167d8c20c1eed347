"""Support vector machine with Platt probabilities, also where scikit-learn no longer has it.

`sklearn.svm.SVC(probability=True)`, which the paper uses, is deprecated since scikit-learn 1.9 and
leaves in 1.11. `PlattSVC` uses it while it is there, and otherwise does the same itself: for every
pair of classes, decision values from a five-fold cross-validation, a sigmoid fitted to them with
Platt's targets, and the pairwise probabilities coupled into one vector (Wu, Lin and Weng 2004,
second method). The folds are drawn from the same random numbers as libsvm's, so both give the
same probabilities to about 1e-6.
"""

from __future__ import annotations

import inspect
import warnings
from itertools import combinations, pairwise

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.svm import SVC
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

__all__ = ["PlattSVC"]

N_FOLDS = 5
SMALLEST_PAIRWISE = 1e-7


def _sklearn_has_probability() -> bool:
    return "probability" in inspect.signature(SVC).parameters


class PlattSVC(ClassifierMixin, BaseEstimator):
    """Support vector classifier with probabilities by Platt's method.

    Parameters
    ----------
    C : float, default 1.0
        Inverse strength of the regularisation.
    kernel : {"linear", "rbf", "poly", "sigmoid"}, default "rbf"
        Kernel.
    gamma : {"scale", "auto"} or float, default "scale"
        Kernel coefficient.
    random_state : int, RandomState or None
        Draws the folds.
    backend : {"auto", "sklearn", "own"}, default "auto"
        ``"auto"`` takes scikit-learn's where it exists.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    n_features_in_ : int
        Columns seen by `fit`.
    """

    def __init__(self, *, C=1.0, kernel="rbf", gamma="scale", random_state=None, backend="auto"):
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.random_state = random_state
        self.backend = backend

    def fit(self, X, y):
        """Fit the machine and its sigmoids.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self
        """
        if self.backend not in ("auto", "sklearn", "own"):
            raise ValueError(
                f"PlattSVC: backend must be 'auto', 'sklearn' or 'own'; got {self.backend!r}."
            )
        X, y = validate_data(self, X, y, dtype=np.float64)
        use_sklearn = self.backend == "sklearn" or (
            self.backend == "auto" and _sklearn_has_probability()
        )
        options = {"C": self.C, "kernel": self.kernel, "gamma": self.gamma}
        if use_sklearn:
            # The deprecation is known, and this class is the answer to it.
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", category=FutureWarning, message=".*probability.*")
                self.machine_ = SVC(
                    probability=True, random_state=self.random_state, **options
                ).fit(X, y)
            self.sigmoids_ = None
        else:
            self.machine_ = SVC(decision_function_shape="ovo", **options).fit(X, y)
            self.sigmoids_ = self._fit_sigmoids(X, y)
        self.classes_ = self.machine_.classes_
        return self

    def _fit_sigmoids(self, X, y) -> np.ndarray:
        """Slope and intercept for each pair of classes, shape (n_pairs, 2)."""
        seed = check_random_state(self.random_state).randint(np.iinfo("i").max)
        # gamma="scale" means the scale of all of X, in every fold and pair.
        by_name = {"scale": 1 / (X.shape[1] * (X.var() or 1.0)), "auto": 1 / X.shape[1]}
        gamma = by_name[self.gamma] if isinstance(self.gamma, str) else self.gamma
        template = SVC(C=self.C, kernel=self.kernel, gamma=gamma)
        sigmoids = []
        for first, second in combinations(self.machine_.classes_, 2):
            rows = np.concatenate([np.flatnonzero(y == first), np.flatnonzero(y == second)])
            sign = np.where(y[rows] == first, 1, -1)
            decisions = _held_out_decisions(template, X[rows], sign, seed)
            sigmoids.append(_fit_sigmoid(decisions, sign))
        return np.array(sigmoids)

    def predict(self, X):
        """Labels by the machine's own vote, which need not be the likeliest class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self.machine_.predict(validate_data(self, X, dtype=np.float64, reset=False))

    def predict_proba(self, X):
        """Probabilities, columns in the order of ``classes_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        if self.sigmoids_ is None:
            return self.machine_.predict_proba(X)
        n_classes = len(self.classes_)
        decisions = self.machine_.decision_function(X)
        if n_classes == 2:
            # scikit-learn counts the second class as positive for two classes, the first for pairs.
            decisions = -decisions[:, None]
        slope, intercept = self.sigmoids_.T
        smallest = SMALLEST_PAIRWISE
        R_pairs = np.clip(expit(-(slope * decisions + intercept)), smallest, 1 - smallest)
        R = np.zeros((len(X), n_classes, n_classes))
        for column, (i, j) in enumerate(combinations(range(n_classes), 2)):
            R[:, i, j] = R_pairs[:, column]
            R[:, j, i] = 1 - R_pairs[:, column]
        return _couple(R)


def _held_out_decisions(template: SVC, X: np.ndarray, sign: np.ndarray, seed: int) -> np.ndarray:
    """Decision value of each row from a machine that did not see it, first class positive."""
    order = _libsvm_permutation(len(X), seed)
    bounds = np.arange(N_FOLDS + 1) * len(X) // N_FOLDS
    decisions = np.empty(len(X))
    for start, stop in pairwise(bounds):
        held_out = order[start:stop]
        kept = np.concatenate([order[:start], order[stop:]])
        if len(held_out) == 0:
            continue
        seen = np.unique(sign[kept])
        if len(seen) < 2:
            decisions[held_out] = seen[0] if len(seen) else 0.0
        else:
            machine = SVC(**template.get_params()).fit(X[kept], sign[kept])
            decisions[held_out] = machine.decision_function(X[held_out])
    return decisions


def _libsvm_permutation(n: int, seed: int) -> np.ndarray:
    """Random order of n items as libsvm draws it inside scikit-learn.

    A Fisher-Yates shuffle whose bounded integers are the high half of (32 random bits) * bound,
    with the usual rejection of the few values that would bias it.
    """
    bits = np.random.RandomState(seed)
    order = np.arange(n)
    for i in range(n):
        bound = n - i
        while True:
            product = int(bits.randint(0, 2**32, dtype=np.uint32)) * bound
            if product % 2**32 >= 2**32 % bound:
                break
        j = i + (product >> 32)
        order[i], order[j] = order[j], order[i]
    return order


def _fit_sigmoid(decisions: np.ndarray, sign: np.ndarray) -> tuple[float, float]:
    """Maximum likelihood of 1 / (1 + exp(a d + b)) with Platt's smoothed targets."""
    n_positive = np.count_nonzero(sign > 0)
    n_negative = len(sign) - n_positive
    target = np.where(sign > 0, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))

    def loss(ab):
        t = ab[0] * decisions + ab[1]
        # -log likelihood, written so that neither exponential overflows
        value = np.logaddexp(0, t) - (1 - target) * t
        slope = expit(t) - (1 - target)
        return value.sum(), np.array([(slope * decisions).sum(), slope.sum()])

    start = np.array([0.0, np.log((n_negative + 1) / (n_positive + 1))])
    result = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-6})
    return tuple(result.x)


def _couple(R: np.ndarray) -> np.ndarray:
    """Class probabilities from pairwise ones, r_ij = P(i | i or j, x).

    Minimises sum_ij (r_ji p_i - r_ij p_j)^2 over the simplex by the fixed-point iteration of Wu,
    Lin and Weng, to libsvm's own tolerance. That is loose (for two classes p moves by up to 0.004
    where the exact answer is simply r_12), and the published figures have it in them.
    """
    n, K, _ = R.shape
    Q = -R.transpose(0, 2, 1) * R
    Q[:, np.arange(K), np.arange(K)] = (R**2).sum(axis=1)
    P = np.full((n, K), 1 / K)
    active = np.arange(n)
    for _ in range(max(100, K)):
        q, p = Q[active], P[active]
        Qp = np.einsum("nij,nj->ni", q, p)
        pQp = (p * Qp).sum(axis=1)
        unsettled = np.abs(Qp - pQp[:, None]).max(axis=1) >= 0.005 / K
        if not unsettled.any():
            break
        active, q, p, Qp, pQp = (part[unsettled] for part in (active, q, p, Qp, pQp))
        for t in range(K):
            step = (pQp - Qp[:, t]) / q[:, t, t]
            p[:, t] += step
            pQp = (pQp + step * (step * q[:, t, t] + 2 * Qp[:, t])) / (1 + step) ** 2
            Qp = (Qp + step[:, None] * q[:, t]) / (1 + step)[:, None]
            p /= (1 + step)[:, None]
        P[active] = p
    return P
