"""Problems in which something is hidden, each in its own shape.

Half develops, half confirms: the same kinds (linear, interactions, shapes that no axis rule
describes, categories, rare groups, slopes, rare events, groups, missing values, heavy tails, three
classes and more), other shapes and other black boxes. Each function takes a generator and the
hidden features, one row per item, and returns a `Draft`. `strengths.py` holds how strong each
effect is.
"""

# ruff: noqa: D401 - the docstrings of the makers describe a problem, they do not command.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit

from hetcal.datasets.problems import parts
from hetcal.datasets.problems.parts import Draft, Effect, softmax, two

__all__ = ["ALTERNATIVES", "Alternative"]

Maker = Callable[[np.random.Generator, np.ndarray], Draft]


@dataclass(frozen=True)
class Alternative:
    """One alternative: who uses it, its effect, its maker and the n at which it is scaled."""

    half: str
    effect: Effect
    make: Maker
    scaled_at: int


ALTERNATIVES: dict[str, Alternative] = {}


def alternative(half: str, features: tuple[str, ...], value: Callable, scaled_at: int = 500):
    """Enter a maker into the catalogue under its own name."""

    def enter(make: Maker) -> Maker:
        name = make.__name__.replace("_", "-")
        ALTERNATIVES[name] = Alternative(half, Effect(features, value), make, scaled_at)
        return make

    return enter


def _normal(rng: np.random.Generator, hidden: np.ndarray, n_noise: int) -> np.ndarray:
    """One normal feature for the black box, the hidden ones, and noise."""
    n = len(hidden)
    return np.column_stack([rng.normal(size=n), hidden, rng.normal(size=(n, n_noise))])


def _calibrated(X, z, **more) -> Draft:
    """A black box that is right on average."""
    return Draft(X, two(expit(z)), two(expit(z)), **more)


# ---- two classes: half that develops ----


@alternative("develop", ("normal",), lambda a: a)
def linear(rng, hidden):
    """One feature of twenty, linear."""
    X = _normal(rng, hidden, 18)
    return _calibrated(X, 1.2 * X[:, 0])


@alternative("develop", ("normal",) * 19, lambda *x: sum(x) / np.sqrt(19))
def dense_linear(rng, hidden):
    """Nineteen features, a little each."""
    X = _normal(rng, hidden, 0)
    return _calibrated(X, 1.2 * X[:, 0])


@alternative("develop", ("normal", "normal"), lambda a, b: np.sign(a * b))
def xor_of_two(rng, hidden):
    """Sign of a product, in twenty dimensions."""
    X = _normal(rng, hidden, 17)
    return _calibrated(X, 1.2 * X[:, 0])


@alternative("develop", ("normal",) * 3, lambda a, b, c: np.sign(a * b * c))
def xor_of_three(rng, hidden):
    """Sign of a product of three, in eight dimensions."""
    X = _normal(rng, hidden, 4)
    return _calibrated(X, 1.2 * X[:, 0])


@alternative("develop", ("normal",) * 3, lambda a, b, c: np.sign(a + b - c))
def oblique_threshold(rng, hidden):
    """A half-space that no axis bounds; over-confident black box."""
    X = _normal(rng, hidden, 6)
    return Draft(X, two(expit(2.4 * X[:, 0])), two(expit(1.2 * X[:, 0])))


@alternative("develop", ("normal",) * 2, lambda a, b: np.sin(2.5 * (a + b)))
def oblique_sine(rng, hidden):
    """A wave along a diagonal."""
    X = _normal(rng, hidden, 7)
    return _calibrated(X, 1.2 * X[:, 0])


@alternative("develop", ("normal",) * 2, lambda a, b: np.sign(a**2 + b**2 - 1.4))
def ring(rng, hidden):
    """Inside against outside of a circle."""
    X = _normal(rng, hidden, 7)
    return _calibrated(X, 1.2 * X[:, 0])


@alternative(
    "develop", ("normal",) * 3, lambda a, b, c: -1.0 * ((a > 0.2) & (b > 0.2) & (abs(c) < 1))
)
def box(rng, hidden):
    """A corner of three features, an eighth of the items."""
    X = _normal(rng, hidden, 6)
    return _calibrated(X, 1.2 * X[:, 0])


@alternative("develop", ("normal",), lambda a: np.sin(4 * a))
def wave(rng, hidden):
    """A fast wave in one feature."""
    X = _normal(rng, hidden, 8)
    return _calibrated(X, 1.2 * X[:, 0])


