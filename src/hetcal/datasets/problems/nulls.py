"""Problems in which nothing is hidden: P(y | x) = h(p) exactly, for maps h of every kind.

Half develops, half confirms. Each function takes a generator and a number of items and returns a
`Draft` whose H is a function of its P.
"""

# ruff: noqa: D401 - the docstrings of the makers describe a problem, they do not command.

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pandas as pd
from scipy.sparse import hstack
from scipy.special import expit, logit
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier

from hetcal.datasets.problems import parts
from hetcal.datasets.problems.parts import Draft, softmax, two

__all__ = ["NULLS"]

Maker = Callable[[np.random.Generator, int], Draft]
NULLS: dict[str, tuple[str, Maker]] = {}


def null(half: str) -> Callable[[Maker], Maker]:
    """Enter a maker into the catalogue under its own name."""

    def enter(make: Maker) -> Maker:
        NULLS[make.__name__.replace("_", "-")] = (half, make)
        return make

    return enter


def _score(X: np.ndarray) -> np.ndarray:
    return X[:, 0] + 0.7 * X[:, 1]


# ---- two classes, maps and features of many shapes: half that develops ----


@null("develop")
def calibrated(rng, n):
    """Stated correctly: h(p) = p."""
    X = rng.normal(size=(n, 10))
    P = two(expit(_score(X)))
    return Draft(X, P, P)


@null("develop")
def over_confident(rng, n):
    """Logits three times too large; features with heavy tails."""
    X = rng.standard_t(3, size=(n, 6))
    return Draft(X, two(expit(3 * _score(X))), two(expit(_score(X))))


@null("develop")
def atoms(rng, n):
    """Fifteen distinct p, h(p) = p + noise."""
    X = rng.normal(size=(n, 6))
    leaf = np.minimum(15 * expit(1.5 * X[:, 0]), 14).astype(int)
    law = parts.fixed(5)
    p = law.beta(1, 1, 15)
    h = np.clip(p + law.normal(0, 0.2, 15), 0.03, 0.97)
    return Draft(X, two(p[leaf]), two(h[leaf]))


@null("develop")
def rounded_to_two_digits(rng, n):
    """A convex map of p that is reported in per cent."""
    X = rng.normal(size=(n, 6))
    p = expit(_score(X)).round(2).clip(0.01, 0.99)
    return Draft(X, two(p), two(0.1 + 0.8 * p**2))


@null("develop")
def tree_black_box(rng, n):
    """A tree of sixteen leaves, each leaf wrong in its own way."""
    X = rng.normal(size=(n, 6))
    law = parts.fixed(42)
    p = np.linspace(0.03, 0.97, 16)[law.permutation(16)]
    h = np.clip(p + law.normal(0, 0.15, 16), 0.02, 0.98)
    leaf = parts.tree_leaves(X, 4, 43)
    return Draft(X, two(p[leaf]), two(h[leaf]))


@lru_cache(1)
def _forest() -> RandomForestClassifier:
    law = parts.fixed(44)
    X = law.normal(size=(300, 6))
    y = law.random(300) < expit(1.5 * X[:, 0] + X[:, 1] * X[:, 2])
    return RandomForestClassifier(25, min_samples_leaf=5, random_state=0).fit(X, y)


@null("develop")
def forest_black_box(rng, n):
    """A forest that has learned its training set too well or not well enough."""
    X = rng.normal(size=(n, 6))
    p = _forest().predict_proba(X)[:, 1]
    return Draft(X, two(p), two(expit(5 * (p - 0.45))))


@null("develop")
def steps(rng, n):
    """A step-shaped map that goes up and down."""
    X = rng.normal(size=(n, 6))
    p = expit(_score(X))
    h = np.select([p > 0.8, p > 0.5, p > 0.3], [0.45, 0.75, 0.15], 0.35)
    return Draft(X, two(p), two(h))


@null("develop")
def sine_map(rng, n):
    """Wave: h(p) = 0.5 + 0.4 sin 8p."""
    X = rng.normal(size=(n, 6))
    p = expit(_score(X))
    return Draft(X, two(p), two(0.5 + 0.4 * np.sin(8 * p)))


