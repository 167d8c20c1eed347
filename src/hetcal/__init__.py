"""hetcal: find hidden heterogeneity in a classifier's probabilities, and repair it item by item.

Public names are imported on first use: ``import hetcal`` stays quick and has no side effect.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hetcal._version import __version__

if TYPE_CHECKING:
    from hetcal._exceptions import (
        ColumnOrderWarning,
        FileFormatError,
        HetcalWarning,
        RefitWarning,
        SlowFitWarning,
        TrainingSetWarning,
        WeightWarning,
    )
    from hetcal._progress import report_progress
    from hetcal._show_versions import show_versions
    from hetcal.calibration import (
        AtomCalibration,
        BetaCalibration,
        BiasCorrectedTemperatureScaling,
        EnsembleTemperatureScaling,
        GlobalBlend,
        HistogramBinning,
        HybridCalibrator,
        IsotonicCalibration,
        LabelPreserving,
        LocallyCalibratedClassifier,
        MatrixScaling,
        PlattScaling,
        PrecomputedProba,
        SimilarityCalibrator,
        SplineCalibration,
        TemperatureScaling,
        Uncalibrated,
        VectorScaling,
        VennAbersCalibration,
        from_confidence,
        from_logprobs,
        get_calibrator,
        list_calibrators,
    )
    from hetcal.diagnosis import (
        Advice,
        Comparison,
        LearningCurve,
        advise,
        compare,
        correct_prior,
        learning_curve,
    )
    from hetcal.heterogeneity import HiddenHeterogeneity, heterogeneity_test
    from hetcal.metrics import evaluate
    from hetcal.monitor import SupportMonitor
    from hetcal.persistence import load, save
    from hetcal.plotting import ReliabilityDisplay
    from hetcal.report import Report, diagnose

_HOME = {
    "Advice": "hetcal.diagnosis",
    "AtomCalibration": "hetcal.calibration",
    "BetaCalibration": "hetcal.calibration",
    "BiasCorrectedTemperatureScaling": "hetcal.calibration",
    "ColumnOrderWarning": "hetcal._exceptions",
    "Comparison": "hetcal.diagnosis",
    "EnsembleTemperatureScaling": "hetcal.calibration",
    "FileFormatError": "hetcal._exceptions",
    "GlobalBlend": "hetcal.calibration",
    "HetcalWarning": "hetcal._exceptions",
    "HiddenHeterogeneity": "hetcal.heterogeneity",
    "HistogramBinning": "hetcal.calibration",
    "HybridCalibrator": "hetcal.calibration",
    "IsotonicCalibration": "hetcal.calibration",
    "LabelPreserving": "hetcal.calibration",
    "LearningCurve": "hetcal.diagnosis",
    "LocallyCalibratedClassifier": "hetcal.calibration",
    "MatrixScaling": "hetcal.calibration",
    "PlattScaling": "hetcal.calibration",
    "PrecomputedProba": "hetcal.calibration",
    "RefitWarning": "hetcal._exceptions",
    "ReliabilityDisplay": "hetcal.plotting",
    "Report": "hetcal.report",
    "SimilarityCalibrator": "hetcal.calibration",
    "SlowFitWarning": "hetcal._exceptions",
    "SplineCalibration": "hetcal.calibration",
    "SupportMonitor": "hetcal.monitor",
    "TemperatureScaling": "hetcal.calibration",
    "TrainingSetWarning": "hetcal._exceptions",
    "Uncalibrated": "hetcal.calibration",
    "VectorScaling": "hetcal.calibration",
    "VennAbersCalibration": "hetcal.calibration",
    "WeightWarning": "hetcal._exceptions",
    "advise": "hetcal.diagnosis",
    "compare": "hetcal.diagnosis",
    "correct_prior": "hetcal.diagnosis",
    "diagnose": "hetcal.report",
    "evaluate": "hetcal.metrics",
    "from_confidence": "hetcal.calibration",
    "from_logprobs": "hetcal.calibration",
    "get_calibrator": "hetcal.calibration",
    "heterogeneity_test": "hetcal.heterogeneity",
    "learning_curve": "hetcal.diagnosis",
    "list_calibrators": "hetcal.calibration",
    "load": "hetcal.persistence",
    "report_progress": "hetcal._progress",
    "save": "hetcal.persistence",
    "show_versions": "hetcal._show_versions",
}

# Packages that are reached by attribute after a plain ``import hetcal`` and need no extra library.
_PACKAGES = (
    "batches",
    "calibration",
    "datasets",
    "diagnosis",
    "export",
    "heterogeneity",
    "metrics",
    "monitor",
    "persistence",
    "report",
    "similarity",
    "tables",
)

__all__ = [
    "Advice",
    "AtomCalibration",
    "BetaCalibration",
    "BiasCorrectedTemperatureScaling",
    "ColumnOrderWarning",
    "Comparison",
    "EnsembleTemperatureScaling",
    "FileFormatError",
    "GlobalBlend",
    "HetcalWarning",
    "HiddenHeterogeneity",
    "HistogramBinning",
    "HybridCalibrator",
    "IsotonicCalibration",
    "LabelPreserving",
    "LearningCurve",
    "LocallyCalibratedClassifier",
    "MatrixScaling",
    "PlattScaling",
    "PrecomputedProba",
    "RefitWarning",
    "ReliabilityDisplay",
    "Report",
    "SimilarityCalibrator",
    "SlowFitWarning",
    "SplineCalibration",
    "SupportMonitor",
    "TemperatureScaling",
    "TrainingSetWarning",
    "Uncalibrated",
    "VectorScaling",
    "VennAbersCalibration",
    "WeightWarning",
    "__version__",
    "advise",
    "compare",
    "correct_prior",
    "diagnose",
    "evaluate",
    "from_confidence",
    "from_logprobs",
    "get_calibrator",
    "heterogeneity_test",
    "learning_curve",
    "list_calibrators",
    "load",
    "report_progress",
    "save",
    "show_versions",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"hetcal.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'hetcal' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES])
