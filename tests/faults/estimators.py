"""Every estimator, small, with two sets to fit it to and all that can be asked of it."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import hetcal
from hetcal import similarity as sim
from hetcal.calibration.registry import list_calibrators
from hetcal.datasets import make_hidden_heterogeneity

_FIRST = make_hidden_heterogeneity(60, heterogeneity=1.0, random_state=0)
_SECOND = _FIRST.sample(70, random_state=1)
_NEW = _FIRST.sample(9, random_state=2)
# Other classes too, so that labels of one set never stand beside probabilities of the other.
PARTS = (
    (_FIRST.X, _FIRST.y, _FIRST.y_proba),
    (_SECOND.X, _SECOND.y + 5, _SECOND.y_proba),
)
INTERVALS = ("predict_interval", "predict_smoothed_interval", "predict_venn_abers_pair")
_MODEL = LogisticRegression().fit(_NEW.X, np.arange(9) % 2)


@dataclass(frozen=True)
class Case:
    """An estimator: how to make it, fit it to one of the two sets, and ask it."""

    make: Callable[[], Any]
    fit: Callable[[Any, int], Any]
    asks: dict[str, Callable[[Any], Any]]

    def answers(self, part: int) -> dict[str, Any]:
        """Return what it says when nobody disturbs it."""
        fitted = self.make()
        self.fit(fitted, part)
        return {name: ask(fitted) for name, ask in self.asks.items()}


def same(found: Any, expected: Any) -> bool:
    """Tell whether two answers are equal to the bit."""
    if isinstance(expected, tuple):
        return all(same(a, b) for a, b in zip(found, expected, strict=True))
    if isinstance(expected, pd.DataFrame):
        return found.equals(expected)
    if isinstance(expected, str):
        return found == expected
    numbers = np.asarray(expected).dtype.kind == "f"
    return np.array_equal(found, expected, equal_nan=numbers)


def _calibrator(make: Callable[[], Any]) -> Case:
    def fit(calibrator: Any, part: int) -> None:
        X, y, P = PARTS[part]
        calibrator.fit(X, y, y_proba=P)

    new = {"X": _NEW.X, "y_proba": _NEW.y_proba}
    asks: dict[str, Callable[[Any], Any]] = {
        "predict_proba": lambda c: c.predict_proba(**new),
        "predict": lambda c: c.predict(**new),
        "pickle": lambda c: pickle.loads(pickle.dumps(c)).predict(**new),
    }
    known = make()
    for name in ("support", "evidence", "effective_sample_size", *INTERVALS):
        if hasattr(known, name):
            asks[name] = lambda c, name=name: getattr(c, name)(**new)
    if hasattr(known, "out_of_sample_support"):
        asks["out_of_sample_support"] = lambda c: c.out_of_sample_support()
        asks["calibration_labels"] = lambda c: c.calibration_labels()
        asks["out_of_sample_proba_"] = lambda c: c.out_of_sample_proba_
    return Case(make, fit, asks)


def _classifier(make: Callable[[], Any], *, with_proba: bool = False) -> Case:
    def table(X: Any, P: Any) -> Any:
        return np.hstack([P, X]) if with_proba else X

    def fit(classifier: Any, part: int) -> None:
        X, y, P = PARTS[part]
        labels = y if with_proba else y % 5
        classifier.fit(table(X, P), labels)

    new = table(_NEW.X, _NEW.y_proba)
    asks = {"predict_proba": lambda c: c.predict_proba(new), "predict": lambda c: c.predict(new)}
    known = make()
    for name in ("support", "evidence", "effective_sample_size", *INTERVALS, "features"):
        if callable(getattr(known, name, None)):
            asks[name] = lambda c, name=name: getattr(c, name)(new)
    return Case(make, fit, asks)


def _heterogeneity(**settings: Any) -> Case:
    def fit(hidden: Any, part: int) -> None:
        X, y, P = PARTS[part]
        hidden.fit(X, y, y_proba=P)

    asks = {
        "score_samples": lambda h: h.score_samples(_NEW.y_proba),
        "frame": lambda h: h.frame(_NEW.y_proba),
        "subgroups": lambda h: h.subgroups(by="x0"),
    }
    if settings.get("estimate") != "paper":
        asks["test"] = lambda h: repr(h.test())
    return Case(lambda: hetcal.HiddenHeterogeneity(**settings), fit, asks)


def _closeness(A: Any, B: Any) -> Any:
    return np.exp(-np.abs(A[:, None] - B[None]).sum(axis=2))


def _similarity(unfitted: Any) -> Case:
    def fit(similarity: Any, part: int) -> None:
        X, y, P = PARTS[part]
        similarity.fit(np.hstack([X, P]), y % 5, n_proba=2)

    Z = np.hstack([_NEW.X, _NEW.y_proba])
    asks = {
        "pairwise": lambda s: s.pairwise(Z),
        "neighbours": lambda s: astuple(s.neighbours(Z, 5)),
        "out_of_sample_pairwise": lambda s: s.out_of_sample_pairwise(slice(0, 20)),
        "n_items_": lambda s: str(s.n_items_),
    }
    return Case(lambda: clone(unfitted), fit, asks)


_QUICK = {
    "swc": {"similarity": sim.ForestProximity(20)},
    "swc-hh": {
        "similarity": sim.ForestProximity(20),
        "heterogeneity": hetcal.HiddenHeterogeneity(learners=[], n_estimators=3, n_null=2),
    },
    "hybrid": {"experts": ("proximity", "neighbours"), "n_estimators": 5},
}


def _named(name: str, **more: Any) -> Case:
    return _calibrator(lambda: hetcal.get_calibrator(name, **_QUICK.get(name, {}), **more))


CASES: dict[str, Case] = {name: _named(name) for name in list_calibrators()}
CASES |= {f"{name} preserving": _named(name, preserve="label") for name in ("beta", "swc")}
CASES |= {
    "frozen model": _classifier(
        lambda: hetcal.LocallyCalibratedClassifier(
            FrozenEstimator(_MODEL), hetcal.get_calibrator("swc", **_QUICK["swc"])
        )
    ),
    "model": _classifier(
        lambda: hetcal.LocallyCalibratedClassifier(calibrator="temperature", cv=2, random_state=0)
    ),
    "columns, calibrated": _classifier(
        lambda: hetcal.LocallyCalibratedClassifier(hetcal.PrecomputedProba(), "platt"),
        with_proba=True,
    ),
    "columns": _classifier(hetcal.PrecomputedProba, with_proba=True),
    "heterogeneity": _heterogeneity(learners=["linear"], n_estimators=3, n_null=2),
    "published heterogeneity": _heterogeneity(estimate="paper", n_estimators=3),
}
SIMILARITIES = {
    "forest": sim.ForestProximity(20),
    "out-of-bag": sim.ForestProximity(20, trees="extra", voters="out-of-bag"),
    "isolation": sim.IsolationProximity(8),
    "euclidean": sim.EuclideanSimilarity(),
    "cosine": sim.CosineSimilarity(),
    "rbf": sim.RBFSimilarity(),
    "function": sim.CallableSimilarity(_closeness),
    "combined": sim.CombinedSimilarity(sim.EuclideanSimilarity(), sim.ForestProximity(20)),
}
CASES |= {name: _similarity(unfitted) for name, unfitted in SIMILARITIES.items()}
SLOW = {"swc-hh", "hybrid", "model", "heterogeneity"}  # a fit takes a tenth of a second


def extended(calibrator: Any, rows: slice, copies: int = 40) -> Any:
    """Extend a calibrator by copies of some items of the first set."""
    X, y, P = (np.repeat(part[rows], copies, axis=0) for part in PARTS[0])
    return calibrator.extend(X, y, y_proba=P)
