"""hetcal: find hidden heterogeneity in a classifier's probabilities, and repair it item by item.

Public names are imported on first use: ``import hetcal`` stays quick and has no side effect.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hetcal._version import __version__

if TYPE_CHECKING:
    from hetcal.calibration import (
        BetaCalibration,
        BiasCorrectedTemperatureScaling,
        HistogramBinning,
        HybridCalibrator,
        IsotonicCalibration,
        LabelPreserving,
        LocallyCalibratedClassifier,
        PlattScaling,
        PrecomputedProba,
        SimilarityCalibrator,
        TemperatureScaling,
        Uncalibrated,
        VectorScaling,
        get_calibrator,
    )
    from hetcal.heterogeneity import HiddenHeterogeneity

_HOME = {
    "BetaCalibration": "hetcal.calibration",
    "BiasCorrectedTemperatureScaling": "hetcal.calibration",
    "HiddenHeterogeneity": "hetcal.heterogeneity",
    "HistogramBinning": "hetcal.calibration",
    "HybridCalibrator": "hetcal.calibration",
    "IsotonicCalibration": "hetcal.calibration",
    "LabelPreserving": "hetcal.calibration",
    "LocallyCalibratedClassifier": "hetcal.calibration",
    "PlattScaling": "hetcal.calibration",
    "PrecomputedProba": "hetcal.calibration",
    "SimilarityCalibrator": "hetcal.calibration",
    "TemperatureScaling": "hetcal.calibration",
    "Uncalibrated": "hetcal.calibration",
    "VectorScaling": "hetcal.calibration",
    "get_calibrator": "hetcal.calibration",
}

__all__ = [
    "BetaCalibration",
    "BiasCorrectedTemperatureScaling",
    "HiddenHeterogeneity",
    "HistogramBinning",
    "HybridCalibrator",
    "IsotonicCalibration",
    "LabelPreserving",
    "LocallyCalibratedClassifier",
    "PlattScaling",
    "PrecomputedProba",
    "SimilarityCalibrator",
    "TemperatureScaling",
    "Uncalibrated",
    "VectorScaling",
    "__version__",
    "get_calibrator",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hetcal' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