@null("develop")
def jumps_of_one_feature(rng, n):
    """One feature is p; h jumps at random places, two to fifteen times, and may rise between."""
    X = rng.uniform(size=(n, 5))
    p = 0.05 + 0.9 * X[:, 0]
    jumps = np.sort(rng.uniform(0.05, 0.95, rng.integers(2, 16)))
    piece = np.searchsorted(jumps, p)
    start, slope = rng.uniform(0.1, 0.9, len(jumps) + 1), rng.choice([0.0, 1.0, 3.0])
    h = start[piece] + slope * (p - np.append(0.05, jumps)[piece])
    return Draft(X, two(p), two(np.clip(h, 0.05, 0.95)))


@null("develop")
def waves_of_one_feature(rng, n):
    """One feature is p; two to ten waves, smooth or with teeth, of a random phase."""
    X = rng.uniform(size=(n, 5))
    p = 0.05 + 0.9 * X[:, 0]
    turn = (X[:, 0] * rng.uniform(2, 10) + rng.random()) % 1
    h = 0.5 + 0.35 * np.sin(2 * np.pi * turn) if rng.random() < 0.5 else 0.15 + 0.7 * turn
    return Draft(X, two(p), two(h))


@null("develop")
def hard_labels(rng, n):
    """The black box says 0 or 1 and is right nine times in ten."""
    X = rng.normal(size=(n, 6))
    p = (X[:, 0] > 0).astype(float)
    return Draft(X, two(p), two(0.1 + 0.8 * p))


@null("develop")
def two_per_cent_events(rng, n):
    """Rare events, stated correctly."""
    X = rng.normal(size=(n, 6))
    P = two(expit(-4.3 + 0.8 * X[:, 0] + 0.5 * X[:, 1]))
    return Draft(X, P, P)


@null("develop")
def cauchy_features(rng, n):
    """Features without a mean."""
    X = rng.standard_cauchy(size=(n, 6))
    P = two(expit(_score(X)))
    return Draft(X, P, P)


@null("develop")
def groups_of_five(rng, n):
    """Dependent labels in groups of five that share three features."""
    groups = parts.equal_groups(n, 5)
    X = np.column_stack([rng.normal(size=(groups.max() + 1, 3))[groups], rng.normal(size=(n, 3))])
    P = two(expit(1.5 * X[:, 3]))
    return Draft(X, P, P, groups=groups, dependence=0.4)


@null("develop")
def unequal_weights(rng, n):
    """Lognormal weights that depend on a feature."""
    X = rng.normal(size=(n, 8))
    weight = np.exp(0.8 * X[:, 2] + 0.5 * rng.normal(size=n))
    return Draft(X, two(expit(2 * _score(X))), two(expit(_score(X))), weight=weight)


@null("develop")
def missing_values(rng, n):
    """A fifth of all values missing at random."""
    X = rng.normal(size=(n, 6))
    P = two(expit(_score(X)))
    return Draft(parts.table(X, rng.random((n, 6)) < 0.2), P, P)


@null("develop")
def features_of_p(rng, n):
    """Columns that are functions of p, beside noise."""
    z = rng.normal(size=n)
    p = expit(1.5 * z)
    X = np.column_stack([p, z, p**2, p > 0.3, np.abs(p - 0.5), rng.normal(size=(n, 3))])
    return Draft(X, two(p), two(0.2 + 0.6 * p**3))


@null("develop")
def wide(rng, n):
    """Two hundred correlated columns."""
    X = 0.5 * rng.normal(size=(n, 1)) + rng.normal(size=(n, 200))
    P = two(expit(X[:, :10].sum(axis=1) / 3))
    return Draft(X, P, P)


@null("develop")
def sixty_levels(rng, n):
    """A category of sixty levels that the black box knows."""
    level = rng.integers(0, 60, n)
    X = rng.normal(size=(n, 4))
    z = X[:, 0] + parts.fixed(3).normal(0, 0.7, 60)[level]
    return Draft(parts.table(X, level=level), two(expit(1.5 * z)), two(expit(z)))