@alternative("develop", ("levels:30",), lambda g: parts.fixed(3).normal(size=30)[g.astype(int)])
def thirty_levels(rng, hidden):
    """Every level of a category has its own shift."""
    X = rng.normal(size=(len(hidden), 4))
    return _calibrated(parts.table(X, level=hidden[:, 0]), 1.2 * X[:, 0])


@alternative("develop", ("normal",), lambda a: -1.0 * (a > 1.5))
def rare_group(rng, hidden):
    """Seven per cent of the items, far below what is said."""
    X = _normal(rng, hidden, 18)
    return _calibrated(X, 1.2 * X[:, 0])


@alternative("develop", ("normal",), np.sign)
def slope(rng, hidden):
    """Too sure in one half, not sure enough in the other; the mean is right in both."""
    X = _normal(rng, hidden, 8)
    z = 1.4 * X[:, 0]
    return _calibrated(X, z, direction=z[:, None] * np.arange(2.0))


@alternative("develop", ("normal",), np.sign, scaled_at=2000)
def rare_events(rng, hidden):
    """Two per cent of events; scaled at 2000 items."""
    X = _normal(rng, hidden, 6)
    return _calibrated(X, X[:, 0] - 4.3)


@alternative("develop", ("normal",), lambda a: a)
def clustered_rows(rng, hidden):
    """Groups of five with dependent labels; each row has its own effect."""
    X = _normal(rng, hidden, 4)
    groups = parts.equal_groups(len(hidden), 5)
    X[:, 2:4] = rng.normal(size=(groups.max() + 1, 2))[groups]
    return _calibrated(X, 1.2 * X[:, 0], groups=groups, dependence=0.3)


@alternative("develop", ("normal", "quarter"), lambda a, gone: gone)
def missing_as_signal(rng, hidden):
    """Items that lack a feature are more often positive."""
    X = np.column_stack([_normal(rng, hidden[:, :1], 4)])
    gone = np.zeros(X.shape, dtype=bool)
    gone[:, 1] = hidden[:, 1] > 0
    gone[:, 2] = rng.random(len(X)) < 0.25
    return _calibrated(parts.table(X, gone), 1.2 * X[:, 0])


@alternative("develop", ("cauchy",), lambda a: np.sign(a - 1))
def threshold_in_a_heavy_tail(rng, hidden):
    """A rule on a feature without a mean."""
    n = len(hidden)
    X = np.column_stack([rng.normal(size=n), hidden, rng.standard_cauchy(size=(n, 6))])
    return _calibrated(X, 1.2 * X[:, 0])


@alternative("develop", ("normal",), lambda a: a)
def linear_behind_a_tree(rng, hidden):
    """The black box has sixteen values, each wrong in its own way."""
    X = _normal(rng, hidden, 5)
    law = parts.fixed(60)
    p = law.uniform(0.05, 0.95, 16)
    h = np.clip(p + law.normal(0, 0.15, 16), 0.05, 0.95)
    leaf = parts.tree_leaves(X[:, [0, 2, 3, 4]], 4, 61)
    return Draft(X, two(p[leaf]), two(h[leaf]))


@alternative("develop", ("normal",), np.abs)
def wide_and_one_matters(rng, hidden):
    """The size of one feature among a hundred and fifty."""
    X = _normal(rng, hidden, 148)
    return _calibrated(X, 1.2 * X[:, 0])


# ---- three classes and more: half that develops ----


@alternative("develop", ("normal",), np.sign, scaled_at=1000)
def swap_of_three(rng, hidden):
    """Two of three classes are exchanged on one side of a threshold."""
    n = len(hidden)
    S = rng.normal(size=(n, 3))
    P = softmax(S @ parts.class_weights(20, 3, 3, 1.0))
    X = np.column_stack([S, hidden, rng.normal(size=(n, 6))])
    return Draft(X, P, P, direction=np.array([1.0, -1.0, 0.0]))


@alternative("develop", ("normal",) * 2, lambda a, b: a - b, scaled_at=1000)
def class_shift_of_four(rng, hidden):
    """One class of four becomes more likely along a diagonal; over-confident."""
    n = len(hidden)
    S = rng.normal(size=(n, 4))
    Z = S @ parts.class_weights(21, 4, 4, 0.8)
    X = np.column_stack([S, hidden, rng.normal(size=(n, 4))])
    return Draft(X, softmax(1.7 * Z), softmax(Z), direction=np.eye(4)[3])


