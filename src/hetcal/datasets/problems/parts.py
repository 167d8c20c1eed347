"""What the problems are made of: drafts of data, hidden effects, distributions, black boxes.

A problem's truth is P(y | x) = softmax(log H + strength * u(x) * direction): H is a function of p
alone, the direction (one number per class) is one too, and the hidden effect u is a function of
features that are independent of p. So E[y | p] is the mean of that softmax over the distribution of
u at a fixed p, whatever else the features tell about p.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy import special, stats
from scipy.linalg import eigh_tridiagonal
from scipy.sparse import csr_array

N_NODES = 16
_PPF: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "normal": special.ndtri,
    "uniform": lambda u: 4 * u - 2,
    "exponential": lambda u: -np.log1p(-u),
    "lognormal": lambda u: np.exp(2.5 * special.ndtri(u)),
    "cauchy": lambda u: np.tan(np.pi * (u - 0.5)),
    "coin": lambda u: (u > 0.5).astype(float),
    "tenth": lambda u: (u > 0.9).astype(float),
    "quarter": lambda u: (u > 0.75).astype(float),
}


def softmax(Z: np.ndarray) -> np.ndarray:
    """Rows of logits to rows of probabilities."""
    return special.softmax(Z, axis=-1)


def two(p: np.ndarray) -> np.ndarray:
    """Probabilities of both classes from that of the second."""
    return np.column_stack([1 - p, p])


def quantile_function(name: str) -> Callable[[np.ndarray], np.ndarray]:
    """Inverse distribution function by name; ``"levels:30"`` is a code from 0 to 29."""
    if name.startswith("levels:"):
        n_levels = int(name.removeprefix("levels:"))
        return lambda u: np.floor(n_levels * u)
    if name.startswith("zipf:"):
        n_levels = int(name.removeprefix("zipf:"))
        edges = np.cumsum(1 / np.arange(1, n_levels + 1))
        return lambda u: np.searchsorted(edges[:-1] / edges[-1], u).astype(float)
    return _PPF[name]


def gauss_rule(u: np.ndarray, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights that integrate polynomials of degree < 2 `n_nodes` as the mean over u does.

    Golub and Welsch's rule from the Lanczos recurrence of multiplication by u.
    """
    basis = np.zeros((n_nodes + 1, len(u)))
    basis[0] = 1 / np.sqrt(len(u))
    diagonal, beside = np.zeros(n_nodes), np.zeros(n_nodes)
    for k in range(n_nodes):
        step = u * basis[k]
        diagonal[k] = step @ basis[k]
        step -= basis[: k + 1].T @ (basis[: k + 1] @ step)
        beside[k] = np.linalg.norm(step)
        basis[k + 1] = step / beside[k]
    nodes, vectors = eigh_tridiagonal(diagonal, beside[:-1])
    return nodes, vectors[0] ** 2


@dataclass(frozen=True)
class Effect:
    """A hidden effect: features with their distributions, and a number u made of them.

    Attributes
    ----------
    features : tuple of str
        Distribution of each feature; they are independent of one another and of p.
    value : callable
        Takes the features as columns, returns u.
    """

    features: tuple[str, ...]
    value: Callable[..., np.ndarray]

    def at(self, U: np.ndarray) -> np.ndarray:
        """Features whose distribution functions take the values U, shape (n, n_features)."""
        return np.column_stack(
            [quantile_function(name)(u) for name, u in zip(self.features, U.T, strict=True)]
        )

    def u(self, features: np.ndarray) -> np.ndarray:
        """Compute the effect on each item."""
        return np.asarray(self.value(*features.T), dtype=float)

    @cached_property
    def distribution(self) -> tuple[np.ndarray, np.ndarray]:
        """Values of u and their probabilities: all of them if few, else a Gauss rule for them.

        From quasi-random points and their mirror images.
        """
        half = stats.qmc.Sobol(len(self.features), scramble=True, rng=1).random_base2(15)
        half = np.clip(half, 1e-9, 1 - 1e-9)
        u = self.u(self.at(np.vstack([half, 1 - half])))
        values, counts = np.unique(u.round(9), return_counts=True)
        if len(values) <= N_NODES:
            return values, counts / len(u)
        return gauss_rule(u, N_NODES)