# ---- three classes and more: half that develops ----


@null("develop")
def matrix_scaling_of_three(rng, n):
    """Matrix scaling: h = softmax(A log p) with a full matrix A."""
    X = rng.normal(size=(n, 6))
    Z = X @ parts.class_weights(8, 6, 3, 1.0)
    A = np.array([[1.0, 0.0, -0.8], [-0.8, 1.0, 0.0], [0.0, -0.8, 1.0]])
    return Draft(X, softmax(Z), softmax(Z @ A))


@null("develop")
def label_noise_of_four(rng, n):
    """Three labels in ten are those of the next class."""
    X = rng.normal(size=(n, 6))
    P = softmax(X @ parts.class_weights(7, 6, 4, 1.5))
    return Draft(X, P, P @ (0.7 * np.eye(4) + 0.3 * np.roll(np.eye(4), 1, axis=1)))


@null("develop")
def calibrated_eight(rng, n):
    """Eight classes, stated correctly."""
    X = rng.normal(size=(n, 6))
    P = softmax(X @ parts.class_weights(6, 6, 8, 1.0))
    return Draft(X, P, P)


@null("develop")
def always_right(rng, n):
    """One feature is p, rarely near 0 or 1; the likelier class is always the true one."""
    X = rng.normal(size=(n, 5))
    p = expit(X[:, 0])
    return Draft(X, two(p), two(1.0 * (p > 0.5)))


@null("develop")
def island_in_p(rng, n):
    """One feature is p; nearly all items with p between 0.4 and 0.6 are ones, hardly any other."""
    X = rng.normal(size=(n, 5))
    p = expit(X[:, 0])
    return Draft(X, two(p), two(np.where(abs(p - 0.5) < 0.1, 0.99, 0.01)))


# ---- two classes: half that confirms ----


@null("confirm")
def under_confident(rng, n):
    """Logits too small and shifted; skewed features."""
    X = rng.exponential(size=(n, 8))
    z = X[:, 0] - X[:, 1] + 0.5 * X[:, 2] - 0.5
    return Draft(X, two(expit(0.4 * z - 0.3)), two(expit(z)))


@null("confirm")
def wrong_above_one_half(rng, n):
    """Right below one half, far too sure above it."""
    X = rng.uniform(-2, 2, size=(n, 7))
    p = expit(1.5 * _score(X))
    return Draft(X, two(p), two(np.where(p < 0.5, p, 0.5 + 0.3 * (p - 0.5))))


@null("confirm")
def atoms_among_a_continuum(rng, n):
    """Two items in five get one of four default values, where h leaves the curve."""
    X = rng.normal(size=(n, 6))
    p, law = expit(1.2 * X[:, 0] - 0.4 * X[:, 1]), np.array([[0.05, 0.2, 0.5, 0.9], [0.3] * 4])
    law[1] = [0.3, 0.08, 0.8, 0.55]
    default = rng.integers(0, 4, n)
    has_default = X[:, 2] > 0.25
    said, true = np.where(has_default, law[:, default], p)
    return Draft(X, two(said), two(true))


@null("confirm")
def rounded_to_one_digit(rng, n):
    """Eleven values from 0 to 1, each off by its own amount."""
    X = rng.standard_t(5, size=(n, 6))
    tenth = (10 * expit(1.8 * X[:, 0] + X[:, 3])).round().astype(int)
    h = np.array([0.04, 0.22, 0.11, 0.35, 0.31, 0.62, 0.48, 0.58, 0.9, 0.77, 0.97])
    return Draft(X, two(tenth / 10), two(h[tenth]))


@lru_cache(1)
def _neighbours() -> KNeighborsClassifier:
    law = parts.fixed(45)
    X = law.normal(size=(400, 3))
    y = law.random(400) < expit(2 * X[:, 0] - X[:, 1] ** 2 + 1)
    return KNeighborsClassifier(10).fit(X, y)


