"""Calibrators: global maps, votes of similar items, and the registry of their short names."""

from hetcal.calibration.base import BaseCalibrator, GlobalCalibrator
from hetcal.calibration.beta import BetaCalibration
from hetcal.calibration.confidence import from_confidence
from hetcal.calibration.histogram import HistogramBinning
from hetcal.calibration.hybrid import HybridCalibrator
from hetcal.calibration.isotonic import IsotonicCalibration
from hetcal.calibration.platt import PlattScaling
from hetcal.calibration.precomputed import PrecomputedProba
from hetcal.calibration.preserving import LabelPreserving
from hetcal.calibration.registry import get_calibrator, list_calibrators, register_calibrator
from hetcal.calibration.similarity import SimilarityCalibrator
from hetcal.calibration.temperature import BiasCorrectedTemperatureScaling, TemperatureScaling
from hetcal.calibration.uncalibrated import Uncalibrated
from hetcal.calibration.vector import VectorScaling
from hetcal.calibration.wrapper import LocallyCalibratedClassifier

__all__ = [
    "BaseCalibrator",
    "BetaCalibration",
    "BiasCorrectedTemperatureScaling",
    "GlobalCalibrator",
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
    "from_confidence",
    "get_calibrator",
    "list_calibrators",
    "register_calibrator",
]