@alternative("develop", ("normal",) * 2, lambda a, b: np.sign(a * b), scaled_at=1000)
def xor_of_five(rng, hidden):
    """Classes of five trade places by the sign of a product; label noise."""
    n = len(hidden)
    S = rng.normal(size=(n, 4))
    P = softmax(S @ parts.class_weights(22, 4, 5, 1.0))
    X = np.column_stack([S, hidden, rng.normal(size=(n, 3))])
    H = P @ (0.75 * np.eye(5) + 0.25 * np.roll(np.eye(5), 1, axis=1))
    return Draft(X, P, H, direction=np.array([1.0, 0.5, 0.0, -0.5, -1.0]))


@alternative("develop", ("normal",), lambda a: a, scaled_at=1000)
def linear_of_ten(rng, hidden):
    """Ten classes, the even ones gain on the odd ones."""
    n = len(hidden)
    S = rng.normal(size=(n, 5))
    P = softmax(S @ parts.class_weights(23, 5, 10, 0.8))
    X = np.column_stack([S, hidden, rng.normal(size=(n, 4))])
    return Draft(X, P, P, direction=np.resize([0.5, -0.5], 10))


# ---- two classes: half that confirms ----


@alternative("confirm", ("uniform",), lambda a: np.maximum(a, 0))
def hinge_in_a_mixed_feature(rng, hidden):
    """Rises above zero only, in a quantity that the table shows mixed with the black box's."""
    n = len(hidden)
    z = rng.uniform(-2, 2, n)
    X = np.column_stack([z, hidden[:, 0] + 0.7 * z, rng.uniform(-2, 2, (n, 8))])
    return Draft(X, two(expit(0.6 * z + 0.3)), two(expit(z)))


def _decaying(*x):
    return sum((-1) ** k * column / (k + 1) for k, column in enumerate(x))


@alternative("confirm", ("normal",) * 24, _decaying)
def decaying_linear(rng, hidden):
    """Twenty-four correlated columns with effects of falling size and both signs."""
    n = len(hidden)
    S = rng.normal(size=(n, 2))
    mixed = np.cumsum(hidden, axis=1) / np.sqrt(np.arange(1, 25))
    return _calibrated(np.column_stack([S, mixed]), S @ [1.0, 0.6])


@alternative("confirm", ("levels:6", "normal"), lambda g, a: np.where(g % 2 == 0, 1, -1) * a)
def slope_by_category(rng, hidden):
    """A feature's effect changes its sign with a category's level."""
    X = np.column_stack(
        [rng.normal(size=len(hidden)), hidden[:, 1], rng.normal(size=(len(hidden), 5))]
    )
    return _calibrated(parts.table(X, level=hidden[:, 0]), 1.2 * X[:, 0])


@alternative("confirm", ("coin",) * 3, lambda a, b, c: (-1.0) ** (a + b + c))
def parity_of_coins(rng, hidden):
    """Parity of three among ten binary columns; the black box knows two others."""
    coins = (rng.random((len(hidden), 7)) > 0.5).astype(float)
    z = 1.5 * coins[:, 0] + 0.8 * coins[:, 1] - 1.2 + 0.5 * coins[:, 2]
    return _calibrated(np.column_stack([coins, hidden]), z)


@alternative("confirm", ("normal", "normal"), lambda a, b: 1.0 * (np.abs(a - b) < 0.5))
def near_each_other(rng, hidden):
    """Items whose two features are close to each other: a diagonal band."""
    X = _normal(rng, hidden, 6)
    return Draft(X, two(expit(0.5 * X[:, 0])), two(expit(X[:, 0] + 0.2)))


@alternative("confirm", ("normal", "normal"), lambda a, b: np.cos(3 * np.arctan2(b, a)))
def sectors(rng, hidden):
    """Six sectors of the angle of two features."""
    X = _normal(rng, hidden, 5)
    return _calibrated(X, 1.2 * X[:, 0])


@alternative(
    "confirm", ("uniform", "uniform"), lambda a, b: np.where((abs(a) < 0.8) ^ (abs(b) < 0.8), 1, -1)
)
def cross(rng, hidden):
    """A cross of two bands without its centre."""
    n = len(hidden)
    X = np.column_stack([rng.normal(size=n), hidden, rng.uniform(-2, 2, (n, 7))])
    return _calibrated(X, 1.2 * X[:, 0])


