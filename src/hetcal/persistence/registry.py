"""The list of classes that may stand in a file; nothing else can be saved or loaded."""

from __future__ import annotations

import functools
from itertools import chain
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import hetcal.calibration.featureless
import hetcal.monitor.monitor  # noqa: F401  (and all that these import declare their classes)
from hetcal._exceptions import FileFormatError
from hetcal._stored.declaration import DECLARED
from hetcal._stored.reader import Spec, declared
from hetcal.calibration.hybrid.families import Family
from hetcal.persistence import specs_heterogeneity
from hetcal.similarity import CallableSimilarity

#: Names that files of format 1 may hold, and those of today: of classes and of their parts.
_RENAMED_CLASSES = {"SilentFamily": "ZeroWeightExperts", "Items": "MeasuredItems"}
_RENAMED_PARTS = {
    "_honest": "_out_of_sample",
    "_honest_support": "_out_of_sample_support",
    "bystanders_": "auxiliary_families_",
}

_BY_NAME: dict[str, Spec] = {
    spec.name: spec for spec in chain(map(declared, DECLARED.values()), specs_heterogeneity.SPECS)
}
_BY_CLASS = {spec.cls: spec for spec in _BY_NAME.values()}


@functools.cache
def _of_sklearn() -> dict[str, Spec]:
    """Return what files may hold of scikit-learn, which is slow to load: when a file holds some."""
    from hetcal.persistence.specs_sklearn import SPECS

    return {spec.name: spec for spec in SPECS}


def spec_of(value: Any, where: str) -> Spec:
    """Return how to store a value, or raise ``TypeError`` with a way out."""
    cls = type(value)
    spec = _BY_CLASS.get(cls) or _of_sklearn().get(cls.__name__)
    if spec is None or spec.cls is not cls:
        raise TypeError(f"hetcal.save: {where} is {_described(value)}. {_remedy(value)}")
    return spec


def spec_named(name: Any) -> Spec:
    """Return how to read a class by its name in the file."""
    spec = None
    if isinstance(name, str):
        name = _RENAMED_CLASSES.get(name, name)
        spec = _BY_NAME.get(name) or _of_sklearn().get(name)
    if spec is None:
        raise FileFormatError(
            f"The file holds a {str(name)[:60]!r}, which this hetcal does not know. Install the "
            "hetcal that wrote the file, or a newer one."
        )
    return spec


def part_named(name: str) -> str:
    """Return what a part is called today, by its name in the file."""
    return _RENAMED_PARTS.get(name, name)


def _described(value: Any) -> str:
    kind = type(value)
    return f"of type {kind.__module__}.{kind.__qualname__}, which has no place in a file"


def _remedy(value: Any) -> str:
    if isinstance(value, CallableSimilarity) or (callable(value) and not isinstance(value, type)):
        return (
            "A file holds no code. Use a similarity from hetcal.similarity, or compute the "
            "similarities yourself and use similarity='precomputed'."
        )
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return "Fit with an integer as random_state."
    if isinstance(value, Family):
        return (
            "An expert from another library is code. Fit with hetcal's own experts, by name, or "
            "store the whole with skops.io.dump."
        )
    if isinstance(value, BaseEstimator):
        return (
            "A file holds hetcal's own calibrators only. Fit without it (for features=: transform "
            "X before fit and predict_proba), or store the whole with skops.io.dump."
        )
    return "Use numbers, text, lists, dicts and arrays of numbers."