@null("confirm")
def neighbours_black_box(rng, n):
    """Share of ten nearest neighbours; regions with curved borders."""
    X = rng.normal(size=(n, 5))
    p = _neighbours().predict_proba(X[:, :3])[:, 1]
    h = np.array([0.12, 0.08, 0.3, 0.22, 0.5, 0.4, 0.45, 0.8, 0.6, 0.85, 0.9])
    return Draft(X, two(p), two(h[(10 * p).round().astype(int)]))


@null("confirm")
def boosted_stumps_black_box(rng, n):
    """A sum of thirty thresholds, over-confident."""
    X = rng.normal(size=(n, 6))
    law = parts.fixed(46)
    feature, threshold, weight = law.integers(0, 4, 30), law.normal(size=30), law.normal(size=30)
    z = (X[:, feature] > threshold) @ weight - weight.sum() / 2
    return Draft(X, two(expit(z)), two(expit(0.4 * z)))


@null("confirm")
def saw_tooth_map_of_one_feature(rng, n):
    """One feature is p; h falls back four times."""
    X = rng.uniform(size=(n, 5))
    p = 0.05 + 0.9 * X[:, 0]
    return Draft(X, two(p), two(0.15 + 0.7 * (4 * p % 1)))


@null("confirm")
def narrow_bump(rng, n):
    """Right except near p = 0.65."""
    X = rng.normal(size=(n, 6))
    p = expit(_score(X))
    h = p - 0.45 * np.exp(-0.5 * ((p - 0.65) / 0.04) ** 2)
    return Draft(X, two(p), two(h))


@null("confirm")
def saturated(rng, n):
    """Logits so large that many p are 0 or 1 after rounding to six digits."""
    X = rng.normal(size=(n, 6))
    p = expit(12 * X[:, 0] + 4 * X[:, 1]).round(6)
    return Draft(X, two(p), two(0.04 + 0.92 * p))


@null("confirm")
def over_forecast_rare_events(rng, n):
    """Most p far below one per cent, a few large ones, all twice too high."""
    X = rng.lognormal(0, 1, size=(n, 6))
    p = np.minimum(0.004 * X[:, 0] * X[:, 1] ** 1.5 + 0.004, 0.9)
    return Draft(X, two(p), two(p / 2))


@null("confirm")
def outliers(rng, n):
    """One value in fifty is a million times too large; p knows the clean ones."""
    clean = rng.normal(size=(n, 6))
    X = clean * np.where(rng.random((n, 6)) < 0.02, 1e6, 1.0)
    p = expit(1.3 * clean[:, 0] + clean[:, 1])
    return Draft(X, two(p), two(p**1.5))