def _islands(a, b, c):
    squared = (a - 1) ** 2 + (b - 1) ** 2 + c**2, (a + 1) ** 2 + (b + 1) ** 2 + (c - 1) ** 2
    return np.exp(-squared[0] / 1.2) - np.exp(-squared[1] / 1.2)


@alternative("confirm", ("normal",) * 3, _islands)
def two_islands(rng, hidden):
    """Two smooth bumps in three features, one up and one down."""
    X = _normal(rng, hidden, 5)
    return _calibrated(X, 1.2 * X[:, 0])


@alternative("confirm", ("exponential",), lambda a: 2 * (1.5 * a % 1) - 1)
def saw_tooth(rng, hidden):
    """Rises and falls back again and again along a skewed feature."""
    n = len(hidden)
    X = np.column_stack([rng.normal(size=n), hidden, rng.exponential(size=(n, 6))])
    return _calibrated(X, 1.2 * X[:, 0])


@alternative("confirm", ("zipf:80",), lambda g: np.select([g % 9 == 4, g % 13 == 2], [-1.0, 1.0]))
def few_bad_levels(rng, hidden):
    """Fifteen of eighty levels of unequal size are off; the others are right."""
    X = rng.normal(size=(len(hidden), 3))
    return _calibrated(parts.table(X, site=hidden[:, 0]), 1.2 * X[:, 0])


@alternative(
    "confirm", ("levels:6", "levels:5"), lambda g, k: np.where((g + 2 * k) % 5 < 2, 1.0, -1.0)
)
def pairs_of_levels(rng, hidden):
    """Two categories that matter only together."""
    X = rng.normal(size=(len(hidden), 3))
    return _calibrated(parts.table(X, shop=hidden[:, 0], kind=hidden[:, 1]), 1.2 * X[:, 0])


@alternative("confirm", ("levels:8", "uniform"), lambda g, a: 1.0 * ((g == 3) & (a > 0)))
def rare_corner(rng, hidden):
    """One level of eight, and there the upper half of a feature: six per cent."""
    X = np.column_stack(
        [rng.normal(size=len(hidden)), hidden[:, 1], rng.normal(size=(len(hidden), 4))]
    )
    return _calibrated(parts.table(X, level=hidden[:, 0]), 1.2 * X[:, 0])


@alternative("confirm", ("normal",), lambda a: a)
def only_above_one_half(rng, hidden):
    """A linear effect that is there only where p is large."""
    X = _normal(rng, hidden, 7)
    z = 1.4 * X[:, 0]
    return _calibrated(X, z, direction=(z > 0)[:, None] * np.arange(2.0))


@alternative("confirm", ("exponential",), lambda a: a, scaled_at=2000)
def rare_events_along_a_skewed_feature(rng, hidden):
    """Three per cent of events, stated twice too often; scaled at 2000 items."""
    n = len(hidden)
    X = np.column_stack([rng.exponential(size=n), hidden, rng.exponential(size=(n, 5))])
    h = expit(X[:, 0] - 5.2)
    return Draft(X, two(np.minimum(2 * h, 0.99)), two(h))


