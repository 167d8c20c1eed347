"""A problem: items with labels, what the black box says, and the truth."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import ndtr
from sklearn.utils import check_random_state

from hetcal.datasets.problems import parts
from hetcal.datasets.problems.alternatives import ALTERNATIVES
from hetcal.datasets.problems.nulls import NULLS
from hetcal.datasets.problems.strengths import STRENGTHS

__all__ = ["HALVES", "KINDS", "Problem", "draw", "list_problems", "make_problem"]

KINDS = ("null", "alternative")
HALVES = ("develop", "confirm")
N_LARGE, N_CHUNK = 100_000, 10_000


@dataclass(frozen=True)
class Problem:
    """Items of a named problem, with the truth about them.

    Attributes
    ----------
    name : str
        Name in the catalogue.
    X : ndarray, sparse array or DataFrame of shape (n_samples, n_features)
        Features; a DataFrame where there are categories or missing values.
    y : ndarray of shape (n_samples,)
        Labels 0 .. K - 1, drawn from `true_proba` (dependent within a group, where there are
        groups).
    y_proba : ndarray of shape (n_samples, K)
        p, what the black box says.
    true_proba : ndarray of shape (n_samples, K)
        P(y | x).
    recalibrated_proba : ndarray of shape (n_samples, K)
        h(p) = E[y | p], the best that any map of p can do. Equal to `true_proba` in a null.
    groups, sample_weight : ndarray of shape (n_samples,) or None
        Groups of items whose labels depend on one another; weights.
    """

    name: str
    X: object
    y: np.ndarray
    y_proba: np.ndarray
    true_proba: np.ndarray
    recalibrated_proba: np.ndarray
    groups: np.ndarray | None = None
    sample_weight: np.ndarray | None = None

    @property
    def kind(self) -> str:
        """``"null"`` or ``"alternative"``."""
        return KINDS[self.name in ALTERNATIVES]

    @property
    def half(self) -> str:
        """``"develop"`` or ``"confirm"``: what its results may be used for."""
        return _half(self.name)

    @property
    def description(self) -> str:
        """What is special about it, in a sentence."""
        null = NULLS.get(self.name)
        make = ALTERNATIVES[self.name].make if null is None else null[1]
        return str(make.__doc__)

    @property
    def n_classes(self) -> int:
        """K."""
        return self.y_proba.shape[1]

    @property
    def scaled_at(self) -> int | None:
        """Number of items at which the oracle has power .95; None for a null."""
        entry = ALTERNATIVES.get(self.name)
        return None if entry is None else entry.scaled_at

    @property
    def grouping_loss(self) -> float:
        """``E |E[y|x] - E[y|p]|^2`` (Brier score, sum over classes) of the law, not the draw."""
        return _sizes(self.name)[0]

    @property
    def global_part(self) -> float:
        """``E |p - E[y|p]|^2`` of the law: what the best map of p takes off the Brier score."""
        return _sizes(self.name)[1]

    def oracle_p_value(self) -> float:
        """One-sided p value of the score test that knows h(p) and the direction of the truth.

        No test that has to find the direction can be expected to do better. 1 in a null.
        """
        terms = score_terms(self.true_proba, self.recalibrated_proba)
        variance = (self.recalibrated_proba * terms**2).sum(axis=1)
        values = np.take_along_axis(terms, self.y[:, None], axis=1)[:, 0]
        if not values.any():
            return 1.0
        if self.groups is None:
            return float(ndtr(-values.sum() / np.sqrt(variance.sum())))
        sums = np.bincount(self.groups, values)
        return float(ndtr(-sums.sum() / np.sqrt((sums**2).sum())))


def list_problems(
    kind: str | None = None, *, half: str | None = None, n_classes: tuple[int, ...] | None = None
) -> list[str]:
    """Names of problems with known truth, for whatever judges calibration.

    Parameters
    ----------
    kind : {"null", "alternative"}, optional
        Nulls, in which P(y | x) is a function of p, or alternatives, in which it is not.
    half : {"develop", "confirm"}, optional
        Settings are chosen on one half, results reported on the other.
    n_classes : tuple of int, optional
        Only problems with so many classes.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from hetcal.datasets import list_problems
    >>> list_problems("alternative", half="develop", n_classes=(3, 4))
    ['swap-of-three', 'class-shift-of-four']
    """
    for what, given, known in (("kind", kind, KINDS), ("half", half, HALVES)):
        _require(given in (None, *known), "list_problems", what, f"one of {known}", given)
    names = {"null": list(NULLS), "alternative": list(ALTERNATIVES)}
    chosen = [name for k in KINDS if kind in (None, k) for name in names[k]]
    return [
        name
        for name in chosen
        if half in (None, _half(name)) and (n_classes is None or _n_classes(name) in n_classes)
    ]


def make_problem(name: str, n_samples: int = 500, random_state=None) -> Problem:
    """Draw items of a problem with known truth.

    Parameters
    ----------
    name : str
        One of `list_problems`.
    n_samples : int, default 500
        Items. An alternative's effect is such that a test which knows its direction finds it in 95
        of 100 draws of `Problem.scaled_at` items.
    random_state : int, RandomState or None
        Seed of the draw; the law does not depend on it. Problems of one seed are independent.

    Returns
    -------
    Problem

    Examples
    --------
    >>> from hetcal.datasets import make_problem
    >>> problem = make_problem("xor-of-two", 500, random_state=0)
    >>> problem.X.shape, problem.y_proba.shape, problem.scaled_at
    ((500, 20), (500, 2), 500)
    >>> f"{problem.grouping_loss:.3f}"
    '0.009'
    """
    known = [*NULLS, *ALTERNATIVES]
    _require(name in known, "make_problem", "name", f"one of {known}", name)
    _require(n_samples >= 1, "make_problem", "n_samples", "at least 1", n_samples)
    seed = check_random_state(random_state).randint(2**31)
    return draw(name, n_samples, np.random.default_rng([zlib.crc32(name.encode()), seed]))


def draw(name: str, n: int, rng: np.random.Generator, strength: float | None = None) -> Problem:
    """Items of a problem, at another strength of the hidden effect than the stored one if given."""
    if name in NULLS:
        draft = NULLS[name][1](rng, n)
        true = centre = draft.H
    else:
        draft, u = draft_alternative(name, n, rng)
        strength = STRENGTHS[name] if strength is None else strength
        true = parts.shifted(draft, strength * u)
        centre = mean_over_effect(name, draft, strength)
    return Problem(
        name=name,
        X=draft.X,
        y=parts.draw_labels(true, parts.uniforms(draft, rng)),
        y_proba=draft.P,
        true_proba=true,
        recalibrated_proba=centre,
        groups=draft.groups,
        sample_weight=draft.weight,
    )


def draft_alternative(
    name: str, n: int, rng: np.random.Generator
) -> tuple[parts.Draft, np.ndarray]:
    """Items of an alternative without labels, and the hidden effect on each."""
    entry = ALTERNATIVES[name]
    hidden = entry.effect.at(rng.uniform(1e-12, 1, (n, len(entry.effect.features))))
    draft = entry.make(rng, hidden)
    u = entry.effect.u(hidden)
    return draft, u if draft.rows is None else u[draft.rows]


def mean_over_effect(name: str, draft: parts.Draft, strength: float) -> np.ndarray:
    """E[y | p]: the mean of the truth over the effect's distribution, p held fixed."""
    values, shares = ALTERNATIVES[name].effect.distribution
    mean = np.zeros_like(draft.H)
    for value, share in zip(values, shares, strict=True):
        mean += share * parts.shifted(draft, np.full(len(mean), strength * value))
    return mean