@null("confirm")
def few_unequal_groups(rng, n):
    """Fifteen groups or one per twenty items, large and small, with dependent labels."""
    groups = parts.unequal_groups(rng, n, max(15, n // 20))
    shared = rng.exponential(size=(groups.max() + 1, 2))[groups]
    X = np.column_stack([shared, rng.normal(size=(n, 4))])
    z = 1.2 * X[:, 2] + 0.5 * X[:, 3]
    return Draft(X, two(expit(1.6 * z)), two(expit(z)), groups=groups, dependence=0.15)


@null("confirm")
def weights_by_p(rng, n):
    """Weights that undo a sampling by p; one item in ten has weight zero."""
    X = rng.uniform(-2, 2, size=(n, 6))
    p = expit(_score(X))
    weight = np.where(rng.random(n) < 0.1, 0.0, 1 / (0.1 + 0.9 * p))
    return Draft(X, two(p), two(0.15 + 0.6 * p), weight=weight)


@null("confirm")
def missing_by_p(rng, n):
    """Values go missing more often where p is large; a category is missing too."""
    X = rng.normal(size=(n, 5))
    p = expit(_score(X))
    frame = parts.table(X, rng.random((n, 5)) < 0.5 * p[:, None], region=rng.integers(0, 5, n))
    frame["region"] = frame["region"].mask(pd.Series(rng.random(n) < 0.4 * p))
    return Draft(frame, two(p), two(np.sqrt(p) * 0.9))


@null("confirm")
def output_of_another_model(rng, n):
    """Columns hold a second model's probability, ranks of p and parts of the logit."""
    A = rng.normal(size=(n, 2))
    p = expit(A.sum(axis=1))
    other = expit(1.2 * A[:, 0] + 0.7 * A[:, 1] + 0.5 * rng.normal(size=n))
    X = np.column_stack([A, other, p.argsort().argsort(), rng.normal(size=(n, 2))])
    return Draft(X, two(p), two(expit(2 * logit(p) ** 3 / (1 + logit(p) ** 2))))


@null("confirm")
def sparse_words(rng, n):
    """Three hundred columns of counts, nearly all zero, beside one dense column."""
    counts = parts.sparse_counts(rng, n, 300, 0.03)
    dense = rng.normal(size=(n, 1))
    z = counts @ parts.fixed(47).normal(0, 1, 300) / 2 + 0.8 * dense[:, 0]
    return Draft(hstack([counts, dense], format="csr"), two(expit(1.5 * z)), two(expit(z)))


@null("confirm")
def three_hundred_identifiers(rng, n):
    """A category with many levels of very unequal size, and one inside it."""
    code = rng.zipf(1.3, n) % 300
    X = rng.normal(size=(n, 3))
    p = expit(X[:, 0] + parts.fixed(48).normal(0, 1, 300)[code])
    return Draft(parts.table(X, site=code, area=code % 7), two(p), two(0.05 + 0.7 * p))


# ---- three classes and more: half that confirms ----


@null("confirm")
def grid_of_three(rng, n):
    """Probabilities in fifths; h is a permuted mixture."""
    X = rng.normal(size=(n, 6))
    fifths = np.round(5 * softmax(X @ parts.class_weights(9, 6, 3, 1.2)))
    P = fifths / fifths.sum(axis=1, keepdims=True)
    return Draft(X, P, 0.2 / 3 + 0.5 * P + 0.3 * np.roll(P, 1, axis=1))


@null("confirm")
def quadratic_map_of_three(rng, n):
    """Logits bent and crossed: h = softmax(z + z_1 z_2 terms)."""
    X = rng.standard_t(4, size=(n, 5))
    Z = np.tanh(X @ parts.class_weights(10, 5, 3, 0.6)) * 2
    Z = Z - Z.mean(axis=1, keepdims=True)
    bent = Z + 0.6 * np.roll(Z, 1, axis=1) * np.roll(Z, 2, axis=1)
    return Draft(X, softmax(Z), softmax(bent))


@null("confirm")
def decided_four(rng, n):
    """Four classes, the likeliest always at 0.97; h depends on which."""
    X = rng.normal(size=(n, 6))
    top = (X @ parts.class_weights(11, 6, 4, 1.0)).argmax(axis=1)
    H = np.array([[5, 2, 2, 1], [1, 8, 1, 0.5], [3, 3, 4, 0.2], [1, 1, 1, 1]])
    return Draft(X, (0.96 * np.eye(4) + 0.01)[top], (H / H.sum(axis=1, keepdims=True))[top])


@null("confirm")
def confusion_of_five(rng, n):
    """A full confusion matrix between five classes of unequal frequency."""
    X = rng.normal(size=(n, 8))
    P = softmax(X @ parts.class_weights(12, 8, 5, 0.7) - 0.6 * np.arange(5))
    confusion = parts.fixed(13).dirichlet(np.full(5, 0.5), 5)
    return Draft(X, P, P @ (0.6 * np.eye(5) + 0.4 * confusion))


@null("confirm")
def tree_of_six(rng, n):
    """Eight leaves, six classes, h drawn anew in each leaf."""
    X = rng.normal(size=(n, 6))
    law = parts.fixed(14)
    P, H = law.dirichlet(np.ones(6), 8), law.dirichlet(np.full(6, 2.0), 8)
    leaf = parts.tree_leaves(X, 3, 15)
    return Draft(X, P[leaf], H[leaf])


@null("confirm")
def over_confident_ten(rng, n):
    """Ten classes, logits twice too large, heavy tails."""
    X = rng.standard_t(2, size=(n, 6))
    Z = X @ parts.class_weights(16, 6, 10, 0.6)
    return Draft(X, softmax(2 * Z), softmax(Z))
