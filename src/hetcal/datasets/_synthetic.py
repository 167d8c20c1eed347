"""Synthetic data whose P(y | x) is known, with a dial for each thing that can be wrong.

The law, for an item x = (x0, x1, x2, signal features, noise features):

- The black box sees the signal features only. They give logits z, and the *homogeneous truth*
  h = softmax(z).
- ``miscalibration`` m makes the black box over-confident: p = softmax((1 + m) z), so that
  h = softmax(log p / (1 + m)) is a function of p, which a global map can find.
- ``heterogeneity`` moves the truth away from h by an effect e in [-1, 1] that depends on x0, x1, x2
  only, which the black box does not see: P(y | x) = h + heterogeneity * e * min(h_a, h_b) *
  (unit vector a - unit vector b), with a and b the two likeliest classes (a the one of higher
  number). Since x0, x1, x2 are independent of p and E[e] = 0, E[P(y | x) | p] = h exactly: at every
  p there are items above and items below, and no map of p alone can tell them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.fft import dct
from scipy.special import softmax
from sklearn.utils import check_random_state

__all__ = ["HiddenHeterogeneityLaw", "SyntheticDataset", "make_hidden_heterogeneity"]

N_GROUP_FEATURES = 3
N_CODES = 4
_PATTERNS = ("rules", "smooth")
_RULES = {
    1: "x0 > 0 and x1 <= 0.5",
    2: "x0 <= 0 and x2 <= 2",
}


@dataclass(frozen=True)
class HiddenHeterogeneityLaw:
    """The law that the items follow; see `make_hidden_heterogeneity` for the parameters.

    Every probability is a function of X alone, so the truth is known for any item, drawn or not.
    """

    n_classes: int = 2
    n_features: int = 6
    heterogeneity: float = 0.5
    miscalibration: float = 0.0
    n_noise_features: int = 0
    imbalance: float = 0.0
    signal: float = 3.0
    pattern: str = "rules"
    classes: tuple | None = None

    def __post_init__(self) -> None:
        least = N_GROUP_FEATURES + (1 if self.n_classes == 2 else 2)
        _require(self.n_classes >= 2, "n_classes", "at least 2", self.n_classes)
        _require(
            self.n_features >= least,
            "n_features",
            f"at least {least} for {self.n_classes} classes (3 that define the sub-populations, "
            "the others seen by the black box)",
            self.n_features,
        )
        _require(0 <= self.heterogeneity <= 1, "heterogeneity", "in [0, 1]", self.heterogeneity)
        _require(self.miscalibration > -1, "miscalibration", "above -1", self.miscalibration)
        _require(self.n_noise_features >= 0, "n_noise_features", "0 or more", self.n_noise_features)
        _require(0 <= self.imbalance < 1, "imbalance", "in [0, 1)", self.imbalance)
        _require(self.signal >= 0, "signal", "0 or more", self.signal)
        _require(self.pattern in _PATTERNS, "pattern", f"one of {_PATTERNS}", self.pattern)
        if self.classes is not None:
            distinct = len(set(self.classes))
            _require(
                distinct == len(self.classes) == self.n_classes,
                "classes",
                f"{self.n_classes} different labels",
                self.classes,
            )

    @property
    def feature_names(self) -> tuple[str, ...]:
        """x0, x1, ...; noise features last."""
        return tuple(f"x{j}" for j in range(self.n_features + self.n_noise_features))

    @property
    def subgroups(self) -> dict[int, str]:
        """The rule that defines each hidden sub-population; group 0 is everyone else."""
        if self.pattern == "rules":
            return dict(_RULES)
        return {1: "x0 > 0", 2: "x0 <= 0"}

    @property
    def labels(self) -> np.ndarray:
        """Class labels in the column order of every probability matrix."""
        return np.arange(self.n_classes) if self.classes is None else np.asarray(self.classes)

    @cached_property
    def _weights(self) -> np.ndarray:
        """Logits per unit of the signal features, shape (n_signal, n_classes)."""
        K, n_signal = self.n_classes, self.n_features - N_GROUP_FEATURES
        # A real Fourier basis over the classes, in (cos, sin) pairs: a cyclic shift of the classes
        # is then a rotation of the Gaussian signal, so no class is favoured.
        angles = 2 * np.pi * np.arange(K) / K
        n_pairs = min((K - 1) // 2, n_signal // 2)
        waves = [wave(m * angles) for m in range(1, n_pairs + 1) for wave in (np.cos, np.sin)]
        if K % 2 == 0 and len(waves) < n_signal:
            waves.append(np.cos(np.pi * np.arange(K)) / np.sqrt(2))
        basis = np.array(waves)
        # All columns have one length; scaled so, the difference of two classes' logits has standard
        # deviation `signal` when the basis is full.
        basis *= self.signal * np.sqrt((K - 1) / (2 * K)) / np.linalg.norm(basis[:, 0])
        # Spread over all signal features by orthonormal rows, so that each of them matters.
        spread = dct(np.eye(n_signal), norm="ortho")[:, : len(waves)]
        return spread @ basis

    def _split(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        X = np.asarray(X, dtype=float)
        return X[:, :N_GROUP_FEATURES], X[:, N_GROUP_FEATURES : self.n_features]

    def _logits(self, X: np.ndarray) -> np.ndarray:
        _, signal = self._split(X)
        tilt = np.arange(self.n_classes) * np.log1p(-self.imbalance)
        return signal @ self._weights + tilt

    def group(self, X: np.ndarray) -> np.ndarray:
        """Hidden sub-population of each item: 1 above, 2 below, 0 as stated."""
        x0, x1, x2 = self._split(X)[0].T
        if self.pattern == "smooth":
            return np.where(x0 > 0, 1, 2)
        return np.select([(x0 > 0) & (x1 <= 0.5), (x0 <= 0) & (x2 <= 2)], [1, 2], default=0)

    def effect(self, X: np.ndarray) -> np.ndarray:
        """Signed strength e in [-1, 1] of the hidden effect on each item; its mean is zero."""
        if self.pattern == "smooth":
            return np.sin(np.pi * self._split(X)[0][:, 0])
        return np.array([0.0, 1.0, -1.0])[self.group(X)]

    def black_box_proba(self, X: np.ndarray) -> np.ndarray:
        """Output of the black box, p = f(x), shape (n_samples, n_classes)."""
        return softmax((1 + self.miscalibration) * self._logits(X), axis=1)

    def recalibrated_proba(self, X: np.ndarray) -> np.ndarray:
        """h(p) = E[P(y | x) | p], the best that any map of p alone can do."""
        return softmax(self._logits(X), axis=1)

    def true_proba(self, X: np.ndarray) -> np.ndarray:
        """P(y | x)."""
        H = self.recalibrated_proba(X)
        if self.heterogeneity == 0:
            return H
        rows = np.arange(len(H))
        top_two = np.sort(np.argsort(H, axis=1, kind="stable")[:, -2:], axis=1)
        below, above = top_two.T
        shift = self.heterogeneity * self.effect(X) * np.minimum(H[rows, above], H[rows, below])
        P = H.copy()
        P[rows, above] += shift
        P[rows, below] -= shift
        return np.clip(P, 0.0, 1.0)  # rounding may leave -1e-18

    def sample(self, n_samples: int, random_state=None) -> SyntheticDataset:
        """Draw `n_samples` items and their labels."""
        _require(n_samples >= 1, "n_samples", "at least 1", n_samples)
        rng = check_random_state(random_state)
        X = np.column_stack(
            [
                rng.uniform(-1, 1, (n_samples, 2)),
                rng.randint(N_CODES, size=n_samples),
                rng.standard_normal((n_samples, self.n_features - N_GROUP_FEATURES)),
                rng.standard_normal((n_samples, self.n_noise_features)),
            ]
        )
        true = self.true_proba(X)
        # Inverse of the distribution function; the last class takes what rounding leaves.
        thresholds = np.cumsum(true, axis=1)[:, :-1]
        codes = (rng.uniform(size=(n_samples, 1)) >= thresholds).sum(axis=1)
        return SyntheticDataset(
            X=X,
            y=self.labels[codes],
            y_proba=self.black_box_proba(X),
            true_proba=true,
            recalibrated_proba=self.recalibrated_proba(X),
            group=self.group(X),
            law=self,
        )


@dataclass(frozen=True)
class SyntheticDataset:
    """Items drawn from a known law.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features + n_noise_features)
        Features. x0 and x1 are uniform on [-1, 1], x2 is a code 0, 1, 2 or 3; these three define
        the sub-populations. Then the standard normal features that the black box sees, then noise.
    y : ndarray of shape (n_samples,)
        Labels, drawn from `true_proba`.
    y_proba : ndarray of shape (n_samples, n_classes)
        p = f(x), what the black box says.
    true_proba : ndarray of shape (n_samples, n_classes)
        P(y | x).
    recalibrated_proba : ndarray of shape (n_samples, n_classes)
        h(p) = E[P(y | x) | p], the oracle of all global maps.
    group : ndarray of shape (n_samples,)
        Hidden sub-population: the keys of `subgroups`, 0 for everyone else.
    law : HiddenHeterogeneityLaw
        Gives all of this for any other X.
    """

    X: np.ndarray
    y: np.ndarray
    y_proba: np.ndarray
    true_proba: np.ndarray
    recalibrated_proba: np.ndarray
    group: np.ndarray
    law: HiddenHeterogeneityLaw

    @property
    def classes(self) -> np.ndarray:
        """Labels in the column order of the probabilities."""
        return self.law.labels

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of X."""
        return self.law.feature_names

    @property
    def subgroups(self) -> dict[int, str]:
        """The rule that defines each hidden sub-population."""
        return self.law.subgroups

    @property
    def true_global_gain(self) -> float:
        """Expected Brier score of p minus that of h(p): what a global map can repair."""
        return self.expected_brier(self.y_proba) - self.expected_brier(self.recalibrated_proba)

    @property
    def true_local_gain(self) -> float:
        """Expected Brier score of h(p) minus that of P(y | x): what only a local map can."""
        return self.expected_brier(self.recalibrated_proba) - self.expected_brier(self.true_proba)

    def expected_brier(self, Q: np.ndarray) -> float:
        """Brier score (sum over classes) of Q on these items, expected over their labels.

        It is the mean of 1 - 2 q . P + q . q, free of the noise of the labels drawn.
        """
        Q = np.asarray(Q, dtype=float)
        return float(np.mean(1 + (Q * (Q - 2 * self.true_proba)).sum(axis=1)))

    def sample(self, n_samples: int, random_state=None) -> SyntheticDataset:
        """Draw new items from the same law."""
        return self.law.sample(n_samples, random_state)

    def frame(self) -> pd.DataFrame:
        """X as a table, with the code x2 as a category."""
        table = pd.DataFrame(self.X, columns=list(self.feature_names))
        return table.assign(x2=table["x2"].astype(int).astype("category"))

    def __repr__(self) -> str:
        return f"SyntheticDataset(X={self.X.shape}, n_classes={self.law.n_classes}, law={self.law})"