def score_terms(true: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Score of each label along the true deviation, (P(y | x) - h) / h; 0 where h is 0."""
    return np.divide(true - centre, centre, out=np.zeros_like(true), where=centre > 0)


@cache
def _sizes(name: str) -> tuple[float, float]:
    """Compute grouping loss and global part (weighted, if the law is) from 100 000 items."""
    sums = np.zeros(3)
    for chunk in range(N_LARGE // N_CHUNK):
        big = draw(name, N_CHUNK, np.random.default_rng([zlib.crc32(name.encode()), 1, chunk]))
        weight = np.ones(N_CHUNK) if big.sample_weight is None else big.sample_weight
        grouping = ((big.true_proba - big.recalibrated_proba) ** 2).sum(axis=1)
        global_ = ((big.y_proba - big.recalibrated_proba) ** 2).sum(axis=1)
        sums += weight @ grouping, weight @ global_, weight.sum()
    return float(sums[0] / sums[2]), float(sums[1] / sums[2])


def _half(name: str) -> str:
    return NULLS[name][0] if name in NULLS else ALTERNATIVES[name].half


@cache
def _n_classes(name: str) -> int:
    return make_problem(name, 20, random_state=0).n_classes


def _require(holds: bool, who: str, what: str, expected: str, got: object) -> None:
    if not holds:
        raise ValueError(f"{who}: {what} must be {expected}; got {got!r}.")