@dataclass
class Draft:
    """Items before their labels are drawn.

    Attributes
    ----------
    X : array, sparse array or DataFrame
        Features.
    P : ndarray of shape (n, K)
        Output of the black box.
    H : ndarray of shape (n, K)
        A function of P: the truth where nothing is hidden, else its centre.
    direction : ndarray of shape (K,) or (n, K), optional
        Logits by which one unit of u moves the truth; a function of P.
    rows : ndarray of shape (n,), optional
        Which row of the hidden features is an item's (groups share one); its own if not given.
    groups, weight : ndarray of shape (n,), optional
        Groups whose labels depend on one another, sample weights.
    dependence : float
        Correlation of the normal scores that decide the labels of one group.
    """

    X: object
    P: np.ndarray
    H: np.ndarray
    direction: np.ndarray | None = None
    rows: np.ndarray | None = None
    groups: np.ndarray | None = None
    weight: np.ndarray | None = None
    dependence: float = 0.0


def shifted(draft: Draft, move: np.ndarray) -> np.ndarray:
    """Truth of the items when the logits move by `move` (n,) along the draft's direction."""
    direction = np.arange(2.0) if draft.direction is None else draft.direction
    return softmax(np.log(draft.H) + move[:, None] * direction)


def uniforms(draft: Draft, rng: np.random.Generator) -> np.ndarray:
    """Draw the uniform number that decides each label, by a normal copula within a group."""
    n = len(draft.P)
    if draft.groups is None:
        return rng.random(n)
    shared = rng.standard_normal(draft.groups.max() + 1)[draft.groups]
    own = rng.standard_normal(n)
    return special.ndtr(np.sqrt(draft.dependence) * shared + np.sqrt(1 - draft.dependence) * own)


def draw_labels(Q: np.ndarray, U: np.ndarray) -> np.ndarray:
    """Class whose stretch of the distribution function holds U; the last takes rounding."""
    return (U[:, None] >= np.cumsum(Q, axis=1)[:, :-1]).sum(axis=1)


def table(numbers: np.ndarray, missing: np.ndarray | None = None, **columns) -> pd.DataFrame:
    """Numbers as x0, x1, ... (NaN where `missing`); named codes as categories ("a3")."""
    frame = pd.DataFrame(numbers, columns=[f"x{j}" for j in range(numbers.shape[1])])
    if missing is not None:
        frame = frame.mask(missing)
    for name, codes in columns.items():
        frame[name] = pd.Categorical([f"{name}{int(c)}" for c in codes])
    return frame


def sparse_counts(rng: np.random.Generator, n: int, n_columns: int, rate: float) -> csr_array:
    """Poisson counts, most of them zero."""
    return csr_array(rng.poisson(rate, (n, n_columns)).astype(float))


def equal_groups(n: int, size: int) -> np.ndarray:
    """Group codes of consecutive items; the last group may be smaller."""
    return np.arange(n) // size


def unequal_groups(rng: np.random.Generator, n: int, n_groups: int) -> np.ndarray:
    """Group codes with shares like 1, 1/2, 1/3, ...; groups that stay empty are left out."""
    shares = 1 / np.sqrt(np.arange(1, n_groups + 1))
    codes = rng.choice(n_groups, n, p=shares / shares.sum())
    return np.unique(codes, return_inverse=True)[1]


def fixed(seed: int) -> np.random.Generator:
    """Make the generator of what belongs to a law, not to a draw (weights, leaves, levels)."""
    return np.random.default_rng(seed)


def class_weights(seed: int, n_features: int, n_classes: int, scale: float) -> np.ndarray:
    """Logits per unit of each feature, the same at every draw."""
    return fixed(seed).normal(0, scale, (n_features, n_classes))


def tree_leaves(X: np.ndarray, depth: int, seed: int) -> np.ndarray:
    """Leaf number (0 to 2**depth - 1) in a fixed binary tree of axis splits."""
    rng = fixed(seed)
    features = rng.integers(0, X.shape[1], 2**depth)
    thresholds = rng.normal(0, 0.5, 2**depth)
    node = np.ones(len(X), dtype=int)
    for _ in range(depth):
        went_right = X[np.arange(len(X)), features[node]] > thresholds[node]
        node = 2 * node + went_right
    return node - 2**depth