@alternative("confirm", ("normal", "normal"), lambda a, b: np.sign(a - b))
def unequal_clusters(rng, hidden):
    """Groups of unequal size with dependent labels; the effect belongs to the group."""
    n = len(hidden)
    groups = parts.unequal_groups(rng, n, max(20, n // 4))
    shared = hidden[groups]
    X = np.column_stack([rng.normal(size=n), shared, rng.normal(size=(n, 4))])
    P, H = two(expit(1.8 * X[:, 0])), two(expit(X[:, 0]))
    return Draft(X, P, H, rows=groups, groups=groups, dependence=0.1)


@alternative("confirm", ("quarter",) * 5, lambda *gone: 1.0 * (sum(gone) >= 2))
def many_missing(rng, hidden):
    """Items that lack two or more of five features."""
    X = rng.normal(size=(len(hidden), 7))
    gone = np.zeros(X.shape, dtype=bool)
    gone[:, 2:] = hidden > 0
    return _calibrated(parts.table(X, gone), X[:, 0] + 0.6 * X[:, 1])


@alternative("confirm", ("lognormal",), np.log)
def log_of_a_heavy_tail(rng, hidden):
    """Linear in the logarithm of a feature that spans five orders of magnitude."""
    n = len(hidden)
    X = np.column_stack([rng.normal(size=n), hidden, rng.lognormal(0, 2.5, (n, 6))])
    return _calibrated(X, 1.2 * X[:, 0])


@alternative("confirm", ("normal", "normal"), lambda a, b: a * b)
def product_behind_rounding(rng, hidden):
    """A product of two features; p has one digit and is wrong up and down."""
    X = _normal(rng, hidden, 4)
    tenth = (10 * expit(1.5 * X[:, 0])).round().astype(int)
    h = np.array([0.1, 0.22, 0.15, 0.35, 0.31, 0.62, 0.48, 0.58, 0.85, 0.77, 0.9])
    return Draft(X, two(tenth / 10), two(h[tenth]))


@alternative("confirm", ("tenth",) * 8, lambda *words: 1.0 * (sum(words) > 0))
def any_of_eight_words(rng, hidden):
    """Any of eight words among two hundred sparse columns."""
    n = len(hidden)
    words = (rng.random((n, 192)) < 0.1).astype(float)
    z = words[:, :20] @ parts.fixed(62).normal(0, 0.8, 20)
    return _calibrated(csr_array(np.column_stack([words, hidden])), z)


# ---- three classes and more: half that confirms ----


@alternative("confirm", ("normal",) * 2, lambda a, b: np.cos(1.8 * np.hypot(a, b)), scaled_at=1000)
def ripples_of_three(rng, hidden):
    """The third class comes and goes with the distance from a point; matrix scaling."""
    n = len(hidden)
    S = rng.normal(size=(n, 2))
    Z = S @ parts.class_weights(24, 2, 3, 1.0)
    A = np.array([[1.0, -0.4, 0.0], [0.0, 1.0, -0.4], [-0.4, 0.0, 1.0]])
    X = np.column_stack([S, hidden, rng.normal(size=(n, 4))])
    return Draft(X, softmax(Z), softmax(Z @ A), direction=np.array([-0.5, -0.5, 1.0]))


@alternative("confirm", ("exponential",), lambda a: np.sqrt(a) - 0.9, scaled_at=1000)
def leader_against_the_next_of_three(rng, hidden):
    """The likeliest of three classes loses to the next along a skewed feature."""
    n = len(hidden)
    S = rng.normal(size=(n, 3))
    P = softmax(S @ parts.class_weights(25, 3, 3, 0.9))
    order = P.argsort(axis=1)
    X = np.column_stack([S, hidden, rng.exponential(size=(n, 4))])
    return Draft(X, P, P, direction=np.eye(3)[order[:, 1]] - np.eye(3)[order[:, 2]])


@alternative("confirm", ("coin", "normal"), lambda c, a: (2 * c - 1) * np.sign(a), scaled_at=1000)
def pairs_of_four(rng, hidden):
    """Classes 0 and 1 against 2 and 3, by a binary and a continuous feature together."""
    n = len(hidden)
    S = rng.normal(size=(n, 3))
    Z = S @ parts.class_weights(26, 3, 4, 0.9)
    X = np.column_stack([S, hidden, rng.normal(size=(n, 5))])
    return Draft(X, softmax(0.6 * Z), softmax(Z), direction=np.array([1.0, 1.0, -1.0, -1.0]) / 2)


@alternative(
    "confirm", ("levels:12",), lambda g: np.cos(np.pi * g / 3) + 0.3 * (g % 2), scaled_at=1000
)
def twelve_levels_of_five(rng, hidden):
    """Levels of a category move five classes by different amounts."""
    n = len(hidden)
    S = rng.normal(size=(n, 4))
    P = softmax(S @ parts.class_weights(27, 4, 5, 0.9) - 0.3 * np.arange(5))
    frame = parts.table(np.column_stack([S, rng.normal(size=(n, 2))]), level=hidden[:, 0])
    return Draft(frame, P, P, direction=np.array([1.2, -1.0, 0.4, -0.8, 0.2]))


@alternative(
    "confirm", ("uniform",) * 2, lambda a, b: 1.0 * ((a > 0.5) & (np.abs(b) < 1)), scaled_at=1000
)
def corner_of_eight(rng, hidden):
    """Three of eight classes lose in a corner of two features; temperature two."""
    n = len(hidden)
    S = rng.normal(size=(n, 5))
    Z = S @ parts.class_weights(28, 5, 8, 0.8)
    X = np.column_stack([S, hidden, rng.uniform(-2, 2, (n, 3))])
    return Draft(X, softmax(2 * Z), softmax(Z), direction=-1.0 * (np.arange(8) < 3))
