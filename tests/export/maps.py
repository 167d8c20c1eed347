"""Every global map, fitted to two and to more classes, on probabilities and on logits."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from hetcal import get_calibrator
from hetcal.calibration.base import GlobalCalibrator
from hetcal.calibration.registry import _ENTRIES

MAPS = [
    (name, preset)
    for name in _ENTRIES
    if isinstance(get_calibrator(name), GlobalCalibrator)
    for preset in ([None, "paper"] if _ENTRIES[name].paper else [None])
]
NAMES = [f"{name}-{preset}" if preset else name for name, preset in MAPS]


def drawn(n_classes, kind="y_proba", n=180, seed=0):
    """Draw labels and a classifier's output, a third of it coarse (ties) and some of it certain."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, n_classes)) * 2
    P = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    y = np.array([rng.choice(n_classes, p=row) for row in P])
    if kind == "logits":
        return y, 1.7 * Z
    P = P**1.7
    P[: n // 3] = np.round(P[: n // 3] / P[: n // 3].sum(axis=1, keepdims=True) * 8) + 0.25
    P[:3] = np.eye(n_classes)[rng.integers(0, n_classes, 3)]
    return y, P / P.sum(axis=1, keepdims=True)


@lru_cache
def fitted(name, preset=None, n_classes=2, kind="y_proba", **params):
    y, output = drawn(n_classes, kind)
    classes = np.arange(n_classes)
    calibrator = get_calibrator(name, preset=preset, classes=classes, **params)
    return calibrator.fit(None, y, **{kind: output})