def make_hidden_heterogeneity(
    n_samples: int = 1000,
    *,
    n_classes: int = 2,
    n_features: int = 6,
    heterogeneity: float = 0.5,
    miscalibration: float = 0.0,
    n_noise_features: int = 0,
    imbalance: float = 0.0,
    signal: float = 3.0,
    pattern: str = "rules",
    classes: Sequence | None = None,
    random_state=None,
) -> SyntheticDataset:
    """Draw items with a known P(y | x) and the output of a black box that may be wrong about it.

    Parameters
    ----------
    n_samples : int, default 1000
        Items.
    n_classes : int, default 2
        Classes.
    n_features : int, default 6
        Features that carry something: three (x0, x1, x2) that define the hidden sub-populations
        and that the black box does not see, and at least one (two for three classes or more) that
        it sees.
    heterogeneity : float in [0, 1], default 0.5
        0: P(y | x) is a function of p alone. 1: in the sub-populations the less likely of the two
        leading classes is either gone or twice as likely. E[P(y | x) | p] is the same at any value.
    miscalibration : float > -1, default 0.0
        The black box multiplies the logits of h(p) by 1 + miscalibration: over-confident above 0,
        under-confident below. With both dials at 0, P(y | x) = p exactly.
    n_noise_features : int, default 0
        Standard normal features that carry nothing, after the others.
    imbalance : float in [0, 1), default 0.0
        Each class's odds against the class before it are multiplied by 1 - imbalance. At 0 all
        classes are equally frequent.
    signal : float, default 3.0
        Standard deviation of the difference between two classes' logits in h (an average over pairs
        where there are fewer signal features than classes); 0 makes p constant.
    pattern : {"rules", "smooth"}, default "rules"
        ``"rules"``: group 1 is "x0 > 0 and x1 <= 0.5" (3/8 of the items, truth above p), group 2
        "x0 <= 0 and x2 <= 2" (3/8, below), group 0 the rest (as stated). ``"smooth"``: the effect
        is sin(pi x0).
    classes : sequence, optional
        Labels in column order; 0 .. n_classes - 1 if not given.
    random_state : int, RandomState or None
        Seed of the draw. The law itself does not depend on it.

    Returns
    -------
    SyntheticDataset

    Examples
    --------
    >>> from hetcal.datasets import make_hidden_heterogeneity
    >>> data = make_hidden_heterogeneity(1000, heterogeneity=0.8, random_state=0)
    >>> data.X.shape, data.y_proba.shape
    ((1000, 6), (1000, 2))
    >>> data.subgroups[1]
    'x0 > 0 and x1 <= 0.5'
    >>> data.true_global_gain == 0 < data.true_local_gain
    True
    >>> same_law = data.sample(5, random_state=1)
    >>> same_law.true_proba.shape
    (5, 2)
    """
    law = HiddenHeterogeneityLaw(
        n_classes=n_classes,
        n_features=n_features,
        heterogeneity=heterogeneity,
        miscalibration=miscalibration,
        n_noise_features=n_noise_features,
        imbalance=imbalance,
        signal=signal,
        pattern=pattern,
        classes=None if classes is None else tuple(classes),
    )
    return law.sample(n_samples, random_state)


def _require(holds: bool, name: str, expected: str, got: object) -> None:
    if not holds:
        raise ValueError(f"make_hidden_heterogeneity: {name} must be {expected}; got {got!r}.")
